"""A real PostgreSQL server, which tests may stop and start again."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
from psycopg import sql

from tests.support.etcd_server import free_ports

_DEBIAN = "/usr/lib/postgresql"
_STARTUP_SECONDS = 20.0
# It refuses to run as root; this user comes with Debian's package.
_USER = "postgres"
# Who must speak TLS, and log in with a password.
GUARDED_USER = "guarded"
_GUARD = f"hostssl all {GUARDED_USER} all scram-sha-256\nhost all {GUARDED_USER} all reject\n"
# Nothing of it outlives the tests.
_SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "max_connections": "200",
    "shared_buffers": "32MB",
    "autovacuum": "off",
    "listen_addresses": "localhost",
    "ssl": "on",
}


def find_program(name: str) -> str | None:
    """Return the path of a program of the newest PostgreSQL: Debian's, or one of the PATH."""
    found = sorted(
        Path(_DEBIAN).glob(f"*/bin/{name}"), key=lambda path: float(path.parts[-3]), reverse=True
    )
    return str(found[0]) if found else shutil.which(name)


class PostgresServer:
    """One server on a port of its own, with as many databases as tests ask for."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._data = directory / "data"
        # What it shows for the name `localhost`, signed by itself
        self.certificate = self._data / "server.crt"
        self._databases = count(1)
        (self.port,) = free_ports(1)
        self._process: subprocess.Popen[bytes] | None = None

    def create(self) -> None:
        """Make its data."""
        if os.geteuid() == 0:
            shutil.chown(self._directory, _USER, _USER)
        subprocess.run(
            [
                *self._as_user(),
                str(find_program("initdb")),
                *("--pgdata", str(self._data), "--username", "admin", "--auth", "trust"),
                *("--encoding", "UTF8", "--locale", "C", "--no-sync", "--no-instructions"),
            ],
            check=True,
            capture_output=True,
            timeout=60,
            cwd="/",
        )
        rules = self._data / "pg_hba.conf"
        rules.write_text(_GUARD + rules.read_text())
        self._certify()

    def start(self) -> None:
        """Start it, with the data it had if any, and wait until it answers."""
        settings = {**_SETTINGS, "port": str(self.port), "unix_socket_directories": ""}
        arguments = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
        with (self._directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *self._as_user(),
                    str(find_program("postgres")),
                    "-D",
                    str(self._data),
                    *arguments,
                ],
                stdout=log,
                stderr=log,
                cwd="/",
            )
        deadline = time.monotonic() + _STARTUP_SECONDS
        while True:
            try:
                self.ask("postgres", "SELECT 1")
            except psycopg.OperationalError as error:
                if time.monotonic() > deadline:
                    told = (self._directory / "log").read_text()[-3000:]
                    raise AssertionError(f"no answer:\n{told}") from error
                time.sleep(0.05)
            else:
                return

    def stop(self) -> None:
        """Break every connection and end, as a server that restarts does; its data stay."""
        if self._process is not None:
            # A fast shutdown.
            self._process.send_signal(signal.SIGINT)
            self._process.wait(timeout=30)
            self._process = None

    def url(self, database: str, *, user: str = "admin") -> str:
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}?sslmode=disable"

    def new_database(self) -> str:
        """Return the name of an empty database."""
        name = f"test_{next(self._databases)}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return name

    def ask(self, database: str, query: str) -> Sequence[tuple[Any, ...]]:
        """Return the rows of a query."""
        with psycopg.connect(self.url(database), connect_timeout=2) as connection:
            cursor = connection.execute(query.encode())
            return cursor.fetchall() if cursor.description else []

    def _certify(self) -> None:
        key = self._data / "server.key"
        subprocess.run(
            [
                *(
                    "openssl",
                    "req",
                    "-x509",
                    "-newkey",
                    "ec",
                    "-pkeyopt",
                    "ec_paramgen_curve:P-256",
                ),
                *("-nodes", "-days", "2", "-subj", "/CN=localhost"),
                *("-addext", "subjectAltName=DNS:localhost"),
                *("-keyout", str(key), "-out", str(self.certificate)),
            ],
            check=True,
            capture_output=True,
        )
        key.chmod(0o600)
        if os.geteuid() == 0:
            shutil.chown(key, _USER, _USER)

    def _as_user(self) -> Sequence[str]:
        if os.geteuid() != 0:
            return ()
        return ("setpriv", f"--reuid={_USER}", f"--regid={_USER}", "--clear-groups", "--")


@contextmanager
def running_postgres() -> Generator[PostgresServer]:
    # Not below pytest's folder, which only the user who runs the tests may enter.
    with TemporaryDirectory(prefix="postgres-") as directory:
        server = PostgresServer(Path(directory))
        server.create()
        try:
            server.start()
            yield server
        finally:
            server.stop()
