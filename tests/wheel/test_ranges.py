"""The wheel with the oldest and with the newest versions of the libraries that its ranges allow."""

import json
import shutil
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.support.folders import ROOT
from tests.support.installed import Installed, dependencies_of, install, templates_of, uv

pytestmark = pytest.mark.wheel

EXAMPLE = "trainium-bert"
RANGES = ("oldest", "newest")


@pytest.fixture(scope="module")
def ranged(outside: Path, wheel: Path) -> dict[str, Installed]:
    needs = dependencies_of(wheel)
    return {
        "oldest": install(outside / "oldest", *needs, wheel, resolution="lowest-direct"),
        "newest": install(outside / "newest", *needs, wheel),
    }


@pytest.fixture(scope="module")
def synthesized(ranged: dict[str, Installed], outside: Path) -> dict[str, Path]:
    """An example, synthesized in both."""
    folders: dict[str, Path] = {}
    for name, environment in ranged.items():
        folder = outside / "ranges" / name
        folder.mkdir(parents=True)
        shutil.copy(ROOT / "clusters" / f"{EXAMPLE}.yaml", folder)
        environment.run("synth", f"{EXAMPLE}.yaml", cwd=folder)
        folders[name] = folder
    return folders


def versions(environment: Installed, folder: Path) -> dict[str, Version]:
    script = (
        "import json, importlib.metadata as m; "
        "print(json.dumps({d.name: d.version for d in m.distributions()}))"
    )
    found = json.loads(environment.run(environment.python, "-c", script, cwd=folder).stdout)
    return {canonicalize_name(name): Version(version) for name, version in found.items()}


def test_the_oldest_versions_are_those_that_the_ranges_begin_with(
    ranged: dict[str, Installed], wheel: Path, tmp_path: Path
) -> None:
    """If a library was never released with a range's first number, the next release counts."""
    found = versions(ranged["oldest"], tmp_path)

    for requirement in map(Requirement, dependencies_of(wheel)):
        (lowest,) = (Version(s.version) for s in requirement.specifier if s.operator == ">=")
        assert found[canonicalize_name(requirement.name)].release[:2] == (*lowest.release, 0)[:2]


@pytest.mark.parametrize("name", RANGES)
def test_an_example_synthesizes_and_is_planned(
    name: str, ranged: dict[str, Installed], synthesized: dict[str, Path]
) -> None:
    folder = synthesized[name]

    ranged[name].run("check", f"{EXAMPLE}.yaml", cwd=folder)
    ranged[name].run("plan", f"{EXAMPLE}.yaml", "--json", cwd=folder)
    job = ROOT / "jobs" / "bert-pretrain.yaml"
    ranged[name].run(
        "submit", f"{EXAMPLE}.yaml", str(job), "--dry-run", "--account", "111122223333", cwd=folder
    )
    assert templates_of(folder / "cdk.out")


@pytest.mark.parametrize("name", RANGES)
def test_a_stack_has_the_resources_that_it_has_with_the_tested_versions(
    name: str, synthesized: dict[str, Path], installed: Installed, outside: Path
) -> None:
    """Digests of files may differ: a library brings a newer function of its own."""
    tested = outside / "ranges" / "tested"
    if not tested.exists():
        tested.mkdir(parents=True)
        shutil.copy(ROOT / "clusters" / f"{EXAMPLE}.yaml", tested)
        installed.run("synth", f"{EXAMPLE}.yaml", cwd=tested)

    def resources(folder: Path) -> dict[str, set[tuple[str, str]]]:
        return {
            stack: {(key, each["Type"]) for key, each in template["Resources"].items()}
            for stack, template in templates_of(folder / "cdk.out").items()
        }

    assert resources(synthesized[name]) == resources(tested)


def test_other_versions_than_the_tested_ones_are_told_in_one_line(
    ranged: dict[str, Installed], tmp_path: Path
) -> None:
    said = ranged["oldest"].run("--version", cwd=tmp_path).stdout.splitlines()

    assert len([line for line in said if "templates may differ" in line]) == 1


def test_who_checks_and_sends_jobs_installs_no_cdk(
    wheel: Path, outside: Path, tmp_path: Path
) -> None:
    light = install(outside / "light", "-c", ROOT / "constraints.txt", wheel)
    shutil.copy(ROOT / "clusters" / f"{EXAMPLE}.yaml", tmp_path)
    job = ROOT / "jobs" / "bert-pretrain.yaml"

    assert not (light.site_packages / "aws_cdk").exists()
    for command in ("check", "plan", "report"):
        light.run(command, f"{EXAMPLE}.yaml", cwd=tmp_path)
    account = ("--dry-run", "--account", "111122223333")
    light.run("submit", f"{EXAMPLE}.yaml", str(job), *account, cwd=tmp_path)
    for command in ("synth", "sbom"):
        refused = light.run(command, f"{EXAMPLE}.yaml", cwd=tmp_path, status=1)
        assert "this needs the CDK, which is not installed; pip install" in refused.stderr


def test_the_lock_file_installs_all_that_the_wheel_needs(
    wheel: Path, outside: Path, tmp_path: Path
) -> None:
    """By digest, as PEP 751 has it: nothing that an index gives instead is installed."""
    locked = install(outside / "locked", "-r", ROOT / "pylock.toml")
    uv("pip", "install", "--quiet", "--no-deps", "--python", locked.python, wheel)

    said = locked.run("--version", cwd=tmp_path).stdout

    assert "templates may differ" not in said
