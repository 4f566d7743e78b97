"""The PostgreSQL server that tests of the backend share, and databases of it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.postgres_server import PostgresServer


@pytest.fixture(scope="session")
def postgres() -> Iterator["PostgresServer"]:
    from tests.support.postgres_server import running_postgres

    with running_postgres() as server:
        yield server


@pytest.fixture
def database(postgres: "PostgresServer") -> str:
    """The name of an empty database."""
    return postgres.new_database()
