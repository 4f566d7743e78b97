"""Connections to PostgreSQL, renewed after restarts and failovers."""

import json
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import psycopg
from psycopg import errors
from psycopg.rows import TupleRow
from psycopg_pool import ConnectionPool

from ultrascale_backend.errors import UnavailableError
from ultrascale_backend.settings import DatabaseSettings

if TYPE_CHECKING:
    from mypy_boto3_secretsmanager import SecretsManagerClient

T = TypeVar("T")
Connection = psycopg.Connection[TupleRow]
Parameters = dict[str, str | int | bool | None]

_MIN_CONNECTIONS, _MAX_CONNECTIONS = 2, 20
_CONNECT_SECONDS = 5
# An Aurora failover usually takes less than half a minute.
# Source: https://docs.aws.amazon.com/AmazonRDS/latest/AuroraUserGuide/Concepts.AuroraHighAvailability.html
_PATIENCE_SECONDS = 30.0
_WAIT_SECONDS = 0.2
_POOL_SECONDS = 10.0
# Milliseconds. The last timeout limits how long an entry stays locked after its replica vanished
# with its node: the server does not see that the connection is dead.
_LIMITS = {
    "statement_timeout": 30_000,
    "lock_timeout": 10_000,
    "idle_in_transaction_session_timeout": 180_000,
}


class Database:
    """A pool of connections that outlives restarts and failovers of the database.

    Args:
        settings: Address and credentials of the database.
        patience_seconds: Seconds for which `run` and `wait` try before they give up.
    """

    def __init__(
        self, settings: DatabaseSettings, *, patience_seconds: float = _PATIENCE_SECONDS
    ) -> None:
        self._patience = patience_seconds
        self._pool = ConnectionPool[Connection](
            settings.url or "",
            # Called for each new connection: tokens expire after 15 minutes, and secrets rotate.
            kwargs=parameters(settings),
            min_size=_MIN_CONNECTIONS,
            max_size=_MAX_CONNECTIONS,
            timeout=_POOL_SECONDS,
            configure=_limit,
            open=False,
            name="backend",
        )

    def open(self) -> None:
        """Begin to connect."""
        self._pool.open()

    def close(self) -> None:
        """Close every connection."""
        self._pool.close()

    @contextmanager
    def connection(self, *, timeout_seconds: float | None = None) -> Generator[Connection]:
        """Lend a connection; a statement outside of `Connection.transaction` is committed at once.

        Raises:
            psycopg.OperationalError: The database cannot be reached, or was lost meanwhile.
        """
        with self._pool.connection(timeout=timeout_seconds) as connection:
            try:
                yield connection
            except errors.ReadOnlySqlTransaction as error:
                # After a failover this connection leads to the former writer, and cannot be used.
                connection.close()
                raise psycopg.OperationalError(str(error)) from error

    def run(self, work: Callable[[Connection], T], *, patience_seconds: float | None = None) -> T:
        """Return the result of ``work``, which is repeated while the database is out of reach.

        Connections that a restart broke are noticed when used, and replaced at once. It is unknown
        whether an unanswered commit took place, so a repetition of ``work`` must have no further
        effect.

        Raises:
            UnavailableError: The database stayed out of reach.
        """
        patience = self._patience if patience_seconds is None else patience_seconds
        deadline = time.monotonic() + patience
        while True:
            try:
                with self.connection(timeout_seconds=min(patience, _POOL_SECONDS)) as connection:
                    return work(connection)
            except psycopg.OperationalError as error:
                if time.monotonic() >= deadline:
                    raise UnavailableError(str(error)) from error
                time.sleep(_WAIT_SECONDS)

    def answers(self, *, timeout_seconds: float) -> bool:
        """Return whether the database answers now."""
        try:
            self.run(
                lambda connection: connection.execute("SELECT 1"), patience_seconds=timeout_seconds
            )
        except UnavailableError:
            return False
        return True


def parameters(settings: DatabaseSettings) -> Callable[[], Parameters]:
    """Return a function that returns the parameters of the next connection.

    Source: https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/UsingWithRDS.IAMDBAuth.Connecting.Python.html
    """
    lasting: Parameters = {
        # Autocommit: a single statement needs no BEGIN and COMMIT.
        "autocommit": True,
        "application_name": "ultrascale-backend",
        "connect_timeout": _CONNECT_SECONDS,
        # A vanished server is noticed within half a minute, and a reader is not mistaken for the
        # writer.
        # Source: https://www.postgresql.org/docs/17/libpq-connect.html
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": 25_000,
        "target_session_attrs": "read-write",
    }
    if settings.url is not None:
        return lambda: lasting
    server: Parameters = {
        **lasting,
        "host": settings.host,
        "port": settings.port,
        "dbname": settings.name,
        "sslmode": "verify-full",
        "sslrootcert": str(settings.ca_file),
    }
    # Imported late: the import takes a quarter of the process's start, and a password does not need
    # it.
    import boto3

    if settings.iam_region is not None:
        rds = boto3.client("rds", region_name=settings.iam_region)
        token = partial(
            rds.generate_db_auth_token,
            DBHostname=settings.host,
            Port=settings.port,
            DBUsername=settings.user,
            Region=settings.iam_region,
        )
        return lambda: {**server, "user": settings.user, "password": token()}
    arn = str(settings.secret_arn)
    # arn:PARTITION:secretsmanager:REGION:ACCOUNT:secret:NAME
    manager = boto3.client("secretsmanager", region_name=arn.split(":")[3])
    return lambda: {**server, **_login(manager, arn, settings.user)}


def _login(manager: "SecretsManagerClient", arn: str, user: str) -> Parameters:
    """Return the user and password in a secret, in the form that RDS writes.

    Source: https://docs.aws.amazon.com/secretsmanager/latest/userguide/reference_secret_json_structure.html
    """
    secret: dict[str, str] = json.loads(manager.get_secret_value(SecretId=arn)["SecretString"])
    return {"user": user or secret["username"], "password": secret["password"]}


def _limit(connection: Connection) -> None:
    connection.execute(
        "SELECT set_config(name, value, false)"
        " FROM unnest(%s::text[], %s::text[]) AS limits (name, value)",
        ([*_LIMITS], [str(milliseconds) for milliseconds in _LIMITS.values()]),
    )
