"""Entry point of `ultrascale-backend` and `python -m ultrascale_backend`."""

import argparse
import json
import logging
import os
import sys
from datetime import UTC, datetime

from ultrascale.errors import ClusterError, ConfigError, UltrascaleError
from ultrascale_backend.errors import UnavailableError
from ultrascale_backend.migrations import MigrationError
from ultrascale_backend.service import serve
from ultrascale_backend.settings import read_settings

_LOG = logging.getLogger("ultrascale_backend")


def main() -> None:
    """Serve by the settings of the environment; exit with 1 if they are wrong."""
    parser = argparse.ArgumentParser(prog="ultrascale-backend", description="Serve requests.")
    parser.add_argument(
        "--insecure-anonymous",
        action="store_true",
        help="require no token: whoever reaches it may submit, see and cancel everything",
    )
    anonymous: bool = parser.parse_args().insecure_anonymous
    write_json_logs()
    try:
        serve(read_settings(os.environ), anonymous=anonymous)
    except (UltrascaleError, UnavailableError, MigrationError) as error:
        for line in _lines(error):
            _LOG.error(line)
        sys.exit(1)


def _lines(error: Exception) -> tuple[str, ...]:
    if isinstance(error, ConfigError):
        return error.mistakes
    return error.lines if isinstance(error, ClusterError) else (str(error),)


# Standard attributes of a log record; every other attribute came by `extra`.
_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message"}


class JsonFormatter(logging.Formatter):
    """Formatter of a log record as a JSON object: time, level, logger, message, extra fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return ``record`` as one line."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {key: value for key, value in vars(record).items() if key not in _OWN}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def write_json_logs() -> None:
    """Let every logger of the process write JSON to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    # Level of the pool's logger, which logs each connection that it lends.
    logging.getLogger("psycopg.pool").setLevel(logging.WARNING)


if __name__ == "__main__":
    main()
