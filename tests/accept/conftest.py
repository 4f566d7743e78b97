"""A stub API server, and its cluster."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.stub_api_http import kubeconfig, serve
from tests.support.stub_api_server import StubApiServer
from ultrascale.cluster_api.server import Cluster


@pytest.fixture
def stub() -> Iterator[StubApiServer]:
    with serve(StubApiServer()) as server:
        yield server


@pytest.fixture
def cluster(stub: StubApiServer, tmp_path: Path) -> Cluster:
    return Cluster.connected(kubeconfig(tmp_path, stub.url))
