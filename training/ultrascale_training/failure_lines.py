"""Log lines on failures: the first line of each kept failure, and the report of the next start.

A line is in logfmt, such as ``failed at=2026-11-23T12:00:00Z node=ip-10-0-0-7 pod=llm-3 rank=24
error="RuntimeError: …"``. `ultrascale status` reads the lines in the log of the first pod, because
the failed pod may be gone.
"""

import json
import os
import re
import shlex
import time
from collections.abc import Mapping, Sequence

from ultrascale_training.objects import Objects

FOLDER = "failures"
_KINDS = ("mistake", "hang", "error", "lost")
_TOLD = "failures.json"
_MOST_LINES = 8
# Thousands of workers may have failed; the first failures show the cause.
_MOST_READ = 64
_LONGEST = 500
_PLAIN = re.compile(r"[\w.:/-]+")


def failure_line(
    state: str, error: str, *, rank: int | None = None, node: str | None = None
) -> str:
    """Return a line about this worker's failure, or about a failure that it noticed of another.

    Args:
        state: First word of the line.
        error: Error; line breaks are removed, and a long text is cut.
        rank: Rank of the other worker.
        node: Node of the other worker.
    """
    environment = os.environ
    fields = {"at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
    if rank is None:
        fields["node"] = environment.get("ULTRASCALE_NODE", "")
        fields["pod"] = environment.get("ULTRASCALE_POD", "")
        fields["rank"] = environment.get("RANK", "0")
    else:
        fields |= {"node": node or "", "rank": str(rank)}
    fields["restart"] = environment.get("TORCHELASTIC_RESTART_COUNT", "0")
    text = " ".join(error.split())
    fields["error"] = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    return _line(state, fields)


def fields_of(line: str) -> tuple[str, Mapping[str, str]]:
    """Return the first word and the fields of a line; both empty if the line has another form."""
    try:
        state, *words = shlex.split(line)
    except ValueError:
        return "", {}
    pairs = (word.partition("=") for word in words)
    return state, {name: value for name, equals, value in pairs if equals}


def new_failures(records: Objects) -> Sequence[str]:
    """Return a line for each failure stored since the last call, causes first.

    Args:
        records: Output of the run, in which the last call is noted.
    """
    noted = records.get(_TOLD)
    last = str(json.loads(noted)["last"]) if noted else ""
    new = [name for name in records.names(f"{FOLDER}/") if name > last]
    if not new:
        return []
    records.put(_TOLD, json.dumps({"last": new[-1]}).encode())
    mistakes, hangs, errors, lost = (_kept_fields(records, new, kind) for kind in _KINDS)
    # After a mistake all workers leave, and only the first worker has the reason.
    if mistakes:
        return [_line("failed", fields) for fields in mistakes[:_MOST_LINES]]
    # A worker whose loss others noticed before they failed is the cause; it may have stored its
    # reason.
    gone = {fields["rank"] for fields in lost}
    told = {fields["rank"] for fields in errors}
    ordered = [
        *hangs,
        *(fields for fields in errors if fields["rank"] in gone),
        *(fields for fields in lost if fields["rank"] not in told),
        *(fields for fields in errors if fields["rank"] not in gone),
    ]
    unique = {(fields["rank"], fields["error"]): fields for fields in reversed(ordered)}
    return [_line("failed", fields) for fields in [*reversed(unique.values())][:_MOST_LINES]]


def _kept_fields(records: Objects, names: Sequence[str], kind: str) -> list[Mapping[str, str]]:
    """Return the fields of the first stored failures of a kind."""
    found: list[Mapping[str, str]] = []
    for name in [name for name in names if f"-{kind}-" in name][:_MOST_READ]:
        content = (records.get(name) or b"").decode(errors="replace")
        _, fields = fields_of(content.partition("\n")[0])
        if {"rank", "error"} <= fields.keys():
            found.append(fields)
    return found


def _line(state: str, fields: Mapping[str, str]) -> str:
    words = [f"{name}={_quoted_value(value)}" for name, value in fields.items() if value]
    return " ".join([state, *words])


def _quoted_value(value: str) -> str:
    if _PLAIN.fullmatch(value):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
