"""Images of vLLM in examples and pages: without known advisories, or with them beside the name."""

import re
from pathlib import Path

from packaging.version import Version

from tests.support.cases import for_each
from tests.support.folders import ROOT

# The first release behind the ranges of all advisories of vLLM that were known on 2026-11-28.
# Sources: https://osv.dev/list?ecosystem=PyPI&q=vllm and GHSA-5r3c-5x4v-8gjh, fixed in 0.33.0, by
# https://github.com/munimtechnologies/ai-stack-advisories/releases/tag/v1.2.6
SOUND = Version("0.33.0")
# Of AWS's images, whose tags do not say it.
# Source: https://github.com/aws/deep-learning-containers/pull/6661
RELEASES = {"server-cuda-v2.4": "0.27.1"}
IMAGE = re.compile(r"[\w./-]+/(?:vllm|vllm-openai|[\w-]*vllm-neuronx):([\w.-]+)")
FILES = [
    file
    for folder in ("clusters", "jobs", "examples", "docs", "lib", "charts", "ultrascale/init")
    for kind in ("md", "yaml", "py")
    for file in sorted((ROOT / folder).glob(f"**/*.{kind}"))
]
NAMED = {
    f"{file.relative_to(ROOT)}:{number}": (file, line, found[0], found[1])
    for file in FILES
    for number, line in enumerate(file.read_text().splitlines(), start=1)
    for found in IMAGE.finditer(line)
}


def test_the_examples_of_services_are_looked_at() -> None:
    assert {file.name for file, *_ in NAMED.values()} >= {"serving.yaml", "llm-kueue.yaml"}


@for_each(NAMED)
def test_an_image_under_advisories_is_named_with_them(
    file: Path, line: str, image: str, tag: str
) -> None:
    release = RELEASES.get(tag) or tag.removeprefix("v")
    numbers = re.match(r"\d+\.\d+\.\d+", release)
    assert numbers, f"{image}: say which release of vLLM it has"
    if Version(numbers[0]) >= SOUND:
        return
    page = (ROOT / "docs/serving.md").read_text().splitlines()
    explained = any(image in row and row.endswith("| [known](#advisories) |") for row in page)
    assert explained, f"{image} has vLLM {release}: name {SOUND} or newer, or say why it stays"
    assert file.suffix == ".md" or "docs/serving.md" in line, f"{image}: say where that stands"
