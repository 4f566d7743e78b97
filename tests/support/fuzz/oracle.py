"""The judgement of one file: answers that the product may give, and what follows from them.

A file is refused with documented exit codes, in lines that name the key, the value and the way out;
or it is planned, synthesized and linted without a word, its jobs as well, and all YAML of it reads
the same with a reader of YAML 1.1 and one of YAML 1.2.
"""

import contextlib
import io
import json
import re
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, cast

import yaml
from ruamel.yaml import YAML

from tests.support.assembly import synthesize
from tests.support.folders import ROOT
from tests.support.fuzz.keys import Place, at
from tests.support.template_lint import lint
from ultrascale.cli import main
from ultrascale.config import read
from ultrascale.config._document import label
from ultrascale.errors import UltrascaleError

# `check` of any file ends by then.
SECONDS = 5.0
# Planning and synthesis of a large cluster on a busy machine.
_SECONDS_FOR_ALL = 120
_OWN_CODE = ("ultrascale", "constructs", "stacks", "k8s")
# The file names its zones on purpose: `acknowledge_findings` says so to the CDK.
_ACCEPTED_RULES = ("W3010",)
_ACCOUNT = ("--account", "111122223333")
_SPAN = re.compile(r"\S+:\d+:\d+: ")


@dataclass(frozen=True, slots=True)
class Finding:
    """A mistake in the product's answer to a file."""

    sign: str  # What it is, without what is of this file alone: by it findings are told apart
    detail: str  # The command, its words, its traceback


@dataclass(frozen=True, slots=True)
class Answer:
    """Output, ending and duration of a command."""

    status: int
    stdout: str
    stderr: str
    seconds: float
    error: BaseException | None = None

    @property
    def lines(self) -> Sequence[str]:
        """Lines on the error stream."""
        return self.stderr.rstrip("\n").split("\n")


@dataclass(frozen=True, slots=True)
class Judgement:
    """Judgement of one file."""

    findings: Sequence[Finding]  # What is wrong with that
    accepted: bool  # Whether the product takes the file


class TooLongError(BaseException):
    """A command that has not ended in its time."""


def command(*words: str | Path, seconds: float = _SECONDS_FOR_ALL) -> Answer:
    """Run `ultrascale` in this process."""
    out, err = io.StringIO(), io.StringIO()
    argv, sys.argv = sys.argv, ["ultrascale", *map(str, words)]
    files = [each for each in words if isinstance(each, Path)]
    folder = files[0].parent.parent if files else Path()
    begun = time.monotonic()
    status, error = 0, None
    try:
        with (
            contextlib.chdir(folder),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            _at_most(seconds),
        ):
            main()
    except SystemExit as end:
        status = 1 if isinstance(end.code, str) else int(end.code or 0)
        if isinstance(end.code, str):
            err.write(f"{end.code}\n")
    except (Exception, TooLongError) as caught:
        error = caught
    finally:
        sys.argv = argv
    return Answer(status, out.getvalue(), err.getvalue(), time.monotonic() - begun, error)


def judge_cluster(data: bytes, *, synthesis: bool = True, linted: bool = False) -> Judgement:
    """Return what becomes of a cluster file."""
    with tempfile.TemporaryDirectory() as folder:
        file = _beside_others(Path(folder))
        file.write_bytes(data)
        answer = command("check", file, seconds=2 * SECONDS)
        found = [*_checked(answer, file)]
        accepted = answer.error is None and answer.status == 0
        if accepted and not found:
            found = [*_planned(file), *_jobs(file)]
        if accepted and synthesis and not found:
            found = [*_synthesized(file, Path(folder), linted=linted)]
        return Judgement(found, accepted)


def judge_job(data: bytes, cluster: str) -> Judgement:
    """Return what becomes of the file of a job in a cluster."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "job.yaml"
        file.write_bytes(data)
        answer = command("submit", _file_of(cluster), str(file), "--dry-run", *_ACCOUNT)
        found = [*_rendered(answer, "submit of a file", _value(file), file)]
        return Judgement(found, answer.error is None and answer.status == 0)


def refusals(document: Any, text: str, *, cluster: str = "") -> Mapping[Place, Sequence[str]]:
    """Return the places in a cluster file, or a job of ``cluster``, that are refused.

    With each come the values that the refusal offers.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = _beside_others(Path(folder))
        file.write_text(text, errors="replace")
        words: Sequence[str | Path] = ("check", file)
        if cluster:
            words = ("submit", _file_of(cluster), str(file), "--dry-run", *_ACCOUNT)
        answer = command(*words)
        if answer.error is not None or answer.status == 0:
            return {}
        lines = [_without_file(line, file) for line in answer.lines]
        found = {_place(line, document) or _absent(line): _offered(line) for line in lines}
        return {place: offered for place, offered in found.items() if place}


