"""`ultrascale deploy`, as its user sees it: each step stops what follows."""

import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path

import pytest

from tests.support.changes import manifest
from tests.support.cli_deployments import STACKS, deployed, has, prepare, synthesizes, written
from tests.support.command_line import Ultrascale
from tests.support.deployments import Project, write_assembly
from tests.support.fake_aws import ID, Refusal, Told, denied
from tests.support.folders import ROOT
from tests.support.pools import SYSTEM_POOL, pool_document
from ultrascale import guard
from ultrascale.preflight import checks
from ultrascale.preflight.model import State
from ultrascale.preflight.stacks import NAMES
from ultrascale.preflight.stacks import STACKS as STACKS_CHECK


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    return prepare(tmp_path, monkeypatch)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return written(tmp_path)


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


# --- the whole way ------------------------------------------------------------------------------


def test_every_stack_is_deployed_in_its_order(
    ultrascale: Ultrascale, project: Project, file: Path
) -> None:
    answer = ultrascale("deploy", file, "--yes", "--concurrency", "1")

    assert answer.returncode == 0
    assert project.deployed == [*STACKS]
    assert answer.stdout.splitlines()[-1] == "10 stacks: 10 deployed"
    assert "[10/10] research-other: deployed" in answer.stdout


def test_a_stack_whose_nodes_are_not_there_yet_is_left_out_and_said(
    ultrascale: Ultrascale, project: Project, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would fail, and end the deployment in red until the window opens."""
    starts = datetime(2026, 12, 1, 11, 30, tzinfo=UTC)

    def late(*_: object) -> dict[str, datetime]:
        return {"research-other": starts}

    monkeypatch.setattr("ultrascale.deploy.deployment.not_due", late)

    answer = ultrascale("deploy", file, "--yes")

    assert answer.returncode == 0
    assert "research-other" not in project.deployed
    assert len(project.deployed) == len(STACKS) - 1
    assert "research-other: left out, as its nodes cannot be there before 2026-12-01" in (
        answer.stderr
    )


def test_the_folder_that_was_compared_is_the_one_that_is_deployed(
    ultrascale: Ultrascale, project: Project, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = synthesizes(monkeypatch)

    ultrascale("deploy", file, "--yes")

    (folder,) = folders
    assert {call[call.index("--app") + 1] for call in project.calls} == {str(folder / "cdk.out")}
    assert not folder.exists()


@pytest.mark.parametrize(("says", "status", "count"), [("y\n", 0, 10), ("n\n", 1, 0)])
def test_nothing_is_deployed_unless_the_user_agrees_to_what_is_shown(
    ultrascale: Ultrascale,
    project: Project,
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
    says: str,
    status: int,
    count: int,
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(says))

    answer = ultrascale("deploy", file)

    assert (answer.returncode, len(project.deployed)) == (status, count)
    before = answer.stdout.partition("deploy 10 stacks")[0]
    (train,) = (line for line in before.splitlines() if line.split()[:1] == ["train"])
    assert train.split() == ["train", "p5.48xlarge", "on-demand", "0", "4", "220.16"]
    assert "`ultrascale plan FILE money` shows what stands beside them" in before
    assert f"deploy 10 stacks of research in us-west-2, account {ID}?" in answer.stdout


def test_nobody_agrees_to_what_was_true_yesterday(
    ultrascale: Ultrascale, project: Project, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A window may have ended since, and a colleague may have deployed."""
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    monkeypatch.setattr("ultrascale.deploy.deployment._LONGEST_REVIEW", timedelta())

    answer = ultrascale("deploy", file)

    assert (answer.returncode, project.calls) == (1, [])
    assert "run the command again" in answer.stderr


def test_a_dry_run_prints_what_is_run_by_hand(
    ultrascale: Ultrascale, project: Project, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(file.parent)

    answer = ultrascale("deploy", file.name, "--dry-run")

    synth, *commands = answer.stdout.splitlines()[-1 - len(STACKS) :]
    assert synth == f"ultrascale synth {file.name}"
    assert [command.split()[3] for command in commands] == [*STACKS]
    assert "--exclusively --app cdk.out --require-approval never" in commands[0]
    assert (answer.returncode, project.deployed) == (0, [])


# --- what stops it ------------------------------------------------------------------------------


def test_an_example_is_refused(ultrascale: Ultrascale, project: Project) -> None:
    answer = ultrascale("deploy", ROOT / "clusters" / "trainium-bert.yaml", "--yes")

    assert (answer.returncode, project.calls) == (1, [])
    assert "111122223333 is an account of documentation" in answer.stderr


def test_a_file_with_mistakes_is_refused(
    ultrascale: Ultrascale, project: Project, tmp_path: Path
) -> None:
    answer = ultrascale("deploy", written(tmp_path, region="us-west-9"), "--yes")

    assert (answer.returncode, project.calls) == (1, [])


def test_nobody_to_ask_is_no_consent(
    ultrascale: Ultrascale, project: Project, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", StringIO())

    answer = ultrascale("deploy", file)

    assert (answer.returncode, "add --yes" in answer.stderr) == (1, True)
    assert project.calls == []


def test_another_account_than_the_files_is_refused_whatever_is_skipped(
    ultrascale: Ultrascale, project: Project, tmp_path: Path
) -> None:
    file = written(tmp_path, account="918273645547")

    answer = ultrascale("deploy", file, "--yes", "--skip-preflight")

    assert (answer.returncode, project.calls) == (1, [])
    assert f"names account 918273645547, the credentials belong to {ID}" in answer.stderr


def test_two_sources_of_credentials_are_refused(
    ultrascale: Ultrascale, project: Project, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CDK_PROFILE", "other")

    refused = ultrascale("deploy", file, "--yes")
    named = ultrascale("deploy", file, "--dry-run", "--profile", "ml")

    assert (refused.returncode, named.returncode) == (1, 0)
    assert "CDK_PROFILE is set" in refused.stderr


def test_more_than_aws_grants_anybody_stops_it_before_the_account_is_asked(
    ultrascale: Ultrascale, project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(tmp_path, **beyond_limits())
    granted = tmp_path / "granted"
    granted.mkdir()
    agreed = {"nau_per_vpc": 600_000, "reference": "case 17"}
    asked = has(monkeypatch, "fail")

    refused = ultrascale("deploy", file, "--yes")
    preflight = ultrascale(
        "deploy", written(granted, **beyond_limits(), agreed_limits=agreed), "--yes"
    )

    assert (refused.returncode, preflight.returncode) == (2, 3)
    assert "AWS publishes 256,000 as the most" in refused.stderr
    assert (project.calls, asked.calls) == ([], [])


def beyond_limits() -> dict[str, object]:
    fleet = {
        "purchase": {"option": "odcr", "reservation_tags": {"fleet": "p5"}},
        "provisioner": "karpenter",
        "role": "reserved",
        "nodes": {"static": 4000},
        "shards": 2,
    }
    return {
        "pools": [SYSTEM_POOL | {"instance_types": ["m7g.8xlarge"]}, pool_document(**fleet)],
        "karpenter": {"version": "1.15.2"},
        "network": {
            "vpc_cidr": "10.0.0.0/16",
            "zones": ["us-west-2a", "us-west-2b"],
            "pod_cidrs": {"count": 31, "from": "100.64.0.0/10"},
        },
    }


@pytest.mark.parametrize(
    ("state", "options", "status"),
    [
        ("fail", (), 3),
        ("unknown", (), 3),
        ("unknown", ("--allow-unknown",), 0),
        ("fail", ("--skip-preflight",), 0),
        ("warn", (), 0),
    ],
)
def test_what_the_account_lacks_stops_it(
    ultrascale: Ultrascale,
    project: Project,
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
    state: State,
    options: tuple[str, ...],
    status: int,
) -> None:
    has(monkeypatch, state)

    answer = ultrascale("deploy", file, "--dry-run", *options)

    assert answer.returncode == status
    assert ("preflight is skipped" in answer.stderr) == ("--skip-preflight" in options)
    assert ("nothing was deployed" in answer.stderr) == bool(status)
    assert ("ultrascale cdk deploy" in answer.stdout) == (status == 0)


def test_what_cannot_be_synthesized_is_not_deployed(
    ultrascale: Ultrascale, project: Project, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synthesizes(monkeypatch, "rule 7 is broken")

    answer = ultrascale("deploy", file, "--yes")

    assert (answer.returncode, project.deployed) == (1, [])
    assert answer.stderr.endswith("rule 7 is broken\n")


def test_a_file_that_is_edited_meanwhile_is_not_deployed_half_seen(
    ultrascale: Ultrascale, project: Project, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Needs and costs were shown for the old file; the templates would follow the new one."""
    synthesize: Callable[[Path, Path], object] = guard.synthesize

    def edit(path: Path, folder: Path) -> None:
        path.write_text(path.read_text().replace("max: 4", "max: 400"))
        synthesize(path, folder)

    monkeypatch.setattr("ultrascale.guard.synthesize", edit)

    answer = ultrascale("deploy", file, "--yes")

    assert (answer.returncode, project.calls) == (1, [])
    assert "was changed meanwhile; run the command again" in answer.stderr


def test_an_assembly_of_another_file_is_refused(
    ultrascale: Ultrascale, project: Project, tmp_path: Path
) -> None:
    file = written(tmp_path, name="another")
    write_assembly(tmp_path, STACKS)

    answer = ultrascale("deploy", file, "--yes", "--assembly", tmp_path)

    assert (answer.returncode, project.calls) == (1, [])
    assert "the stack research-network is none of the file's" in answer.stderr


def test_what_lets_somebody_in_is_deployed_only_where_it_is_named(
    ultrascale: Ultrascale, project: Project, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policies = [
        {"kind": "ValidatingAdmissionPolicy", "metadata": {"name": "tenants"}},
        {
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": "tenants"},
            "spec": {"policyName": "tenants"},
        },
    ]
    has(monkeypatch, deployed=deployed(Gate=manifest(*policies)))

    refused = ultrascale("deploy", file, "--yes")
    called = bool(project.calls)
    answer = ultrascale("deploy", file, "--yes", "--replace", "tenants")

    assert (refused.returncode, called, answer.returncode) == (3, False, 0)
    assert "exposes: admission by tenants: refuses -> nothing" in refused.stdout


@pytest.mark.parametrize(("options", "status"), [((), 3), (("--replace", "Data"), 0)])
def test_what_is_protected_is_lost_only_where_it_is_named(
    ultrascale: Ultrascale,
    project: Project,
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    status: int,
) -> None:
    has(monkeypatch, deployed=deployed(Data={"Type": "AWS::S3::Bucket", "Properties": {}}))

    answer = ultrascale("deploy", file, "--yes", *options)

    assert (answer.returncode, bool(project.calls)) == (status, status == 0)
    assert "Data" in answer.stdout


def test_templates_that_cannot_be_read_are_not_taken_for_none(
    ultrascale: Ultrascale, project: Project, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    get = "cloudformation:GetTemplate"
    has(monkeypatch, deployed=deployed() | {get: denied(get)})

    answer = ultrascale("deploy", file, "--yes")

    assert (answer.returncode, project.calls) == (1, [])
    assert f"{get}: denied" in answer.stderr


@pytest.mark.parametrize("options", [(), ("--skip-preflight",)])
@pytest.mark.parametrize("status", ["ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "UPDATE_IN_PROGRESS"])
def test_no_stack_that_failed_is_deleted_by_the_cdk(
    ultrascale: Ultrascale,
    project: Project,
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
    status: str,
    options: tuple[str, ...],
) -> None:
    """`cdk deploy` deletes one that was rolled back when it was new, with what is left in it."""
    has(monkeypatch, deployed=deployed(status=status))

    answer = ultrascale("deploy", file, "--yes", *options)

    assert (answer.returncode, project.calls) == (3, [])
    assert f"research-network: StackStatus is {status}; " in answer.stderr


def test_a_stack_that_has_left_the_file_stops_no_deployment_for_good(
    ultrascale: Ultrascale, project: Project, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    has(monkeypatch, deployed=deployed(layer="storage", status="DELETE_FAILED"))
    monkeypatch.setattr(checks, "all_checks", lambda: (STACKS_CHECK,))

    answer = ultrascale("deploy", file, "--dry-run")

    assert answer.returncode == 0


def test_what_an_earlier_deployment_left_is_taken_over_where_that_is_asked_for(
    ultrascale: Ultrascale, project: Project, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = {"logGroups": [{"logGroupName": "/aws/eks/research/cluster"}]}
    absent = Refusal("ResourceNotFoundException", "No cluster found")
    answers: dict[str, Told] = {"logs:DescribeLogGroups": logs, "eks:DescribeCluster": absent}
    has(monkeypatch, deployed=answers)
    monkeypatch.setattr(checks, "all_checks", lambda: (NAMES,))

    refused = ultrascale("deploy", file, "--yes")
    taken = ultrascale("deploy", file, "--yes", "--import-existing-resources")

    assert (refused.returncode, taken.returncode) == (3, 0)
    assert "ultrascale deploy FILE --import-existing-resources" in refused.stdout
    assert "research-cluster imports it" in " ".join(taken.stdout.split())
    assert {call[-1] for call in project.calls} == {"--import-existing-resources"}
