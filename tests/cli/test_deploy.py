"""`ultrascale deploy`, as its user sees it: each step stops what follows."""

import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from tests.support.cases import rows
from tests.support.changes import manifest
from tests.support.cli_deployments import (
    STACKS,
    Deployment,
    deployed,
    has,
    prepare,
    synthesizes,
    written,
)
from tests.support.command_line import Terminal, Ultrascale
from tests.support.deployments import write_assembly
from tests.support.fake_aws import ID, Refusal, Told, denied
from tests.support.folders import ROOT
from tests.support.needs import FLEET_BEYOND_LIMITS
from ultrascale import guard
from ultrascale.findings import State
from ultrascale.preflight import checks
from ultrascale.preflight.stacks import NAMES
from ultrascale.preflight.stacks import STACKS as STACKS_CHECK


@pytest.fixture
def deploy(ultrascale: Ultrascale, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Deployment:
    return prepare(ultrascale, tmp_path, monkeypatch)


# --- the whole way ------------------------------------------------------------------------------


def test_every_stack_is_deployed_in_its_order_from_the_folder_that_was_compared(
    deploy: Deployment,
) -> None:
    folders = synthesizes(deploy.patch)

    answer = deploy("--yes", "--concurrency", "1")

    (folder,) = folders
    assert (answer.returncode, deploy.project.deployed) == (0, [*STACKS])
    assert answer.stdout.splitlines()[-1] == "10 stacks: 10 deployed"
    assert "[10/10] research-other: deployed" in answer.stdout
    apps = {call[call.index("--app") + 1] for call in deploy.project.calls}
    assert apps == {str(folder / "cdk.out")}
    assert not folder.exists()


def test_a_stack_whose_nodes_are_not_there_yet_is_left_out_and_said(deploy: Deployment) -> None:
    """It would fail, and end the deployment in red until the window opens."""
    starts = datetime(2026, 12, 1, 11, 30, tzinfo=UTC)

    def late(*_: object) -> dict[str, datetime]:
        return {"research-other": starts}

    deploy.patch.setattr("ultrascale.deploy.deployment.not_due", late)

    answer = deploy("--yes")

    assert answer.returncode == 0
    assert {*STACKS} - {*deploy.project.deployed} == {"research-other"}
    assert "research-other: left out, as its nodes cannot be there before 2026-12-01" in (
        answer.stderr
    )


@pytest.mark.parametrize(("says", "status", "count"), [("y\n", 0, 10), ("n\n", 1, 0)])
def test_nothing_is_deployed_unless_the_user_agrees_to_what_is_shown(
    deploy: Deployment, says: str, status: int, count: int
) -> None:
    deploy.patch.setattr(sys, "stdin", Terminal(says))
    answer = deploy()
    assert (answer.returncode, len(deploy.project.deployed)) == (status, count)
    before = answer.stdout.partition("deploy 10 stacks")[0]
    (train,) = (line for line in before.splitlines() if line.split()[:1] == ["train"])
    assert train.split() == ["train", "p5.48xlarge", "on-demand", "0", "4", "220.16"]
    assert "`ultrascale plan FILE money` shows what stands beside them" in before
    assert f"deploy 10 stacks of research in us-west-2, account {ID}?" in answer.stdout


def test_a_dry_run_prints_what_is_run_by_hand(deploy: Deployment) -> None:
    deploy.patch.chdir(deploy.folder)
    answer = deploy("--dry-run", file=Path(deploy.file.name))
    synth, *commands = answer.stdout.splitlines()[-1 - len(STACKS) :]
    assert synth == f"ultrascale synth {deploy.file.name}"
    assert [command.split()[3] for command in commands] == [*STACKS]
    assert "--exclusively --app cdk.out --require-approval never" in commands[0]
    assert (answer.returncode, deploy.project.deployed) == (0, [])


# --- what stops it ------------------------------------------------------------------------------


@rows(
    "changes, options, says",
    {
        "a file with mistakes": ({"region": "us-west-9"}, [], "us-west-9"),
        "the account of another, whatever is skipped": (
            {"account": "918273645547"},
            ["--skip-preflight"],
            f"names account 918273645547, the credentials belong to {ID}",
        ),
        "the assembly of another file": (
            {"name": "another"},
            ["--assembly"],
            "the stack research-network is none of the file's",
        ),
    },
)
def test_what_is_not_the_files_own_is_refused(
    deploy: Deployment, changes: dict[str, Any], options: list[str], says: str
) -> None:
    file = written(deploy.folder, **changes)
    write_assembly(deploy.folder, STACKS)
    folder = [deploy.folder] if "--assembly" in options else []
    answer = deploy("--yes", *options, *folder, file=file)
    assert (answer.returncode, deploy.project.calls) == (1, [])
    assert says in answer.stderr


def test_an_example_is_refused(deploy: Deployment) -> None:
    answer = deploy("--yes", file=ROOT / "clusters" / "trainium-bert.yaml")
    assert (answer.returncode, deploy.project.calls) == (1, [])
    assert "111122223333 is an account of documentation" in answer.stderr


@rows(
    "stdin, review, says",
    {
        "nobody to ask": (StringIO(), None, "add --yes"),
        # A window may have ended since, and a colleague may have deployed.
        "agreement to what was true yesterday": (
            Terminal("y\n"),
            timedelta(),
            "run the command again",
        ),
    },
)
def test_what_is_no_consent_deploys_nothing(
    deploy: Deployment, stdin: StringIO, review: timedelta | None, says: str
) -> None:
    deploy.patch.setattr(sys, "stdin", stdin)
    if review is not None:
        deploy.patch.setattr("ultrascale.deploy.deployment._LONGEST_REVIEW", review)
    answer = deploy()
    assert (answer.returncode, deploy.project.calls) == (1, [])
    assert says in answer.stderr


def test_two_sources_of_credentials_are_refused(deploy: Deployment) -> None:
    deploy.patch.setenv("CDK_PROFILE", "other")
    refused, named = deploy("--yes"), deploy("--dry-run", "--profile", "ml")
    assert (refused.returncode, named.returncode) == (1, 0)
    assert "CDK_PROFILE is set" in refused.stderr


def test_more_than_aws_grants_anybody_stops_it_before_the_account_is_asked(
    deploy: Deployment,
) -> None:
    agreed = {"nau_per_vpc": 600_000, "reference": "case 17"}
    asked = has(deploy.patch, "fail")
    refused = deploy("--yes", file=written(deploy.folder, **FLEET_BEYOND_LIMITS))
    file = written(deploy.folder, **FLEET_BEYOND_LIMITS, agreed_limits=agreed)
    preflight = deploy("--yes", file=file)
    assert (refused.returncode, preflight.returncode) == (2, 3)
    assert "AWS publishes 256,000 as the most" in refused.stderr
    assert (deploy.project.calls, asked.calls) == ([], [])


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
    deploy: Deployment, state: State, options: tuple[str, ...], status: int
) -> None:
    has(deploy.patch, state)
    answer = deploy("--dry-run", *options)
    assert answer.returncode == status
    assert ("preflight is skipped" in answer.stderr) == ("--skip-preflight" in options)
    assert ("nothing was deployed" in answer.stderr) == bool(status)
    assert ("ultrascale cdk deploy" in answer.stdout) == (status == 0)


