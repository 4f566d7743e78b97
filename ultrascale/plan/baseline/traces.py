"""Readers of job traces, and of curves of accelerators in use; `formats.csv` has the formats."""

import csv
import gzip
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from functools import cache
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import NamedTuple, TextIO, cast

from ultrascale.catalog.tables import read_table
from ultrascale.documents import objects, parse_json, sequence, text
from ultrascale.errors import ConfigError

HUNDREDTHS = 100  # Units of an accelerator: shares of one add up without rounding
MOST_OF_A_NODE = 16  # Accelerators of the largest instance: more beside the nodes are a percentage
_MOST_MISTAKES = 20
_MISSING = frozenset({"", "None", "Unknown", "NaT", "nan"})
_YEAR_2000, _MOST_SECONDS = 946_684_800, 100_000_000_000  # Milliseconds are larger
_NO_ACCELERATORS = (
    "rows have no accelerators, as Slurm's without gres/gpu in AccountingStorageTRES, or are steps"
)
_COLUMNS = ("job", "submit", "start", "end", "accelerators", "nodes", "times")
# `gres/gpu=8` counts all of a job; `gres/gpu:h100=8` beside it counts the same again.
_TRES = re.compile(r"(?:^|,)gres/gpu(:[^=,]*)?=(\d+)", re.ASCII)

Format = Mapping[str, str]


class Job(NamedTuple):
    """A run of a job, or a sample of a curve; times are seconds since 1970 in UTC."""

    submit: int
    start: int
    end: int | None  # None while it runs
    size: int  # Accelerators, in hundredths


@dataclass(slots=True)
class Trace:
    """Jobs of one fleet; other readers may fill it as well."""

    jobs: list[Job] = field(default_factory=list[Job])
    # Of curves, which have no jobs: accelerators by file and time
    samples: Counter[tuple[str, int]] = field(default_factory=Counter[tuple[str, int]])
    until: int | None = None  # End of a measured time; else a week without a submission ends it
    notes: Counter[str] = field(default_factory=Counter[str])  # Rows that count otherwise, by why
    submits: dict[str, str] = field(default_factory=dict[str, str])  # By job, of Alibaba's table
    places: dict[int, int] = field(default_factory=dict[int, int])  # By hash of job and start
    first: int = 0  # Place of the first run of a file


@cache
def formats() -> Mapping[str, Format]:
    """Return the formats by name."""
    return {row["name"]: row for row in read_table("formats.csv", Path(__file__).parent)}


def read_traces(
    files: Sequence[Path], named: str | None = None, zone: tzinfo | None = None
) -> Trace:
    """Return the jobs of all ``files`` together; their header tells the format unless it is named.

    Times without an offset are of ``zone``, and refused without one.

    Raises:
        ConfigError: A file cannot be read or says something wrong; the error names the lines.
    """
    trace = Trace()
    # Alibaba's tasks take their submission from its table of jobs, which is read first.
    ordered = sorted(files, key=lambda file: "job_table" not in file.name)
    reading = chain.from_iterable(_read(trace, file, named, zone) for file in ordered)
    mistakes = [*islice(reading, _MOST_MISTAKES)]
    if running := sum(job.end is None for job in trace.jobs):
        trace.notes["runs have no end, and count as running until the trace's end"] = running
    if trace.samples and trace.jobs:
        mistakes.append(f"{files[0]}: a curve beside jobs; give either")
    # Files of several teams add up; a sample holds until the next one of its file.
    for ((file, time), size), ((same, after), _) in pairwise(sorted(trace.samples.items())):
        if file == same:
            trace.jobs.append(Job(time, time, after, size))
    if not trace.jobs and not mistakes:
        rows = "".join(f"; {note}: {count:,}" for note, count in trace.notes.items())
        mistakes.append(f"no job with accelerators ever ran, and no curve has two times{rows}")
    if mistakes:
        raise ConfigError(mistakes)
    return trace


def _read(trace: Trace, file: Path, named: str | None, zone: tzinfo | None) -> Iterator[str]:
    """Add a file's rows to the trace, and yield the mistakes."""
    line, trace.first = 1, len(trace.jobs)
    try:
        for line, form, row in _rows(file, named):
            try:
                _add(trace, file, form, row, zone)
            except ValueError as error:
                yield f"{file}:{line}:1: {error}"
    except (OSError, EOFError, ValueError, csv.Error) as error:
        yield f"{file}:{line}:1: it cannot be read: {error}"


def _rows(file: Path, named: str | None) -> Iterator[tuple[int, Format, Sequence[str]]]:
    """Yield the rows of a file in the order of `_COLUMNS`, with their lines and its format."""
    opened = gzip.open if file.suffix == ".gz" else open
    # Names may have any bytes; spreadsheets begin a file with a byte order mark.
    opening = opened(file, "rt", encoding="utf-8-sig", errors="surrogateescape", newline="")
    with cast("TextIO", opening) as stream:
        first = stream.readline()
        if first.lstrip()[:1] in ("[", "{"):
            yield from _philly_rows(first + stream.read())
            return
        # Alibaba publishes its headers beside the tables.
        aside = file.with_suffix(".header")
        header = aside.read_text(encoding="utf-8") if aside.is_file() else first
        mark = "|" if "|" in header else ","
        columns = header.strip().split(mark)
        form = _format(columns, named)
        places = [columns.index(form[key]) if form[key] else -1 for key in _COLUMNS]
        again = [] if header is first else [first]
        # Slurm quotes nothing.
        quoting = csv.QUOTE_NONE if mark == "|" else csv.QUOTE_MINIMAL
        rows = csv.reader(chain(again, stream), delimiter=mark, quoting=quoting)
        for line, row in enumerate(rows, 2 - len(again)):
            if len(row) == len(columns):
                yield line, form, [row[place] if place >= 0 else "" for place in places]
            elif row:
                yield line, form, ()


