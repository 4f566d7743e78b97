"""Fingerprints of each resource and object that the cluster files become, and their stacks' order.

`python -m tests.support.goldens` writes the fingerprints; with the argument FOLDER it writes the
masked documents themselves into FOLDER, so that two commits can be compared by `diff -r`.
"""

import hashlib
import json
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.support.assembly import Assembly, synthesize
from tests.support.folders import DATA, ROOT
from ultrascale.deploy.assembly import read_assembly

FILES = ("auto-mode", "hybrid-hyperpod", "mixed-capacity", "trainium-bert", "ultra-100k")
FOLDER = DATA / "golden"

# They follow from the bytes of our own sources: of an asset, of an image, of a function's code.
_MASKED = (
    (re.compile(r"\b[0-9a-f]{64}\b"), "<asset>"),
    (re.compile(r"(?<=:)(neuron|nvidia|cpu|tensorboard|backend)?-?[0-9a-f]{12}\b"), "<tag>"),
    (re.compile(r"\b[0-9a-f]{12}(?=\")"), "<tag>"),
    (re.compile(r"(CurrentVersion)[0-9A-Fa-f]{40}"), r"\1<hash>"),
    (re.compile(r"[0-9A-F]{8}(?=<hash>)"), "<hash>"),
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


def lines(assembly: Assembly) -> list[str]:
    """Return a line for each stack's order, and one for each document: fingerprint and name."""
    return [
        *dependencies(assembly),
        *(
            f"{hashlib.sha256(text.encode()).hexdigest()[:16]}  {name}"
            for name, text in documents(assembly).items()
        ),
    ]


def golden(name: str) -> Path:
    """Return the file that holds the fingerprints of a cluster file."""
    return FOLDER / f"resources-{name}.txt"


def main() -> None:
    """Write the fingerprints, or the documents themselves."""
    for name in FILES:
        with tempfile.TemporaryDirectory() as folder:
            assembly = synthesize(ROOT / "clusters" / f"{name}.yaml", Path(folder))
            written = lines(assembly)
        if len(sys.argv) > 1:
            target = Path(sys.argv[1]) / name
            target.mkdir(parents=True, exist_ok=True)
            for place, text in documents(assembly).items():
                (target / re.sub(r"[^\w.-]+", "_", place)[:180]).write_text(f"{place}\n{text}\n")
        else:
            golden(name).write_text("\n".join(written) + "\n")


if __name__ == "__main__":
    main()
