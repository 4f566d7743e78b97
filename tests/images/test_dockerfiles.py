"""The Dockerfiles. No Docker runs in the tests: these are read, and checked by hadolint."""

import re
import subprocess
import sysconfig
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.support.folders import ROOT
from ultrascale.catalog import versions
from ultrascale.config.images import DOCKERFILES
from ultrascale.plan.delivery.build_context import SENT, SOURCES

BASES = {
    "neuron": ("python", "pytorch-neuronx"),
    "nvidia": ("python", "pytorch-cuda"),
    "posttrain": ("python", "pytorch-cuda"),
    "cpu": ("python", "pytorch-cpu"),
    "tensorboard": ("python", "python"),
    "backend": ("python", "python"),
}
REQUIREMENTS = sorted((ROOT / "images").rglob("*requirements.txt"))
HADOLINT = Path(sysconfig.get_path("scripts")) / "hadolint"

each = pytest.mark.parametrize("name", BASES)


def path(name: str) -> Path:
    return ROOT / "images" / name / "Dockerfile"


def instructions(name: str) -> Iterator[tuple[str, str]]:
    """Yield each instruction of a Dockerfile and its argument, on one line."""
    lines = (line for line in path(name).read_text().splitlines() if not line.startswith("#"))
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        if line.strip():
            instruction, _, argument = line.partition(" ")
            yield instruction, argument


def arguments(name: str, instruction: str) -> list[str]:
    return [argument for found, argument in instructions(name) if found == instruction]


def requirements(file: Path) -> dict[str, str]:
    """Return the pinned version of each package in a file."""
    lines = [line for line in file.read_text().splitlines() if not line.startswith("#")]
    pins = [
        re.fullmatch(r"([a-z0-9-]+)==(\S+)( --hash=sha256:[0-9a-f]{64})+", line) for line in lines
    ]
    assert all(pins), file
    return {pin[1]: pin[2] for pin in pins if pin}


def test_every_dockerfile_can_be_asked_for_and_no_other() -> None:
    folders = {file.parent.name for file in (ROOT / "images").glob("*/Dockerfile")}

    assert folders == BASES.keys() == SOURCES.keys()
    assert {*DOCKERFILES} - {"none"} == folders


@each
def test_every_base_is_one_that_the_catalog_pins(name: str) -> None:
    bases = [
        next(word for word in argument.split() if not word.startswith("--"))
        for argument in arguments(name, "FROM")
    ]

    assert bases == [versions.image(base).reference for base in BASES[name]]


@each
def test_a_container_does_not_run_as_root(name: str) -> None:
    last = [argument for found, argument in instructions(name) if found in {"FROM", "USER"}][-1]

    assert last == "10000:10000"


@each
def test_packages_are_pinned_by_hash_and_come_from_an_index_that_a_build_can_set(
    name: str,
) -> None:
    for argument in arguments(name, "RUN"):
        for command in argument.split("&&"):
            if " pip install " in command:
                assert "--no-deps" in command
                assert "--require-hashes" in command or "--no-index" in command
            assert not re.search(r"\b(apt-get|apt|dnf|yum|curl|wget)\b", command)
        if "--requirement" in argument:
            assert argument.startswith("--mount=type=secret,id=pip.conf,target=/etc/pip.conf ")
        else:
            assert " pip " not in argument or "--no-index" in argument


@each
def test_everything_that_is_copied_is_part_of_the_tag(name: str) -> None:
    copied = [argument for argument in arguments(name, "COPY") if "--from=" not in argument]
    sources = {source for argument in copied for source in argument.split()[:-1]}
    # Docker is sent no more of a project's folder than `SENT` names.
    sent = {
        path
        for source in sources
        for path in [part for part in SENT if part.startswith(f"{source}/")] or [source]
    }

    assert sent == {f"images/{name}/requirements.txt", *SOURCES[name]}


@pytest.mark.parametrize("name", ["tensorboard", "backend"])
def test_nothing_of_another_platform_runs_while_an_image_for_two_is_built(name: str) -> None:
    last = [found for found, _ in instructions(name)]
    own = last[len(last) - last[::-1].index("FROM") :]

    assert "RUN" not in own


@pytest.mark.parametrize("name", ["neuron", "nvidia", "posttrain", "cpu"])
def test_what_the_base_brings_stays(name: str) -> None:
    pins = requirements(ROOT / f"images/{name}/requirements.txt")

    assert not {"torch", "numpy"} & pins.keys()
    assert any("torch.__version__.startswith" in run for run in arguments(name, "RUN"))
    if name == "neuron":
        # Of its compiler. TensorBoard 2.21 asks for protobuf 6.31 or later.
        assert "protobuf" not in pins
        assert pins["tensorboard"] == "2.20.0"


@pytest.mark.parametrize("name", ["neuron", "nvidia", "posttrain", "cpu"])
def test_the_image_has_what_the_training_program_asks_for(name: str) -> None:
    project = tomllib.loads((ROOT / "training" / "pyproject.toml").read_text())["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    if name != "nvidia":
        # TorchTitan trains on GPUs. The fork for Neuron needs another torch than that image has.
        del extras["titan"], extras["hyperpod"]
    if name != "posttrain":
        del extras["posttrain"]
    asked = [*project["dependencies"], *(each for extra in extras.values() for each in extra)]
    pins = requirements(ROOT / f"images/{name}/requirements.txt")

    for requirement in map(Requirement, asked):
        # Every base has numpy, beside the SciPy that it brings.
        if requirement.name != "numpy":
            assert requirement.specifier.contains(pins[requirement.name]), requirement


def test_one_package_has_one_version_wherever_a_base_does_not_forbid_it() -> None:
    versions_of: dict[str, set[str]] = {}
    for file in REQUIREMENTS:
        pins = requirements(file)
        assert pins, file
        for package, version in pins.items():
            versions_of.setdefault(package, set()).add(version)

    assert {name for name, found in versions_of.items() if len(found) > 1} == {
        "tensorboard",
        "lark",
    }


@each
def test_hadolint_finds_nothing(name: str) -> None:
    answer = subprocess.run(
        [HADOLINT, path(name)], capture_output=True, text=True, check=False, timeout=60
    )

    assert (answer.returncode, answer.stdout) == (0, "")
