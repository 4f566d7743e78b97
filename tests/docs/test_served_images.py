"""Images of vLLM in examples and pages: without known advisories, or with them beside the name."""

import re
from pathlib import Path

from packaging.version import Version

from tests.support.cases import for_each
from tests.support.folders import ROOT
from ultrascale.catalog.advisories import advisories, release_in
from ultrascale.catalog.registries import parse_reference

# The first release behind the ranges of all known advisories.
SOUND = max(Version(advisory.fixed) for advisory in advisories() if advisory.fixed)
IMAGE = re.compile(r"[\w./-]+/(?:vllm|vllm-openai|[\w-]*vllm-neuronx):[\w.-]+")
FILES = [
    file
    for folder in ("clusters", "jobs", "examples", "docs", "lib", "charts", "ultrascale/init")
    for kind in ("md", "yaml", "py")
    for file in sorted((ROOT / folder).glob(f"**/*.{kind}"))
]
NAMED = {
    f"{file.relative_to(ROOT)}:{number}": (file, line, found[0])
    for file in FILES
    for number, line in enumerate(file.read_text().splitlines(), start=1)
    for found in IMAGE.finditer(line)
}


def test_the_examples_of_services_are_looked_at() -> None:
    assert {file.name for file, *_ in NAMED.values()} >= {"serving.yaml", "llm-kueue.yaml"}


@for_each(NAMED)
def test_an_image_under_advisories_is_named_with_them(file: Path, line: str, image: str) -> None:
    reference = parse_reference(image.lower())
    release = reference and release_in(reference, "vllm")
    assert release, f"{image}: say which release of vLLM it has"
    if Version(release) >= SOUND:
        return
    page = (ROOT / "docs/serving.md").read_text().splitlines()
    explained = any(image in row and row.endswith("| [known](#advisories) |") for row in page)
    assert explained, f"{image} has vLLM {release}: name {SOUND} or newer, or say why it stays"
    assert file.suffix == ".md" or "docs/serving.md" in line, f"{image}: say where that stands"
