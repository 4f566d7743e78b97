"""An API server that answers from memory, the cluster that commands see of it, and the hybrid."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.jobs import HYBRID
from tests.support.stub_api_http import kubeconfig, serve
from tests.support.stub_api_server import StubApiServer
from ultrascale.cluster_api.server import Cluster
from ultrascale.jobs.preparation import JobCluster, read_cluster


@pytest.fixture
def stub() -> Iterator[StubApiServer]:
    with serve(StubApiServer()) as server:
        yield server


@pytest.fixture
def cluster(stub: StubApiServer, tmp_path: Path) -> Cluster:
    return Cluster.connected(kubeconfig(tmp_path, stub.url))


@pytest.fixture(scope="session")
def hybrid() -> JobCluster:
    return read_cluster(HYBRID)
