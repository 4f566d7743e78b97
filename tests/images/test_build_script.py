"""The script that builds images, run by bash, with Docker and the AWS CLI played by others."""

import os
import stat
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.folders import ROOT

REGISTRY = "111122223333.dkr.ecr.us-west-2.amazonaws.com"
BUILDS = "research/bert:neuron:amd64:0123456789ab research/board:tensorboard:arm64:ba9876543210"

# It holds the images of the file `held`, and fails as the file `failure` says.
AWS = """#!/usr/bin/env bash
echo "aws $*" >>"$CALLS"
if [[ $2 == get-login-password ]]; then echo secret; exit; fi
if [[ $2 == get-authorization-token ]]; then echo "$TOKEN"; exit; fi
[[ -e $FAILURE ]] && { cat "$FAILURE" >&2; exit 254; }
grep -qx -- "$4 $6" "$HELD" && exit
echo "An error occurred (ImageNotFoundException) when calling DescribeImages" >&2
exit 254
"""
DOCKER = """#!/usr/bin/env bash
echo "docker $*" >>"$CALLS"
[[ $1 == login ]] && cat >>"$CALLS.passwords"
[[ $1 == "$BREAKS" ]] && exit 1
while (($#)); do
    [[ $1 == --secret ]] && cp "${2#*src=}" "$CALLS.pip"
    shift
done
exit 0
"""


