"""The evidence of an acceptance: a closed folder of files that anybody can check without us.

`checksums.txt` lists every file with its hash; the in-toto statement names the list's hash, and is
what a reader signs. Only times differ between two bundles of equal inputs and answers. Names of the
cluster and of accounts are salted hashes, unless the user keeps them: the salt is the run's id, so
somebody who suspects a name can confirm it.

Sources:
    https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md
    https://github.com/in-toto/attestation/blob/main/spec/predicates/test-result.md
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import scrypt, sha256
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote
from xml.etree import ElementTree as ET

import msgspec

from ultrascale.accept.model import Acceptance, Run
from ultrascale.catalog.tables import read_table
from ultrascale.documents import objects, parse_json, text
from ultrascale.errors import QuestionError, masked
from ultrascale.findings import State
from ultrascale.frozen import to_document
from ultrascale.new_files import write_new_files
from ultrascale.plan.facts import facts_of
from ultrascale.plan.needs.report import plan_needs
from ultrascale.plan.needs.tables import Tone, words_table
from ultrascale.release import VERSION
from ultrascale.report import render_page
from ultrascale.report.sections import Block, Section
from ultrascale.sbom import bill_of_materials, list_components

SUMMARY, CHECKSUMS, STATEMENT = "summary.json", "checksums.txt", "statement.intoto.json"
_TEST_RESULT = "https://in-toto.io/attestation/test-result/v0.1"
_ACCOUNTS = re.compile(r"(?:arn:[\w-]+:[\w-]*:[\w-]*:(\d{12}):|\b(\d{12})\.dkr\.ecr)")
# A line by which a program prints a variable of its environment.
_VARIABLE = re.compile(
    r"^\s*(?:export |declare -x )?(?:[A-Z_][A-Z0-9_]*|\w*proxy)=.*\n?", re.MULTILINE
)
_TONES: Mapping[str, Tone] = {"PASSED": "good", "WARNED": "warn", "FAILED": "bad"}
_UNSEEN: frozenset[State] = frozenset({"not run", "unknown", "warn"})


def input_hashes(file: Path, assembly: Path, manifests: Path) -> dict[str, Any]:
    """Return the hashes of the cluster file, of its templates and of its manifests."""
    templates = assembly.glob("*.template.json")
    return {
        "file": _digest(file.read_bytes()),
        "templates": _hashes(assembly, templates),
        "manifests": _hashes(manifests, (path for path in manifests.rglob("*") if path.is_file())),
    }


def refuse_output(folder: Path) -> None:
    """Refuse a folder for a bundle that has files, as they would be part of it.

    Raises:
        QuestionError: It is no folder, or it is not empty.
    """
    if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
        raise QuestionError([f"--output: {folder} is not an empty folder; name a new one"])


def documents_of(run: Run) -> dict[str, Any]:
    """Return the documents that follow from the file alone, by the names of their files.

    Ask before the checks run: what fails here would lose the evidence of what they cost.

    Raises:
        UltrascaleError: A component of the cluster cannot be listed.
    """
    components = list_components(run.plan, assembly=run.assembly, manifests=run.manifests)
    day = run.at.date()
    facts = [{**to_document(f), "expired": f.has_expired(day)} for f in facts_of(run.plan)]
    bill = bill_of_materials(run.plan.name, components)
    return {"plan.json": plan_needs(run.plan), "bom.json": bill, "facts.json": facts}


def write_bundle(
    folder: Path,
    run: Run,
    acceptance: Acceptance,
    documents: Mapping[str, Any],
    *,
    names: bool = False,
) -> None:
    """Write the evidence of a run.

    Args:
        folder: The folder to make; it may exist and be empty.
        run: The input of its checks.
        acceptance: Its results.
        documents: The answer of `documents_of`.
        names: Whether names of cluster and accounts stay as they are.

    Raises:
        UltrascaleError: The folder has files, or cannot be written to.
    """
    refuse_output(folder)
    needs, seen = documents["plan.json"], [_section(acceptance)]
    claims = [*_classes(acceptance)]
    summary = {
        **answers_of(run, acceptance),
        "measured": acceptance.kept.facts,
        "inputs": input_hashes(run.file, run.assembly, run.manifests),
    }
    documents = {SUMMARY: summary, "claims.json": claims, **documents}
    texts = {name: _json(document) for name, document in documents.items()}
    texts["report.html"] = render_page(needs, file=run.file.name, version=VERSION, seen=seen)
    texts |= {
        f"logs/{quote(name, safe='')}.log": masked(_VARIABLE.sub("", log))
        for name, log in acceptance.kept.logs.items()
    }
    if not names:
        hide = _hider(run, acceptance.id, texts.values())
        texts = {
            name: _json(_values(parse_json(content), hide)) if name in documents else hide(content)
            for name, content in texts.items()
        }
    summary = parse_json(texts[SUMMARY])
    texts["junit.xml"] = _junit(summary)
    contents = {name: content.encode() for name, content in sorted(texts.items())}
    listed = "".join(f"{_digest(content)}  {name}\n" for name, content in contents.items())
    contents[CHECKSUMS] = listed.encode()
    contents[STATEMENT] = _statement(summary, listed.encode()).encode()
    write_new_files(folder, contents)


def faults(folder: Path, today: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with a bundle; nothing for one as it was written.

    Args:
        folder: The bundle.
        today: Hashes of the file, templates and manifests of today.
    """
    paths = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*"))}
    if links := [name for name, path in paths.items() if path.is_symlink()]:
        yield f"links, which a bundle has none of: {', '.join(links)}"
        return
    # An empty folder is one too many.
    present = {name for name, p in paths.items() if not p.is_dir() or not any(p.iterdir())}
    if absent := {SUMMARY, CHECKSUMS, STATEMENT} - present:
        yield f"no bundle: {', '.join(sorted(absent))} is not there"
        return
    checksums = paths[CHECKSUMS].read_bytes()
    lines = checksums.decode(errors="replace").splitlines()
    listed = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    if more := present - {CHECKSUMS, STATEMENT} - listed.keys():
        yield f"files that are not of the bundle: {', '.join(sorted(more))}"
    if gone := listed.keys() - present:
        yield f"files that are gone: {', '.join(sorted(gone))}"
    changed = [
        name
        for name, digest in listed.items()
        if name in present and _digest(paths[name].read_bytes()) != digest
    ]
    if changed:
        yield f"changed files: {', '.join(changed)}"
        return
    try:
        summary = parse_json(paths[SUMMARY].read_bytes())
        statement = _statement(summary, checksums).encode()
    except (ValueError, KeyError, TypeError):
        yield f"{SUMMARY} is not that of a bundle"
        return
    if paths[STATEMENT].read_bytes() != statement:
        yield f"{STATEMENT} is not that of these files"
    yield from _differing_inputs(summary, today)


