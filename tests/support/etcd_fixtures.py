"""The etcd that tests of the rendezvous share."""

from collections.abc import Iterator

import pytest

from tests.support.etcd_server import EtcdServer, running_etcd


@pytest.fixture(scope="session")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdServer]:
    with running_etcd(tmp_path_factory.mktemp("etcd")) as server:
        yield server


@pytest.fixture
def job(request: pytest.FixtureRequest) -> str:
    """A rendezvous id that no other test has."""
    return request.node.name