def test_what_cannot_be_synthesized_is_not_deployed(deploy: Deployment) -> None:
    synthesizes(deploy.patch, "rule 7 is broken")
    answer = deploy("--yes")
    assert (answer.returncode, deploy.project.deployed) == (1, [])
    assert answer.stderr.endswith("rule 7 is broken\n")


def test_a_file_that_is_edited_meanwhile_is_not_deployed_half_seen(deploy: Deployment) -> None:
    """Needs and costs were shown for the old file; the templates would follow the new one."""
    synthesize: Callable[[Path, Path], object] = guard.synthesize

    def edit(path: Path, folder: Path) -> None:
        path.write_text(path.read_text().replace("max: 4", "max: 400"))
        synthesize(path, folder)

    deploy.patch.setattr("ultrascale.guard.synthesize", edit)

    answer = deploy("--yes")

    assert (answer.returncode, deploy.project.calls) == (1, [])
    assert "was changed meanwhile; run the command again" in answer.stderr


_POLICIES = [
    {"kind": "ValidatingAdmissionPolicy", "metadata": {"name": "tenants"}},
    {
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "tenants"},
        "spec": {"policyName": "tenants"},
    },
]


@rows(
    "there, name, says",
    {
        "what lets somebody in": (
            {"Gate": manifest(*_POLICIES)},
            "tenants",
            "exposes: admission by tenants: refuses -> nothing",
        ),
        "what holds data": (
            {"Data": {"Type": "AWS::S3::Bucket", "Properties": {}}},
            "Data",
            "Data",
        ),
    },
)
def test_what_is_protected_goes_only_where_it_is_named(
    deploy: Deployment, there: dict[str, Any], name: str, says: str
) -> None:
    has(deploy.patch, deployed=deployed(**there))
    refused = deploy("--yes")
    calls = deploy.project.calls
    named = deploy("--yes", "--replace", name)
    assert (refused.returncode, calls, named.returncode) == (3, [], 0)
    assert says in refused.stdout
    assert deploy.project.calls