def _differing_inputs(summary: object, today: Mapping[str, Any]) -> Iterator[str]:
    if text(summary, "inputs", "file") != today["file"]:
        yield "the cluster file of today is another"
    for kind in ("templates", "manifests"):
        then = {text(entry, "sha256") for entry in objects(summary, "inputs", kind)}
        now = {entry["sha256"]: entry["name"] for entry in today[kind]}
        if then != now.keys():
            others = ", ".join(sorted(now[digest] for digest in now.keys() - then)[:5])
            yield f"the {kind} of today are others: {others or 'some are gone'}"


def answers_of(run: Run, acceptance: Acceptance) -> dict[str, Any]:
    """Return the results of a run as JSON has them."""
    return {
        "cluster": run.plan.name,
        "region": run.plan.region,
        "account": _account(run),
        "run": acceptance.id,
        "levels": [*acceptance.levels],
        "started": f"{acceptance.started:%Y-%m-%dT%H:%M:%SZ}",
        "ended": f"{acceptance.ended:%Y-%m-%dT%H:%M:%SZ}",
        "versions": dict(acceptance.versions),
        "result": _result(acceptance),
        "left": [*acceptance.left],
        "outcomes": [to_document(outcome) for outcome in acceptance.outcomes],
    }


def _account(run: Run) -> str | None:
    return run.account.id if run.account else run.plan.account


def _result(acceptance: Acceptance) -> str:
    if acceptance.has_passed:
        return "PASSED"
    states = {outcome.finding.state for outcome in acceptance.outcomes} - {"pass"}
    return "WARNED" if states and states <= _UNSEEN and not acceptance.left else "FAILED"


def _classes(acceptance: Acceptance) -> Iterator[dict[str, str]]:
    """Yield each claim with its class: how it was shown, by this run or before it.

    `claims.csv` has the rows of *What was shown* in SCOPE.md, the tests that prove each offline,
    and the level of an acceptance that shows it on a cluster.
    """
    states: dict[str, list[State]] = {}
    for outcome in acceptance.outcomes:
        states.setdefault(outcome.level, []).append(outcome.finding.state)
    passed = {level for level, all_ in states.items() if {*all_} == {"pass"}}
    server = acceptance.versions.get("server", "")
    for row in read_table("claims.csv", Path(__file__).parent):
        shown, by = (
            ("proven offline", row["tests"]) if row["tests"] else ("estimated", row["shown"])
        )
        if row["level"] in passed:
            is_api = row["level"] == "objects"
            shown, by = ("admitted by an API server" if is_api else "run on nodes"), server
        yield {"subject": row["subject"], "claim": row["claim"], "class": shown, "by": by}
        if missing := row["not_shown"]:
            yield {"subject": row["subject"], "claim": missing, "class": "not shown", "by": ""}