class Registry:
    """A registry, and what is asked of it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for name, text in (("aws", AWS), ("docker", DOCKER)):
            program = folder / name
            program.write_text(text)
            program.chmod(program.stat().st_mode | stat.S_IXUSR)
        (folder / "held").touch()

    def hold(self, repository: str, tag: str) -> None:
        with (self._folder / "held").open("a") as held:
            held.write(f"{repository} imageTag={tag}\n")

    def fail(self, text: str) -> None:
        (self._folder / "failure").write_text(text)

    def run(self, **variables: str) -> subprocess.CompletedProcess[str]:
        environment: Mapping[str, str] = {
            "PATH": f"{self._folder}:{os.environ['PATH']}",
            "CALLS": str(self._folder / "calls"),
            "HELD": str(self._folder / "held"),
            "FAILURE": str(self._folder / "failure"),
            "BREAKS": "",
            "TOKEN": "secret-token",
            "REGISTRY": REGISTRY,
            "BUILDS": BUILDS,
            **variables,
        }
        return subprocess.run(
            ["bash", str(ROOT / "images" / "build.sh")],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    @property
    def pip(self) -> str | None:
        """Settings of pip that the last build knew."""
        file = self._folder / "calls.pip"
        return file.read_text() if file.exists() else None

    def calls(self, start: str) -> list[str]:
        calls = self._folder / "calls"
        lines = calls.read_text().splitlines() if calls.exists() else []
        return [line for line in lines if line.startswith(start)]

    @property
    def pushed(self) -> list[str]:
        """Images that were pushed, without the registry."""
        return [call.partition("/")[2] for call in self.calls(f"docker push {REGISTRY}/")]

    @property
    def logins(self) -> list[str]:
        return [call.split()[-1] for call in self.calls("docker login")]


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry(tmp_path)


def test_every_image_that_is_missing_is_built_and_pushed(registry: Registry) -> None:
    answer = registry.run()

    assert answer.returncode == 0, answer.stderr
    assert registry.pushed == ["research/bert:0123456789ab", "research/board:ba9876543210"]
    first, second = registry.calls("docker build")
    for build, name, platform in (first, "neuron", "amd64"), (second, "tensorboard", "arm64"):
        assert f"--file images/{name}/Dockerfile" in build
        assert f"--platform linux/{platform}" in build
    assert first.endswith(" .")
    # The disk is emptied for the next base, and without an index pip has no settings.
    assert len(registry.calls("docker system prune")) == 2
    assert registry.pip is None


@pytest.mark.parametrize(
    ("variables", "pushed"),
    [
        ({}, "research/board:ba9876543210"),
        ({"ONLY": "research/board"}, "research/board:ba9876543210"),
        ({"ONLY": "research/bert", "TAG": "patched-2026-11"}, "research/bert:patched-2026-11"),
        ({"ONLY": "research/bert"}, None),
    ],
)
def test_an_image_that_is_there_or_not_asked_for_is_not_built(
    registry: Registry, variables: dict[str, str], pushed: str | None
) -> None:
    registry.hold("research/bert", "0123456789ab")

    answer = registry.run(**variables)

    assert answer.returncode == 0
    assert registry.pushed == ([pushed] if pushed else [])
    there = f"{REGISTRY}/research/bert:0123456789ab: already there" in answer.stdout
    assert there == (variables.get("ONLY") != "research/board" and "TAG" not in variables)


def test_a_repository_that_nothing_is_built_for_is_refused_before_anything_runs(
    registry: Registry,
) -> None:
    answer = registry.run(ONLY="research/bort")

    assert answer.returncode == 1
    assert "research/bort: nothing is built for it" in answer.stderr
    assert "research/bert" in answer.stderr
    assert registry.calls("") == []


def test_a_registry_that_cannot_be_asked_is_no_missing_image(registry: Registry) -> None:
    registry.fail("An error occurred (AccessDeniedException) when calling DescribeImages")

    answer = registry.run()

    assert answer.returncode != 0
    assert "AccessDeniedException" in answer.stderr
    assert registry.calls("docker build") == []


@pytest.mark.parametrize("step", ["login", "build", "push"])
def test_a_step_that_fails_fails_the_build(registry: Registry, step: str) -> None:
    answer = registry.run(BREAKS=step)

    assert answer.returncode != 0
    assert len(registry.calls(f"docker {step}")) == 1


def test_it_logs_in_to_the_public_registry_and_shows_no_password(registry: Registry) -> None:
    answer = registry.run(PUBLIC_REGISTRY="public.ecr.aws", PUBLIC_REGION="us-east-1")

    password = "aws ecr-public get-login-password --region us-east-1"
    assert registry.calls("aws ecr-public") == [password]
    assert registry.logins == [REGISTRY, "public.ecr.aws"]
    assert not [call for call in registry.calls("") if "secret" in call]
    assert "secret" not in answer.stdout + answer.stderr


def test_packages_come_from_the_index_of_the_cluster_file(registry: Registry) -> None:
    registry.run(PIP_INDEX="https://packages.example.com/simple/")

    assert registry.pip == "[global]\nindex-url = https://packages.example.com/simple/\n"


def test_the_token_of_code_artifact_reaches_pip_and_no_log(registry: Registry) -> None:
    host = "corp-1.d.codeartifact.us-east-1.amazonaws.com/pypi/all/simple/"
    answer = registry.run(
        PIP_INDEX=f"https://{host}",
        CODEARTIFACT_DOMAIN="corp",
        CODEARTIFACT_OWNER="444455556666",
        CODEARTIFACT_REGION="us-east-1",
    )

    assert registry.pip == f"[global]\nindex-url = https://aws:secret-token@{host}\n"
    (asked,) = registry.calls("aws codeartifact")
    assert "--domain corp --domain-owner 444455556666 --region us-east-1" in asked
    assert not [call for call in registry.calls("") if "secret-token" in call]
    assert "secret-token" not in answer.stdout + answer.stderr


@pytest.mark.parametrize(
    ("mirror", "logins"),
    [("444455556666.dkr.ecr.eu-west-1.amazonaws.com", 2), (REGISTRY, 1)],
)
def test_base_images_come_from_the_mirror_after_a_login_where_it_is_another_registry(
    registry: Registry, mirror: str, logins: int
) -> None:
    registry.run(MIRROR=mirror, MIRROR_REGION="eu-west-1", DOCKERFILES="mirrored")

    assert registry.logins == [REGISTRY, mirror][:logins]
    asked = registry.calls("aws ecr get-login-password --region eu-west-1")
    assert len(asked) == logins - 1
    assert "--file mirrored/neuron/Dockerfile" in registry.calls("docker build")[0]


@pytest.mark.parametrize("dockerfiles", ["images", "mirrored"])
def test_a_folder_of_the_users_own_is_all_that_its_build_gets(
    registry: Registry, dockerfiles: str
) -> None:
    registry.run(BUILDS="research/llm:./a/mine:amd64:0123456789ab", DOCKERFILES=dockerfiles)

    (build,) = registry.calls("docker build")
    assert "--file own/a/mine/Dockerfile" in build
    assert build.endswith(" own/a/mine")