def test_templates_that_cannot_be_read_are_not_taken_for_none(deploy: Deployment) -> None:
    get = "cloudformation:GetTemplate"
    has(deploy.patch, deployed=deployed() | {get: denied(get)})
    answer = deploy("--yes")
    assert (answer.returncode, deploy.project.calls) == (1, [])
    assert f"{get}: denied" in answer.stderr


@pytest.mark.parametrize("options", [(), ("--skip-preflight",)])
@pytest.mark.parametrize("status", ["ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "UPDATE_IN_PROGRESS"])
def test_no_stack_that_failed_is_deleted_by_the_cdk(
    deploy: Deployment, status: str, options: tuple[str, ...]
) -> None:
    """`cdk deploy` deletes one that was rolled back when it was new, with what is left in it."""
    has(deploy.patch, deployed=deployed(status=status))
    answer = deploy("--yes", *options)
    assert (answer.returncode, deploy.project.calls) == (3, [])
    assert f"research-network: StackStatus is {status}; " in answer.stderr


def test_a_stack_that_has_left_the_file_stops_no_deployment_for_good(deploy: Deployment) -> None:
    has(deploy.patch, deployed=deployed(layer="storage", status="DELETE_FAILED"))
    deploy.patch.setattr(checks, "all_checks", lambda: (STACKS_CHECK,))
    assert deploy("--dry-run").returncode == 0


def test_what_an_earlier_deployment_left_is_taken_over_where_that_is_asked_for(
    deploy: Deployment,
) -> None:
    logs = {"logGroups": [{"logGroupName": "/aws/eks/research/cluster"}]}
    absent = Refusal("ResourceNotFoundException", "No cluster found")
    answers: dict[str, Told] = {"logs:DescribeLogGroups": logs, "eks:DescribeCluster": absent}
    has(deploy.patch, deployed=answers)
    deploy.patch.setattr(checks, "all_checks", lambda: (NAMES,))

    refused = deploy("--yes")
    taken = deploy("--yes", "--import-existing-resources")

    assert (refused.returncode, taken.returncode) == (3, 0)
    assert "ultrascale deploy FILE --import-existing-resources" in refused.stdout
    assert "research-cluster imports it" in " ".join(taken.stdout.split())
    assert {call[-1] for call in deploy.project.calls} == {"--import-existing-resources"}
