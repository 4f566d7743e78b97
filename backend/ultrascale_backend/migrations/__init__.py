"""Schema of the database: numbered SQL files, each applied once.

Plain files, because two tables need none of the models that Alembic compares a database with.
Migrations only add: replicas of the previous version run beside the new version while a Deployment
rolls, and after it is rolled back.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from importlib import resources

from ultrascale_backend.database import Connection

_LOG = logging.getLogger(__name__)
# Number of the advisory lock under which a single process migrates: `ultrscal` in ASCII.
_LOCK = 0x756C_7472_7363_616C
_LOCK_WAIT = "60s"


class MigrationError(Exception):
    """Error: the file of an applied migration has changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """A numbered step of the schema."""

    version: int  # Its number
    name: str  # Its file
    sql: str  # Its statements

    @property
    def checksum(self) -> str:
        """SHA-256 of the statements."""
        return sha256(self.sql.encode()).hexdigest()


def migrations() -> tuple[Migration, ...]:
    """Return the migrations in the order of their numbers."""
    files = [each for each in resources.files(__name__).iterdir() if each.name.endswith(".sql")]
    return tuple(
        Migration(version=int(file.name.partition("_")[0]), name=file.name, sql=file.read_text())
        for file in sorted(files, key=lambda file: file.name)
    )


def migrate(connection: Connection) -> tuple[str, ...]:
    """Apply the missing migrations, all or none, and return their names.

    Processes that start at the same time wait for each other.

    Raises:
        MigrationError: A file differs from the migration that was applied under its number.
    """
    with connection.transaction():
        return tuple(_apply(connection))


def _apply(connection: Connection) -> Iterator[str]:
    connection.execute("SELECT set_config('lock_timeout', %s, true)", (_LOCK_WAIT,))
    connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
    connection.execute(
        "CREATE TABLE IF NOT EXISTS schema_migrations ("
        " version integer PRIMARY KEY, name text NOT NULL, checksum text NOT NULL,"
        " applied_at timestamptz NOT NULL DEFAULT now())"
    )
    rows = connection.execute("SELECT version, checksum FROM schema_migrations").fetchall()
    applied = {int(version): str(checksum) for version, checksum in rows}
    known = {migration.version: migration for migration in migrations()}
    for version in sorted(applied.keys() - known.keys()):
        _LOG.warning("the database is ahead of this version", extra={"migration": version})
    changed = [
        migration.name
        for migration in known.values()
        if applied.get(migration.version, migration.checksum) != migration.checksum
    ]
    if changed:
        raise MigrationError(
            f"{', '.join(changed)}: changed after it was applied; restore it, and add another file"
        )
    for each in (each for each in known.values() if each.version not in applied):
        # The statements are a file of this package, not user input.
        connection.execute(each.sql.encode())
        connection.execute(
            "INSERT INTO schema_migrations (version, name, checksum) VALUES (%s, %s, %s)",
            (each.version, each.name, each.checksum),
        )
        _LOG.info("migrated the database", extra={"migration": each.name})
        yield each.name
