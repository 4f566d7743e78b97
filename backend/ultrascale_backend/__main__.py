"""Entry point of `ultrascale-backend` and `python -m ultrascale_backend`."""

import argparse
import logging
import os
import sys

from ultrascale.errors import ClusterError, ConfigError, UltrascaleError
from ultrascale_backend.errors import UnavailableError
from ultrascale_backend.logs import write_json_logs
from ultrascale_backend.migrations import MigrationError
from ultrascale_backend.service import serve
from ultrascale_backend.settings import read_settings

_LOG = logging.getLogger("ultrascale_backend")


def main() -> None:
    """Serve as the environment says; exit 1 where it is wrong."""
    parser = argparse.ArgumentParser(prog="ultrascale-backend", description="Serve requests.")
    parser.add_argument(
        "--insecure-anonymous",
        action="store_true",
        help="ask nobody for a token: whoever reaches it may submit, see and cancel everything",
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


if __name__ == "__main__":
    main()
