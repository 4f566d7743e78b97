"""The release that a pipeline's builds install, by commands that are run here with a false pip."""

import json
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest
import yaml

from tests.support.folders import ROOT
from tests.support.pipelines import PROD, load_pipeline, two_accounts
from ultrascale.errors import ConfigError
from ultrascale.jobs.checked_file import check_file
from ultrascale.parts.pipeline import facts
from ultrascale.parts.pipeline.model import BuildsPlan
from ultrascale.plan import load
from ultrascale.plan.needs.report import plan_needs
from ultrascale.release import VERSION

WHEEL = "wheels/ultrascale-0.4.0-py3-none-any.whl"
OBJECT = "s3://artifacts/tools/ultrascale-0.4.0-py3-none-any.whl"
EARLIER = "wheels/ultrascale-0.3.0-py3-none-any.whl"
# Of another file than the one that contains "wheel".
DIGEST = "08021eb2ac14b49a94ac5d1b0fa7bbc0a31b2e6f5d5a3c3d7c6e3dfbbd2d2a5e"
ADDRESS = (
    "https://packages.example.com/tools/ultrascale-0.4.0-py3-none-any.whl#sha256="
    f"{sha256(b'wheel').hexdigest()}"
)


@pytest.fixture(autouse=True)
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wheels").mkdir()
    for wheel in (WHEEL, EARLIER):
        (tmp_path / wheel).write_text("wheel")
    return tmp_path


def builds(repository: Path, **changes: object) -> BuildsPlan:
    plan = load_pipeline(two_accounts(repository, **changes))
    assert plan is not None
    return plan.builds


def refusals(repository: Path, package: str | None) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        builds(repository, package=package)
    return [line.partition(": ")[2] for line in caught.value.mistakes]


def run(
    repository: Path, commands: tuple[str, ...], *, absent: str = "nothing"
) -> tuple[int, list[str]]:
    """Run commands of a build; pip and the AWS CLI record what they are asked.

    Args:
        repository: The folder that the build starts in.
        commands: The commands.
        absent: What neither of them finds.
    """
    tools = repository / "tools"
    tools.mkdir(exist_ok=True)
    record = (
        f'echo "$(basename "$0") $*" >> {repository}/calls\ncase "$*" in *{absent}*) exit 1; esac\n'
    )
    scripts = {
        "python": f'[ "$1" = -c ] && exec {sys.executable} "$@"\n{record}',
        "aws": f'{record}printf wheel > "$5"\n',
        "curl": f'{record}printf wheel > "$6"\n',
        "ultrascale": record,
    }
    for name, script in scripts.items():
        (tools / name).write_text(f"#!/bin/sh\n{script}")
        (tools / name).chmod(0o755)
    done = subprocess.run(
        # A build ends with the first command that fails.
        ["/bin/sh", "-c", "\n".join(f"{{ {command}\n}} || exit $?" for command in commands)],
        cwd=repository,
        env={"PATH": f"{tools}:/usr/bin:/bin", "HOME": str(repository / "home")},
        capture_output=True,
        text=True,
        check=False,
    )
    calls = (repository / "calls").read_text().splitlines()
    return done.returncode, [each for each in calls if " venv " not in each]


def installed(calls: list[str]) -> list[str]:
    """Return what pip was asked to install of this product."""
    return [call.split()[-1] for call in calls if "pip install" in call and "PyYAML" not in call]


def test_a_pipeline_of_a_users_repository_has_to_say_where_its_release_is(repository: Path) -> None:
    """A name that nobody has registered is a name that anybody can."""
    for package in (None, "0.4.0", VERSION):
        (line,) = refusals(repository, package)

        assert line.startswith("pipeline.package: no ")
        assert "write a wheel as wheels/NAME.whl, s3://BUCKET/KEY.whl, or https://" in line


def test_a_users_repository_needs_no_file_of_this_product(repository: Path) -> None:
    planned = builds(repository, package=WHEEL)
    commands = "\n".join((*planned.synth, *planned.rules, *planned.looks["dev"]))

    assert planned.tests == ()
    assert "make " not in commands
    assert planned.synth[-1] == f"ultrascale synth --pipeline {PROD}"


