"""Sources of a comparison: the account and a synthesis. An unreadable source is an error."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.account import fake_account
from tests.support.assemblies import write_assembly
from tests.support.changes import body, export, template
from tests.support.fake_aws import Refusal, Told, denied
from tests.support.pools import make_cluster
from ultrascale.cli.change_views import text_lines
from ultrascale.errors import AccountError
from ultrascale.guard import compare_deployed, other_clusters, synthesize
from ultrascale.guard.sources import as_deployed, read_deployed
from ultrascale.plan import plan_cluster
from ultrascale.plan.names import stack_description

DESCRIBE, GET = "cloudformation:DescribeStacks", "cloudformation:GetTemplate"
BUCKET = template({"A": body("AWS::S3::Bucket")})


# --- the account --------------------------------------------------------------------------------


def stack(name: str, status: str = "CREATE_COMPLETE", cluster: str | None = "c") -> Any:
    """Return what AWS says of a stack."""
    whose = {} if cluster is None else {"Description": stack_description(cluster)}
    made = "2026-11-01T00:00:00Z"
    return {"StackName": name, "CreationTime": made, "StackStatus": status, **whose}


def answers(*stacks: Any, template: object = BUCKET) -> dict[str, Told]:
    text = template if isinstance(template, str) else json.dumps(template)
    return {DESCRIBE: {"Stacks": [*stacks]}, GET: {"TemplateBody": text}}


def deployed(told: dict[str, Told], *more: str) -> Any:
    account, _ = fake_account(told)
    return read_deployed(account, "c", {name: BUCKET for name in ("c-a", *more)}).templates


def test_deployed_templates_are_the_ones_that_were_given() -> None:
    text = "Resources:\n  A:\n    Type: AWS::S3::Bucket\n    Properties: {}\n"
    large = template({f"A{n}": body("AWS::S3::Bucket", {"X": "x" * 2000}) for n in range(500)})
    told = answers(stack("c-a", "UPDATE_COMPLETE"), stack("other", cluster=None))

    assert deployed(told) == {"c-a": BUCKET}
    assert deployed(answers(stack("c-a"), template=text)) == {"c-a": BUCKET}
    # Whole, and without resources it is no new stack.
    for each in (large, template({})):
        assert deployed(answers(stack("c-a"), template=each)) == {"c-a": each}


@pytest.mark.parametrize("status", ["REVIEW_IN_PROGRESS", "DELETE_COMPLETE"])
def test_a_stack_that_is_not_there_is_new(status: str) -> None:
    assert deployed({DESCRIBE: {"Stacks": []}}) == {}
    assert deployed({DESCRIBE: {"Stacks": [stack("c-a", status, None)]}}) == {}


@pytest.mark.parametrize(
    ("statuses", "told"),
    [
        ("CREATE_FAILED DELETE_FAILED ROLLBACK_COMPLETE ROLLBACK_FAILED", "; .*preflight"),
        ("UPDATE_FAILED UPDATE_ROLLBACK_FAILED", "; .*preflight"),
        ("UPDATE_IN_PROGRESS DELETE_IN_PROGRESS UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "; wait"),
    ],
    ids=["never made", "failed half-way", "changing"],
)
def test_a_stack_that_is_not_what_its_template_says_is_not_compared(
    statuses: str, told: str
) -> None:
    for status in statuses.split():
        with pytest.raises(AccountError, match=f"c-a: StackStatus is {status}{told}"):
            deployed(answers(stack("c-a", status)))


def test_every_stack_that_cannot_be_compared_is_told_at_once() -> None:
    with pytest.raises(AccountError, match=r"c-a: .*\nc-b: "):
        deployed(answers(stack("c-a", "UPDATE_FAILED"), stack("c-b", "DELETE_FAILED")), "c-b")


@pytest.mark.parametrize("status", ["CREATE_COMPLETE", "DELETE_FAILED", "DELETE_IN_PROGRESS"])
def test_what_left_the_file_is_found_by_whose_it_is_and_stops_no_other(status: str) -> None:
    others = (stack("c-x-b", cluster="c-x"), stack("c-tool", cluster=None))
    apart = (stack("c-pipeline"), stack("c-pipeline-gate"))

    found = deployed(answers(stack("c-a"), stack("c-gone", status), *others, *apart))

    assert set(found) == {"c-a", "c-gone"}


@pytest.mark.parametrize("whose", ["c-x", None])
def test_a_stack_of_another_cluster_under_the_same_name_is_never_compared(
    whose: str | None,
) -> None:
    with pytest.raises(AccountError, match=r"c-a: it is no stack of c: .*another name"):
        deployed({DESCRIBE: {"Stacks": [stack("c-a", cluster=whose)]}})


@pytest.mark.parametrize("action", [DESCRIBE, GET])
@pytest.mark.parametrize("throttled", [True, False])
def test_no_answer_never_passes_for_no_stack(action: str, throttled: bool) -> None:
    refusal = Refusal("Throttling") if throttled else denied(action)

    with pytest.raises(AccountError, match=action):
        deployed(answers(stack("c-a")) | {action: refusal})


def test_termination_protection_that_the_cdk_would_take_off_is_told() -> None:
    on = {"EnableTerminationProtection": True}
    there = (stack("research-a", cluster="research") | on, stack("research-b", cluster="research"))
    account, _ = fake_account(answers(*there))
    plan = plan_cluster(make_cluster())

    changes = compare_deployed(
        account, plan.name, plan.region, {"research-a": BUCKET, "research-b": BUCKET}
    )

    assert changes.unprotected == ("research-a",)
    assert "Termination protection, which `cdk deploy` takes off" in "\n".join(text_lines(changes))


def test_other_clusters_of_the_account_are_known_by_name() -> None:
    there = [
        stack("b-a", cluster="b"),
        stack("b-b", cluster="b"),
        stack("c-a"),
        stack("d", "", None),
    ]
    account, _ = fake_account({DESCRIBE: {"Stacks": there}})

    assert other_clusters(account, "c") == ("b",)


@pytest.mark.parametrize("text", ["Resources: !Sub x", "text", "{", "Resources: [A]"])
def test_a_template_that_is_none_of_the_cdks_is_refused(text: str) -> None:
    with pytest.raises(AccountError, match="c-a: its template"):
        deployed(answers(stack("c-a"), template=text))


def test_letters_that_cloudformation_does_not_keep_are_no_change() -> None:
    new = {"c-a": template({}, **export("q", "caché"))}

    assert as_deployed(new)["c-a"]["Outputs"]["Out"]["Value"] == "cach?"


# --- a synthesis --------------------------------------------------------------------------------


def test_a_synthesis_for_a_comparison_overwrites_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[Path, Path]] = []

    def write(file: Path, *, assembly: Path, manifests: Path) -> None:
        assembly.mkdir()
        write_assembly(assembly, {"c-a": BUCKET})
        asked.append((file, manifests))

    monkeypatch.setattr("ultrascale.guard.sources.synthesize_into", write)
    file = tmp_path / "c.yaml"

    assert synthesize(file, tmp_path) == {"c-a": BUCKET}
    assert asked == [(file, tmp_path / "dist")]