def _section(acceptance: Acceptance) -> Section:
    found = [(outcome.level, outcome.finding) for outcome in acceptance.outcomes]
    rows = [(level, f.check, f.subject, f.state, f.evidence) for level, f in found]
    shown = [tuple(claim.values()) for claim in _classes(acceptance)]
    result = _result(acceptance)
    tables = (
        (("level", "check", "subject", "state", "evidence"), rows, "Checks of this run."),
        (("subject", "claim", "class", "by"), shown, "What is claimed, and how it was shown."),
    )
    blocks = (
        Block(words_table(titles, cells).page(caption))
        for titles, cells, caption in tables
        if cells
    )
    return Section("acceptance", "Acceptance", tuple(blocks), _TONES[result], result.capitalize())


def _junit(summary: Mapping[str, Any]) -> str:
    """Return the checks as JUnit's XML: a check that was not run is an error, never a pass."""
    root = ET.Element("testsuite", name="ultrascale accept", tests=f"{len(summary['outcomes'])}")
    for outcome in summary["outcomes"]:
        found = outcome["finding"]
        case = ET.SubElement(root, "testcase", classname=outcome["level"])
        case.set("name", f"{found['check']} {found['subject']}".strip())
        case.set("time", f"{outcome['seconds']:.3f}")
        if found["state"] != "pass":
            kind = "error" if found["state"] in _UNSEEN else "failure"
            ET.SubElement(case, kind, message=found["state"]).text = found["evidence"]
    ET.indent(root)
    return f"{ET.tostring(root, encoding='unicode', xml_declaration=True)}\n"


def _statement(summary: Mapping[str, Any], checksums: bytes) -> str:
    tests: dict[str, list[str]] = {"passed": [], "warned": [], "failed": []}
    for outcome in summary["outcomes"]:
        found, state = outcome["finding"], outcome["finding"]["state"]
        name = "/".join(filter(None, (outcome["level"], found["check"], found["subject"])))
        tests["passed" if state == "pass" else "warned" if state in _UNSEEN else "failed"] += [name]
    inputs = summary["inputs"]
    used = [("cluster file", inputs["file"])] + [
        (entry["name"], entry["sha256"])
        for kind in ("templates", "manifests")
        for entry in inputs[kind]
    ]
    return _json(
        {
            "_type": "https://in-toto.io/Statement/v1",
            "subject": [{"name": CHECKSUMS, "digest": {"sha256": _digest(checksums)}}],
            "predicateType": _TEST_RESULT,
            "predicate": {
                "result": summary["result"],
                "configuration": [{"name": name, "digest": {"sha256": sha}} for name, sha in used],
                **{f"{word}Tests": names for word, names in tests.items()},
            },
        }
    )


def _hider(run: Run, salt: str, texts: Iterable[str]) -> Callable[[str], str]:
    """Return a function that puts hashes in the place of the names of cluster and accounts."""
    accounts = {
        account for content in texts for pair in _ACCOUNTS.findall(content) for account in pair
    }
    accounts = {*accounts, _account(run) or ""} - {""}
    hashes = {
        name: f"{kind}-{_salted(name, salt)}"
        for kind, names in (("account", sorted(accounts)), ("cluster", [run.plan.name]))
        for name in names
    }
    pattern = re.compile(rf"(?<![A-Za-z0-9])({'|'.join(map(re.escape, hashes))})(?![A-Za-z0-9])")
    return lambda content: pattern.sub(lambda match: hashes[match[0]], content)


def _salted(name: str, salt: str) -> str:
    # Slow by intent: an account has but twelve digits.
    return scrypt(name.encode(), salt=salt.encode(), n=2**14, r=8, p=1, dklen=6).hex()


def _values(value: Any, change: Callable[[str], str]) -> Any:  # noqa: ANN401 any JSON
    """Return a document with its texts changed; keys stay, and numbers."""
    if isinstance(value, dict):
        named = cast("dict[str, Any]", value)
        return {key: _values(item, change) for key, item in named.items()}
    if isinstance(value, list):
        return [_values(item, change) for item in cast("list[Any]", value)]
    return change(value) if isinstance(value, str) else value


def _hashes(folder: Path, paths: Iterable[Path]) -> list[dict[str, str]]:
    return [
        {"name": path.relative_to(folder).as_posix(), "sha256": _digest(path.read_bytes())}
        for path in sorted(paths)
    ]


def _json(document: object) -> str:
    encoded = msgspec.json.encode(document, enc_hook=str)
    return f"{json.dumps(parse_json(encoded), indent=2, ensure_ascii=False)}\n"


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()
