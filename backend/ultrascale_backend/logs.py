"""Logs as lines of JSON, which CloudWatch and every collector can query by field."""

import json
import logging
import sys
from datetime import UTC, datetime

# What a record has of its own; all else was given by `extra`.
_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message"}


class JsonFormatter(logging.Formatter):
    """Writes a record as one JSON object: time, level, logger, message and its extra fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return ``record`` on one line."""
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
    # It tells each connection that is lent.
    logging.getLogger("psycopg.pool").setLevel(logging.WARNING)