def _file_of(cluster: str) -> Path:
    return ROOT / "clusters" / f"{cluster}.yaml"


def _beside_others(folder: Path) -> Path:
    """Return the place of a cluster file among others, which its pipeline may name."""
    (folder / "clusters").mkdir()
    for other in sorted((ROOT / "clusters").glob("*.yaml")):
        (folder / "clusters" / other.name).symlink_to(other)
    return folder / "clusters" / "fuzz.yaml"


def _checked(answer: Answer, file: Path) -> Iterator[Finding]:
    yield from _ended(answer, "check", (0, 1))
    if answer.error is None and answer.seconds > SECONDS:
        yield Finding("check: takes too long", f"{answer.seconds:.1f} s")
    yield from _said(answer, "check", _value(file), file)


def _planned(file: Path) -> Iterator[Finding]:
    for words, statuses in (
        (("plan", file, "--json", "--at", "2020-01-01T00:00Z"), (0, 2)),
        (("plan", file, "--at", "2020-01-01T00:00Z"), (0, 2)),
    ):
        answer = command(*words)
        name = f"{words[0]} of what check takes"
        found = [*_ended(answer, name, statuses)]
        yield from found
        if not found and "--json" in words:
            json.loads(answer.stdout)


def _jobs(file: Path) -> Iterator[Finding]:
    cluster = read(file).cluster
    assert cluster is not None
    for name in cluster.jobs:
        answer = command("submit", file, name, "--dry-run", *_ACCOUNT)
        yield from _rendered(answer, "submit", _value(file), file)


def _rendered(answer: Answer, name: str, document: object, file: Path) -> Iterator[Finding]:
    found = [*_ended(answer, name, (0, 1))]
    yield from found
    if not found and answer.status == 1:
        yield from _said(answer, name, document, file)
    elif not found:
        yield from _read_alike(answer.stdout, name)


def _synthesized(file: Path, folder: Path, *, linted: bool) -> Iterator[Finding]:
    try:
        with _at_most(_SECONDS_FOR_ALL):
            assembly = synthesize(file, folder)
    except (Exception, TooLongError) as error:
        yield _thrown(error, "synthesis of what check takes")
        return
    for manifest in sorted((folder / "dist").glob("*.yaml")):
        yield from _read_alike(manifest.read_text(encoding="utf-8"), "manifests")
    if linted:
        for stack, template in assembly.templates.items():
            for line in lint(json.dumps(template), region=assembly.plan.region):
                rule = line.lstrip("[").partition(":")[0]
                if rule not in _ACCEPTED_RULES:
                    yield Finding(f"cfn-lint: {rule}", f"{stack}: {line}")


def _ended(answer: Answer, name: str, statuses: Iterable[int]) -> Iterator[Finding]:
    """Yield what is wrong with how a command ended."""
    if answer.error is not None:
        yield _thrown(answer.error, name)
    elif answer.status not in statuses:
        said = re.sub(r"[\d/][^\s:]*", "", answer.lines[0])[:80]
        yield Finding(f"{name}: exits with {answer.status}: {said}", answer.stderr)


def _said(answer: Answer, name: str, document: object, file: Path) -> Iterator[Finding]:
    """Yield what is wrong with the lines that a command said."""
    if answer.error is not None:
        return
    for line in (*answer.lines, *answer.stdout.rstrip("\n").split("\n")):
        if not line.replace("\t", " ").isprintable():
            yield Finding(f"{name}: prints control characters", ascii(line))
            return
    if answer.status == 0:
        return
    for line in answer.lines:
        text = _without_file(line, file)
        shape = re.sub(r"'[^']*'|\"[^\"]*\"|\d+|\S*\.\S*|\w+-\S+", "…", text)[:60]
        if "; " not in text and "did you mean" not in text:
            yield Finding(f"{name}: names no way out: {shape}", line)
        elif isinstance(document, dict) and not (
            _place(text, cast("object", document)) or _SPAN.match(line)
        ):
            first = text.partition(":")[0]
            if " " in first or not first:
                yield Finding(f"{name}: names no key: {shape}", line)


