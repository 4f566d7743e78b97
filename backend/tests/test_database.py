"""The connections of the backend, against a real PostgreSQL."""

import json
import re
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import boto3
import pytest

from tests.support.backend_process import eventually
from tests.support.fake_aws import FakeAws
from tests.support.postgres_server import GUARDED_USER, PostgresServer
from ultrascale_backend.database import Connection, Database, parameters
from ultrascale_backend.errors import UnavailableError
from ultrascale_backend.migrations import Migration, MigrationError, migrate, migrations
from ultrascale_backend.settings import DatabaseSettings

SECRET = "arn:aws:secretsmanager:us-east-1:111122223333:secret:db-AbCdEf"
HOST = "db.cluster-abc.us-east-1.rds.amazonaws.com"


@pytest.fixture
def connections(postgres: PostgresServer, database: str) -> Iterator[Database]:
    pool = Database(DatabaseSettings(url=postgres.url(database)), patience_seconds=10)
    pool.open()
    yield pool
    pool.close()


def guarded(server: PostgresServer, database: str, **changes: object) -> DatabaseSettings:
    """Return how to log in by TLS, with the password that a secret holds."""
    stated: dict[str, object] = {
        "host": "localhost",
        "port": server.port,
        "name": database,
        "secret_arn": SECRET,
        "ca_file": server.certificate,
    }
    return DatabaseSettings(**{**stated, **changes})  # pyright: ignore[reportArgumentType]


class Secret(FakeAws):
    """A secret that rotates, as Secrets Manager answers."""

    def holds(self, password: str, times: int) -> None:
        text = json.dumps({"username": GUARDED_USER, "password": password})
        for _ in range(times):
            self.expect(
                "secretsmanager:GetSecretValue", {"SecretString": text}, {"SecretId": SECRET}
            )


@pytest.fixture
def secret(monkeypatch: pytest.MonkeyPatch, postgres: PostgresServer) -> Secret:
    postgres.ask("postgres", f"DROP ROLE IF EXISTS {GUARDED_USER}")
    postgres.ask("postgres", f"CREATE ROLE {GUARDED_USER} LOGIN PASSWORD 'first'")
    aws = Secret()
    monkeypatch.setattr(boto3, "client", aws.client)
    return aws


@pytest.mark.postgres
def test_the_password_that_a_secret_has_now_opens_the_next_connection(
    postgres: PostgresServer, database: str, secret: Secret
) -> None:
    secret.holds("first", times=2)
    pool = Database(guarded(postgres, database), patience_seconds=10)
    pool.open()
    who = "SELECT current_user, ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"

    before = pool.run(lambda connection: connection.execute(who).fetchone())
    postgres.ask(database, f"ALTER ROLE {GUARDED_USER} PASSWORD 'second'")
    secret.holds("second", times=8)
    end = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{GUARDED_USER}'"
    postgres.ask(database, end)
    after = pool.run(lambda connection: connection.execute(who).fetchone())

    pool.close()
    assert before == after == (GUARDED_USER, True)


@pytest.mark.postgres
@pytest.mark.parametrize("wrong", ["authority", "name"])
def test_a_server_that_cannot_prove_who_it_is_gets_no_password(
    postgres: PostgresServer, database: str, secret: Secret, tmp_path: Path, wrong: str
) -> None:
    other = tmp_path / "other.pem"
    command = "openssl req -x509 -newkey ed25519 -nodes -days 2 -subj /CN=localhost"
    subprocess.run(
        [*command.split(), "-keyout", "/dev/null", "-out", other], check=True, capture_output=True
    )
    changes = {"ca_file": other} if wrong == "authority" else {"host": "127.0.0.1"}
    secret.holds("first", times=4)
    pool = Database(guarded(postgres, database, **changes), patience_seconds=0.5)
    pool.open()

    with pytest.raises(UnavailableError):
        pool.run(lambda connection: connection.execute("SELECT 1"))

    pool.close()


def test_each_connection_has_a_token_of_its_own_where_iam_lets_in(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "example")
    settings = DatabaseSettings(
        host=HOST, name="backend", user="app", iam_region="us-east-1", ca_file=tmp_path / "ca.pem"
    )

    stated = parameters(settings)()

    token = urlsplit(f"https://{stated['password']}")
    query = parse_qs(token.query)
    assert (token.hostname, token.port) == (HOST, 5432)
    assert (query["Action"], query["DBUser"], query["X-Amz-Expires"]) == (
        ["connect"],
        ["app"],
        ["900"],
    )
    assert (stated["sslmode"], stated["sslrootcert"]) == ("verify-full", str(tmp_path / "ca.pem"))


@pytest.mark.postgres
def test_work_moves_on_to_the_new_writer_after_a_failover(
    connections: Database, postgres: PostgresServer
) -> None:
    connections.run(migrate)
    tries: list[int] = []

    def work(connection: Connection) -> None:
        tries.append(connection.info.backend_pid)
        if len(tries) == 1:
            connection.execute("SET default_transaction_read_only = on")
        connection.execute("INSERT INTO schema_migrations VALUES (99, 'later', '')")

    connections.run(work)

    assert len(set(tries)) == 2
    reader = f"SELECT 1 FROM pg_stat_activity WHERE pid = {tries[0]}"
    eventually(lambda: not postgres.ask("postgres", reader))


@pytest.mark.postgres
def test_a_database_that_stays_away_is_said_to_be_out_of_reach(
    postgres: PostgresServer,
) -> None:
    pool = Database(DatabaseSettings(url=postgres.url("nowhere")), patience_seconds=0.3)
    pool.open()

    assert not pool.answers(timeout_seconds=0.3)
    with pytest.raises(UnavailableError):
        pool.run(migrate)

    pool.close()


@pytest.mark.postgres
def test_processes_that_begin_at_once_migrate_once(connections: Database) -> None:
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(connections.run, migrate) for _ in range(2)]
        applied = [name for each in both for name in each.result(timeout=10)]

    assert applied == [each.name for each in migrations()]
    assert connections.run(migrate) == ()


@pytest.mark.postgres
def test_a_migration_that_was_changed_after_it_was_applied_is_refused(
    connections: Database,
) -> None:
    connections.run(migrate)
    connections.run(lambda each: each.execute("UPDATE schema_migrations SET checksum = ''"))

    with pytest.raises(MigrationError, match=r"0001_requests\.sql"):
        connections.run(migrate)


@pytest.mark.postgres
def test_the_version_before_runs_on_a_database_that_is_ahead(connections: Database) -> None:
    connections.run(migrate)
    later = "INSERT INTO schema_migrations VALUES (99, '0099_later.sql', '')"
    connections.run(lambda connection: connection.execute(later))

    assert connections.run(migrate) == ()


@pytest.mark.parametrize("each", migrations(), ids=[each.name for each in migrations()])
def test_no_migration_takes_anything_away(each: Migration) -> None:
    statements = re.sub(r"--.*", "", each.sql)

    assert not re.search(r"\b(DROP|TRUNCATE|DELETE|RENAME)\b", statements, re.IGNORECASE)


def test_migrations_are_numbered_from_one_without_gaps() -> None:
    assert [each.version for each in migrations()] == [*range(1, len(migrations()) + 1)]
