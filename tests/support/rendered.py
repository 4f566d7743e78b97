"""Each resource and object that the cluster files and their jobs become, as text.

`python -m tests.support.rendered FOLDER` writes them into FOLDER without what follows from the
bytes of our own sources, and the order of the stacks, so that `diff -r` compares two commits.
Without a folder it compares their hashes with those of `tests/data/rendered.txt`, which
`--record` writes anew, and shows what changed.
"""

import argparse
import contextlib
import io
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from unittest import mock

import yaml

from tests.support.assembly import Assembly, synthesize
from tests.support.command_line import NOW
from tests.support.folders import DATA, ROOT
from tests.support.hashed import Hashed
from ultrascale.cli import main as ultrascale
from ultrascale.cli import options as cli_options
from ultrascale.deploy.cdk import read_assembly

HASHES = Hashed(DATA / "rendered.txt")
FILES = (
    "auto-mode",
    "existing-estate",
    "hybrid-hyperpod",
    "llm-kueue",
    "mixed-capacity",
    "post-training",
    "ray",
    "serving",
    "trainium-bert",
    "ultra-100k",
)

# They follow from the bytes of our own sources: of an asset, an image, a function's code, and of
# the packed program of a fabric check.
_MASKED = (
    (re.compile(r"\b[0-9a-f]{64}\b"), "<asset>"),
    (re.compile(r"(?<=:)(neuron|nvidia|cpu|tensorboard|backend)?-?[0-9a-f]{12}\b"), "<tag>"),
    (re.compile(r"\b[0-9a-f]{12}(?=\")"), "<tag>"),
    (re.compile(r"(CurrentVersion)[0-9A-Fa-f]{40}"), r"\1<hash>"),
    (re.compile(r"[0-9A-F]{8}(?=<hash>)"), "<hash>"),
    (re.compile(r"(name: FABRIC_PROGRAM\n +value: )\S+"), r"\1<program>"),
)


def documents(assembly: Assembly) -> Mapping[str, str]:
    """Return each resource, output and object as JSON text, by a name that says where it stands."""
    named: dict[str, object] = {}
    for stack, template in assembly.templates.items():
        for section, entries in template.items():
            if isinstance(entries, str):
                named[f"{stack} {section}"] = entries
            else:
                named |= {f"{stack} {section} {id}": body for id, body in entries.items()}
    for chart, objects in assembly.charts.items():
        for number, body in enumerate(objects):
            metadata = body["metadata"]
            name = f"{metadata.get('namespace', '-')}/{metadata['name']}"
            named[f"{chart} {number} {body['kind']} {name}"] = body
    return {
        masked(name): masked(json.dumps(body, sort_keys=True, indent=1))
        for name, body in named.items()
    }


def masked(text: str) -> str:
    """Return ``text`` without what follows from the bytes of our own sources."""
    for pattern, mask in _MASKED:
        text = pattern.sub(mask, text)
    return text


def dependencies(assembly: Assembly) -> Iterator[str]:
    """Yield a line for each stack: its place in the assembly, its name, the stacks it waits for."""
    for number, stack in enumerate(read_assembly(assembly.folder / "cdk.out")):
        yield " ".join([f"stack {number:2} {stack.name} after:", *sorted(stack.needs)])


def jobs(cluster: Path) -> Iterator[str]:
    """Yield the jobs that a cluster file names, and the files of ``jobs/``."""
    yield from yaml.safe_load(cluster.read_text()).get("jobs", {})
    yield from (f"jobs/{file.name}" for file in sorted((ROOT / "jobs").glob("*.yaml")))


# Jobs of a cluster file may leave the image and the script to whoever sends them.
_ADDED = (
    (),
    ("--image=example.com/trainer:1",),
    ("--image=example.com/trainer:1", "--set=script=t"),
)


def submitted(cluster: Path, job: str) -> str:
    """Return the objects of a job, with as few options as it takes, or else all mistakes."""
    answers = [dry_run(cluster, job, *options) for options in _ADDED]
    return next((text for text in answers if text.endswith("status 0\n")), "".join(answers))


def dry_run(cluster: Path, job: str, *options: str) -> str:
    """Return what `submit --dry-run` prints of a job, and its exit status."""
    arguments = ["submit", f"clusters/{cluster.name}", job, "--dry-run", "--account=111122223333"]
    arguments += options
    printed = io.StringIO()
    try:
        with (
            mock.patch.dict(os.environ, {"COLUMNS": "1000"}),
            mock.patch.object(cli_options, "now", return_value=NOW),
            mock.patch.object(sys, "argv", ["ultrascale", *arguments]),
            contextlib.chdir(ROOT),
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed),
        ):
            ultrascale()
        status: object = 0
    except SystemExit as end:
        status = end.code or 0
    return masked(f"{printed.getvalue()}exit status {status}\n")


def files(name: str, assembly: Assembly) -> Mapping[str, str]:
    """Return the documents of a cluster file and of its jobs, by names that files may have."""
    cluster = ROOT / "clusters" / f"{name}.yaml"
    return {
        "order": "\n".join(dependencies(assembly)) + "\n",
        **{
            re.sub(r"[^\w.-]+", "_", place)[:180]: f"{place}\n{text}\n"
            for place, text in documents(assembly).items()
        },
        **{f"job_{Path(job).stem}": submitted(cluster, job) for job in jobs(cluster)},
    }


def texts(name: str, assembly: Assembly) -> Mapping[str, str]:
    """Return `files` as one text for each stack, chart and job."""
    groups: dict[str, str] = {}
    for file, text in sorted(files(name, assembly).items()):
        group = file if file.startswith("job_") else file.split("_")[0]
        label = f"{name} {group}"
        groups[label] = groups.get(label, "") + text
    return groups


def synthesized() -> Iterator[tuple[str, Assembly]]:
    """Yield each cluster file by its name and what it becomes."""
    for name in FILES:
        with tempfile.TemporaryDirectory() as folder:
            file = ROOT / "clusters" / f"{name}.yaml"
            yield name, synthesize(file, Path(folder), validated=False)


def main() -> None:
    """Write the documents, or compare or record what they hash to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help="where the documents are written")
    parser.add_argument("--record", action="store_true", help=f"write {HASHES.file.name} anew")
    arguments = parser.parse_args()
    if arguments.folder:
        for name, assembly in synthesized():
            target = arguments.folder / name
            target.mkdir(parents=True, exist_ok=True)
            for file, text in files(name, assembly).items():
                (target / file).write_text(text)
        return
    rendered: dict[str, str] = {}
    for name, assembly in synthesized():
        rendered |= texts(name, assembly)
    if arguments.record:
        HASHES.record(rendered)
    elif changes := HASHES.changes(rendered):
        sys.exit(f"{changes}changed since {HASHES.file.relative_to(ROOT)} was recorded")


if __name__ == "__main__":
    main()