def _without_file(line: str, file: Path) -> str:
    """Return ``line`` without the file and the place in it."""
    named = (re.escape(str(each)) for each in (file, file.relative_to(file.parents[1])))
    return re.sub(rf"^(?:{'|'.join(named)})(?::\d+:\d+)?: ", "", line)


def _place(line: str, document: object) -> Place:
    """Return the place that ``line`` begins with, as far as ``document`` has it."""
    for key in _keys_of(document):
        word = f"[{label(document, key)}]" if isinstance(key, int) else str(key)
        rest = line.removeprefix(word)
        if rest[:1] in (".", ":", "[") and len(rest) < len(line):
            inner = rest.removeprefix(".")
            return (key, *(() if rest[1:2] == " " else _place(inner, at(document, (key,)))))
    return ()


def _absent(line: str) -> Place:
    """Return the key at the top of a file that ``line`` misses."""
    key, said, _ = line.partition(": missing")
    return (key,) if said and key.isidentifier() else ()


def _offered(line: str) -> Sequence[str]:
    """Return the words that ``line`` offers."""
    found = re.search(r"(?:name one of|known:|write) ([\w-]+(?:, [\w-]+)*)$", line)
    return found[1].split(", ") if found else ()


def _keys_of(value: object) -> Iterable[str | int]:
    """Return the keys of a part of a document, the longest first."""
    if isinstance(value, dict):
        return sorted(cast("dict[str, object]", value), key=lambda key: -len(str(key)))
    return range(len(cast("list[object]", value))) if isinstance(value, list) else ()


def _value(file: Path) -> object:
    try:
        return yaml.load(file.read_text(encoding="utf-8"), yaml.CSafeLoader)
    except Exception:  # whatever it is, the product has to say it better
        return None


def _read_alike(text: str, name: str) -> Iterator[Finding]:
    """Yield where readers of YAML 1.1 and 1.2 disagree on ``text``."""
    for first, second in zip(_as_of_1_1(text), _as_of_1_2(text), strict=True):
        for place, one, other in _differences(first, second, ""):
            shown = (
                f"{place}: {one!r} ({type(one).__name__}) and {other!r} ({type(other).__name__})"
            )
            yield Finding(f"{name}: YAML 1.1 and 1.2 disagree", shown)
            return


def _as_of_1_1(text: str) -> list[object]:
    return [*yaml.load_all(text, Loader=yaml.CSafeLoader)]


def _as_of_1_2(text: str) -> list[object]:
    reader = YAML(typ="safe", pure=True)
    reader.version = (1, 2)
    return [*reader.load_all(text)]


def _differences(one: object, other: object, at: str) -> Iterator[tuple[str, object, object]]:
    if isinstance(one, dict) and isinstance(other, dict):
        first, second = cast("dict[Any, object]", one), cast("dict[Any, object]", other)
        if first.keys() != second.keys():
            yield at, [*first], [*second]
            return
        for key, value in first.items():
            yield from _differences(value, second[key], f"{at}.{key}")
    elif isinstance(one, list) and isinstance(other, list):
        pairs = zip(cast("list[object]", one), cast("list[object]", other), strict=False)
        for number, (value, second) in enumerate(pairs):
            yield from _differences(value, second, f"{at}.{number}")
        if len(cast("list[object]", one)) != len(cast("list[object]", other)):
            yield at, one, other
    elif type(cast("object", one)) is not type(other) or (one != other and one == one):
        yield at, one, other


def _thrown(error: BaseException, name: str) -> Finding:
    frames = traceback.extract_tb(error.__traceback__)
    own = [each for each in frames if any(f"/{part}/" in each.filename for part in _OWN_CODE)]
    own = [each for each in own if "/site-packages/" not in each.filename]
    where = ""
    if own:
        where = f" in {Path(own[-1].filename).stem}.{own[-1].name}"
    if isinstance(error, TooLongError):
        where = ""
    kind = "refusal" if isinstance(error, UltrascaleError) else type(error).__name__
    trace = "".join(traceback.format_exception(error, limit=-6))
    return Finding(f"{name}: {kind}{where}", trace[-3_000:])


@contextlib.contextmanager
def _at_most(seconds: float) -> Generator[None]:
    def stop(signal_number: int, frame: FrameType | None) -> None:
        raise TooLongError(f"not ended after {seconds:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
