"""Each resource and object that the cluster files become, as text.

`python -m tests.support.rendered FOLDER` writes them into FOLDER without what follows from the
bytes of our own sources, and the order of the stacks, so that `diff -r` compares two commits.
"""

import json
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.support.assembly import Assembly, synthesize
from tests.support.folders import ROOT
from ultrascale.deploy.assembly import read_assembly

FILES = (
    "auto-mode",
    "existing-estate",
    "hybrid-hyperpod",
    "llm-kueue",
    "mixed-capacity",
    "serving",
    "trainium-bert",
    "ultra-100k",
)

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


def main() -> None:
    """Write the documents of each cluster file into a folder of its name."""
    folder = Path(sys.argv[1])
    for name in FILES:
        target = folder / name
        target.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as written:
            assembly = synthesize(ROOT / "clusters" / f"{name}.yaml", Path(written))
            (target / "order").write_text("\n".join(dependencies(assembly)) + "\n")
        for place, text in documents(assembly).items():
            (target / re.sub(r"[^\w.-]+", "_", place)[:180]).write_text(f"{place}\n{text}\n")


if __name__ == "__main__":
    main()
