"""Synthesizes all cluster files with every validation, and judges what they become.

`python -m tests.support.examples` fails on a finding of the CDK, of the AwsSolutions rules and of
ours, of cfn-lint in the cluster's Region, on a type of resource whose permissions the catalog
lacks, and on a rendered object that is not as `rendered.txt` has it.
"""

import copy
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

from tests.support.folders import ROOT
from ultrascale.errors import UltrascaleError
from ultrascale.node import use_node

use_node()

from tests.support import handler_schemas, rendered  # noqa: E402
from tests.support.assembly import Assembly, Document, synthesize  # noqa: E402
from tests.support.template_lint import lint  # noqa: E402
from ultrascale.synthesis import _findings  # noqa: E402  # pyright: ignore[reportPrivateUsage]


def judge(name: str, folder: Path) -> tuple[list[str], Mapping[str, str]]:
    """Synthesize a cluster file into ``folder``; return its mistakes, and what it renders."""
    begun = time.monotonic()
    assembly = synthesize(ROOT / "clusters" / f"{name}.yaml", folder, builtin=True)
    lines = [f"{name}: {line}" for line in mistakes(assembly)]
    texts = rendered.texts(name, replace(assembly, templates=without_paths(assembly)))
    print(f"{name}: {time.monotonic() - begun:.0f} s", flush=True)
    return lines, texts


def without_paths(assembly: Assembly) -> Mapping[str, Document]:
    """Return the templates without the paths of constructs, which only this synthesis writes."""
    templates = copy.deepcopy(assembly.templates)
    for template in templates.values():
        for resource in template.get("Resources", {}).values():
            resource.get("Metadata", {}).pop("aws:cdk:path", None)
            if not resource.get("Metadata", True):
                del resource["Metadata"]
    return templates


def mistakes(assembly: Assembly) -> Iterator[str]:
    """Yield what validation, cfn-lint and the catalog say against an assembly."""
    yield from _findings(assembly.folder / "cdk.out")
    for file in sorted((assembly.folder / "cdk.out").glob("*.template.json")):
        for line in lint(file.read_text(), region=assembly.plan.region):
            yield f"{file.name}: {line}"
    try:
        handler_schemas.check(assembly.folder / "cdk.out")
    except UltrascaleError as error:
        yield str(error)


def main() -> int:
    """Judge all cluster files, two at once; return the exit status."""
    lines: list[str] = []
    texts: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folders = {name: Path(temporary, name) for name in rendered.FILES}
        # jsii's process is no child's to share.
        with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
            for found, objects in pool.map(judge, folders, folders.values()):
                lines += found
                texts |= objects
    if changes := rendered.HASHES.changes(texts):
        file = rendered.HASHES.file.relative_to(ROOT)
        lines.append(f"{changes}changed since {file} was recorded")
    print(*lines, sep="\n", end="\n" if lines else "", flush=True)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