def _format(columns: Sequence[str], named: str | None) -> Format:
    known: list[str] = []
    for form in formats().values():
        needed = dict.fromkeys([form[key] for key in _COLUMNS if form[key]] + form["marks"].split())
        if named in (None, form["name"]):
            if needed.keys() <= {*columns}:
                return form
            known.append(f"{form['name']}: {','.join(needed)}")
    got = ",".join(columns)[:200]
    raise ValueError(f"no header of a trace, got {got!r}; write that of {'; or of '.join(known)}")


def _philly_rows(document: str) -> Iterator[tuple[int, Format, Sequence[str]]]:
    """Yield each attempt of each job, with the number of the job."""
    for number, entry in enumerate(objects({"jobs": parse_json(document)}, "jobs"), 1):
        asked, attempts = text(entry, "submitted_time"), objects(entry, "attempts")
        for attempt in attempts:
            end = text(attempt, "end_time")
            # Only the last attempt can still run; an earlier one lost its end.
            start = text(attempt, "start_time") if end or attempt is attempts[-1] else ""
            gpus = sum(len(sequence(part, "gpus")) for part in objects(attempt, "detail"))
            row = (text(entry, "jobid"), asked, start, end, str(gpus), "", "")
            yield number, formats()["philly"], row
            # A further attempt is wanted from the end of the one before it.
            asked = end or asked


def _add(trace: Trace, file: Path, form: Format, row: Sequence[str], zone: tzinfo | None) -> None:
    """Add a row to the trace, or to the submissions of jobs whose tasks another table has."""
    if not row:
        raise ValueError("more or fewer columns than the header; quote commas within a value")
    job, submit, start, end, accelerators, nodes, times = row
    if not form["accelerators"]:
        trace.submits[job] = submit
        return
    size, submit = _size(form, accelerators, nodes, times), trace.submits.get(job, submit)
    if form["job"] and (not size or (form["name"] == "slurm" and "." in job)):
        trace.notes[_NO_ACCELERATORS] += 1
    elif start in _MISSING:
        trace.notes["runs never started: their length is unknown, and no curve has them"] += 1
    elif end in _MISSING and form["endless"] == "dropped":
        trace.notes["runs are left out: this format lacks the ends of some that are over"] += 1
    else:
        begins = _seconds(form, "start", start, zone)
        ends = None if end in _MISSING else _seconds(form, "end", end, zone)
        if ends is not None and ends < begins:
            set_back = "where clocks were set back, export with TZ=UTC"
            raise ValueError(f"{form['end']}: before the start {start}, got {end!r}; {set_back}")
        if not form["job"]:
            trace.samples[str(file), begins] += size
            return
        asked = begins if submit in _MISSING else _seconds(form, "submit", submit, zone)
        run = Job(min(asked, begins), begins, ends, size)
        place = trace.places.setdefault(hash((job, start)), len(trace.jobs))
        if place >= trace.first:
            trace.jobs.append(run)
            return
        trace.notes["runs of two files, as exports of two months have them, count once"] += 1
        if trace.jobs[place].end is None:
            trace.jobs[place] = run


def _size(form: Format, accelerators: str, nodes: str, times: str) -> int:
    if form["name"] == "slurm":
        asked = {kind: int(count) for kind, count in _TRES.findall(accelerators)}
        accelerators = str(asked.get("", sum(asked.values())))
    try:
        value = float(accelerators or 0) * float(times or 1) * float(form["unit"] or 1)
        if 0 <= value <= min(MOST_OF_A_NODE * float(nodes or "inf"), 1e9):
            return round(value * HUNDREDTHS)
    except ValueError:
        pass
    count = f"no number of accelerators on {nodes or 'any number of'} nodes, got {accelerators!r}"
    few = f"a node has {MOST_OF_A_NODE} at most, and percent are divided by 100"
    raise ValueError(f"{form['accelerators']}: {count}; {few}")


def _seconds(form: Format, key: str, text: str, zone: tzinfo | None) -> int:
    try:
        if text.replace(".", "", 1).isdecimal():
            reason, fix = "no seconds since 1970", "divide milliseconds by 1000"
            if (0 if form["relative"] else _YEAR_2000) <= float(text) < _MOST_SECONDS:
                return int(float(text))
        else:
            time = datetime.fromisoformat(text)
            reason, fix = "a time without an offset", "say --timezone, such as UTC"
            if time.tzinfo or zone:
                return int((time if time.tzinfo else time.replace(tzinfo=zone)).timestamp())
    except ValueError:
        reason, fix = "no time", "write it as 2026-01-05T08:00Z"
    raise ValueError(f"{form[key]}: {reason}, got {text!r}; {fix}")