def test_the_clone_of_this_product_builds_itself(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = two_accounts(repository, package=None)
    monkeypatch.setattr("ultrascale.parts.pipeline.plan.source_folder", lambda: repository)
    plan = load_pipeline(path)

    assert plan is not None
    assert plan.builds.synth == (f"make pipeline CLUSTER={PROD}",)
    assert plan.builds.tests == ("make test",)
    assert plan.builds.program == ".venv/bin/ultrascale"


SOURCES = {
    WHEEL: f"./{WHEEL}[tested]",
    ADDRESS: "home/.ultrascale/ultrascale-0.4.0-py3-none-any.whl[tested]",
    OBJECT: "home/.ultrascale/ultrascale-0.4.0-py3-none-any.whl[tested]",
}


@pytest.mark.parametrize(("package", "asked"), SOURCES.items(), ids=["wheel", "address", "bucket"])
def test_every_build_installs_what_the_file_names(
    repository: Path, package: str, asked: str
) -> None:
    planned = builds(repository, package=package)
    (repository / "home" / ".ultrascale").mkdir(parents=True)

    for commands in (planned.synth, planned.rules, planned.looks["prod"]):
        (repository / "calls").unlink(missing_ok=True)
        status, calls = run(repository, (*commands[:4], "true"))

        assert status == 0
        assert installed(calls)[0].endswith(asked)


class TestUpgrade:
    """The commit that names another release runs with the commands of the earlier one."""

    def follow(self, repository: Path, had: str, wanted: str, **ends: str) -> tuple[int, list[str]]:
        planned = builds(repository, package=had)
        document = yaml.safe_load((repository / PROD).read_text())
        document["pipeline"]["package"] = wanted
        (repository / PROD).write_text(yaml.safe_dump(document))
        return run(repository, planned.synth, **ends)

    def test_the_first_build_installs_what_the_commit_names(self, repository: Path) -> None:
        status, calls = self.follow(repository, EARLIER, WHEEL)

        assert status == 0
        assert installed(calls) == [f"./{WHEEL}[tested]"]
        assert calls[-1] == f"ultrascale synth --pipeline {PROD}"

    def test_the_earlier_wheel_may_go_with_the_same_commit(self, repository: Path) -> None:
        planned = builds(repository, package=WHEEL)
        later = "wheels/ultrascale-0.5.0-py3-none-any.whl"
        (repository / WHEEL).rename(repository / later)
        text = (repository / PROD).read_text().replace(WHEEL, later)
        (repository / PROD).write_text(text)

        status, calls = run(repository, planned.synth)

        assert status == 0
        assert installed(calls) == [f"./{later}[tested]"]

    def test_an_object_that_the_role_may_not_read_yet_is_left_to_the_next_run(
        self, repository: Path
    ) -> None:
        """The earlier release synthesizes the right to read it, and the run begins anew."""
        status, calls = self.follow(repository, EARLIER, OBJECT, absent="s3:")

        assert status == 0
        assert installed(calls) == [f"./{EARLIER}[tested]"]
        told = builds(repository, package=WHEEL).synth[-2]
        assert "change pipeline.package alone, in a commit of its own" in told

    def test_an_object_that_is_nowhere_fails_and_a_later_commit_mends_it(
        self, repository: Path
    ) -> None:
        failed, _ = self.follow(repository, OBJECT, OBJECT, absent="s3:")
        (repository / "calls").unlink()
        mended, _ = self.follow(repository, OBJECT, WHEEL, absent="s3:")

        assert failed != 0
        assert mended == 0


def test_check_says_what_the_builds_install_and_warns_of_another_release(repository: Path) -> None:
    path = two_accounts(repository, package=OBJECT)
    checked = check_file(path)
    (note,) = (each for each in checked.notes if "builds install" in each.message)
    (warning,) = (each for each in checked.warnings if "synthesizes" in each.message)
    (decision,) = (n for n in plan_needs(load(path)).decisions if "pipeline" in n.subjects)
    assert note.message == f"the pipeline's builds install ultrascale 0.4.0 from {OBJECT}"
    assert decision.choice == f"builds install ultrascale 0.4.0 from {OBJECT}"
    assert warning.key == "pipeline.package"
    assert warning.fix == f"install {OBJECT} here, or change the key"
    # The release that runs is no reason to warn.
    wheel = f"s3://artifacts/ultrascale-{VERSION}-py3-none-any.whl"
    same = check_file(two_accounts(repository, package=wheel))
    assert not [each for each in same.warnings if "synthesizes" in each.message]


@pytest.mark.parametrize(
    ("requires", "match"),
    [
        (">=99", r"dev.yaml.*requires: .*a wheel of ultrascale >=99"),
        (">=0.1,<0.4", r"pipeline.stages\[dev\].cluster: this file requires"),
    ],
)
def test_a_pipeline_installs_what_may_read_the_files_of_its_stages(
    repository: Path, requires: str, match: str
) -> None:
    path = two_accounts(repository, package=WHEEL)
    dev = repository / "clusters" / "dev.yaml"
    dev.write_text(f"requires: '{requires}'\n" + dev.read_text())
    with pytest.raises(ConfigError, match=match):
        load_pipeline(path)


def test_a_damaged_wheel_is_not_installed(repository: Path) -> None:
    planned = builds(repository, package=f"{OBJECT}#sha256={DIGEST}")
    (repository / "home" / ".ultrascale").mkdir(parents=True)
    status, calls = run(repository, planned.looks["dev"])
    assert status != 0
    assert installed(calls) == []


def test_a_pipeline_has_the_linter_its_rules_and_the_yaml_that_the_product_is_tested_with() -> None:
    lock = [
        line
        for name in ("requirements.txt", "requirements-dev.txt")
        for line in (ROOT / name).read_text().splitlines()
    ]
    settings = yaml.safe_load((ROOT / ".cfnlintrc.yaml").read_text())
    assert f"cfn-lint=={facts.CFN_LINT_VERSION}" in lock
    assert f"PyYAML=={facts.YAML_VERSION}" in lock
    assert settings == {"ignore_checks": list(facts.CFN_LINT_IGNORED)}


# Errors that would stop the first build are reported before it.
@pytest.mark.parametrize(
    ("package", "line"),
    [
        ("wheels/ultrascale-0.5.0-py3-none-any.whl", "no such file here, got 'wheels/ultra"),
        (f"{WHEEL}#sha256={DIGEST}", "its digest is "),
        (".", "no clone of ultrascale here, got '.'; write a"),
    ],
)
def test_a_release_that_no_build_could_install_is_refused(
    repository: Path, package: str, line: str
) -> None:
    (told,) = refusals(repository, package)
    assert told.startswith(f"pipeline.package: {line}")


def test_templates_of_a_users_repository_are_held_to_the_rules_that_ours_are_held_to(
    repository: Path,
) -> None:
    """A user's repository has no `.cfnlintrc.yaml`, and the CDK's functions break W3005."""
    linter = repository / "home" / ".cfn-lint" / "bin" / "cfn-lint"
    linter.parent.mkdir(parents=True)
    linter.symlink_to(Path(sys.executable).parent / "cfn-lint")
    lambdas = {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}}
    trusted = {"Version": "2012-10-17", "Statement": [{**lambdas, "Action": "sts:AssumeRole"}]}
    function = {
        "Code": {"ZipFile": "def handler(event, context): pass"},
        "Handler": "index.handler",
        "Role": {"Fn::GetAtt": ["Role", "Arn"]},
        "Runtime": "python3.13",
    }
    (repository / "cdk.out").mkdir()
    template = repository / "cdk.out" / "dev.template.json"
    lint = builds(repository, package=WHEEL).rules[-1]
    for broken in (False, True):
        role = {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": trusted}}
        # As the CDK writes it.
        made = {"Type": "AWS::Lambda::Function", "DependsOn": ["Role"]}
        made |= {"Properties": {} if broken else function}
        template.write_text(json.dumps({"Resources": {"Role": role, "Function": made}}))
        done = subprocess.run(
            ["/bin/sh", "-c", lint],
            cwd=repository,
            env={"PATH": "/usr/bin:/bin", "HOME": str(repository / "home")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode != 0) == broken, done.stdout + done.stderr
