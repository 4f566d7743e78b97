"""`ultrascale diff`, as its user and a pipeline see it."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from tests.support.account import connects
from tests.support.assemblies import described, write_assembly
from tests.support.cases import rows
from tests.support.changes import Body, body, guard, launch_template, node_group, template
from tests.support.command_line import Answer, Ultrascale
from tests.support.fake_aws import Told, denied
from tests.support.pools import as_text, make_document
from ultrascale.cli.change_views import text_lines
from ultrascale.guard import Changes
from ultrascale.plan.names import stack_description

DESCRIBE, GET = "cloudformation:DescribeStacks", "cloudformation:GetTemplate"
LUSTRE = "AWS::FSx::FileSystem"
SAFE = {"A": body(LUSTRE, {"SubnetIds": ["subnet-1"], "Tags": []})}
TAGGED = {"A": body(LUSTRE, {"SubnetIds": ["subnet-1"], "Tags": ["x"]})}
MOVED = {"A": body(LUSTRE, {"SubnetIds": ["subnet-2"], "Tags": []})}


Diff = Callable[..., Answer]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "cluster.yaml"
    path.write_text(as_text(make_document()))
    return path


@pytest.fixture
def saved(tmp_path: Path) -> partial[Path]:
    return partial(assembly, tmp_path)


@pytest.fixture
def diff(ultrascale: Ultrascale, file: Path, saved: partial[Path]) -> Diff:
    """Compare the resources of a stack before and after."""

    def compare(old: dict[str, Body], new: dict[str, Body], *options: str) -> Answer:
        folders = ("--against", saved("old", old), "--assembly", saved("new", new))
        return ultrascale("diff", file, *folders, *options)

    return compare


def assembly(
    root: Path, name: str, resources: dict[str, Body], stack: str = "research-storage"
) -> Path:
    """Write an assembly of one stack beside the cluster's, and return its folder."""
    stacks = {stack: template(resources), "research-cluster": template({})}
    return write_assembly(root / name, {each: described(stacks[each]) for each in stacks})


def stack(name: str, cluster: str = "research") -> Body:
    """Return what AWS says of a stack that stands."""
    return {
        "StackName": name,
        "StackStatus": "CREATE_COMPLETE",
        "CreationTime": "2026-11-01T00:00:00Z",
        "Description": stack_description(cluster),
    }


def each_of(kind: str, names: str, **properties: object) -> dict[str, Body]:
    return {name: body(kind, dict(properties)) for name in names}


NODES = {"Template": launch_template(), "Guard": guard(guarded=False)}


@rows(
    "old, new, status, says",
    {
        "a safe change": (SAFE, TAGGED, 0, ["safe: 1 updated"]),
        "lost data": (
            SAFE,
            MOVED,
            3,
            [
                "replaced: AWS::FSx::FileSystem A (research-storage/A)",
                "SubnetIds: [subnet-1] -> [subnet-2]",
                "loses: the file system and all files on it",
                "instead: put the property back",
                "to go on: --replace research-storage/A",
            ],
        ),
        "lost protection": (
            {"A": body(LUSTRE, DeletionPolicy="Retain")},
            {"A": body(LUSTRE)},
            3,
            [
                "loses protection: AWS::FSx::FileSystem A (research-storage/A)",
                "DeletionPolicy: Retain -> nothing",
                "refused: 1 protected; 1 loses protection",
            ],
        ),
        "several that are lost alike": (
            each_of("AWS::EC2::Subnet", "AB", CidrBlock="10.0.0.0/24"),
            each_of("AWS::EC2::Subnet", "AB", CidrBlock="10.0.1.0/24"),
            3,
            [
                "replaced: 2 AWS::EC2::Subnet of research-storage",
                "B: CidrBlock: 10.0.0.0/24 -> 10.0.1.0/24",
            ],
        ),
        "what CloudFormation cannot make": (
            {"Q": body("AWS::SQS::Queue")},
            {"Q": body("AWS::SNS::Topic")},
            3,
            ["would roll back"],
        ),
        "nodes that roll": (
            {"Group": node_group(), **NODES},
            {"Group": node_group(Version="1.36"), **NODES},
            0,
            ["rolls: pool train (research-storage), at most 16 nodes", "Version from 1.35 to 1.36"],
        ),
    },
)
def test_a_change_ends_with_its_status_and_says_what_is_lost_why_and_what_to_do_instead(
    diff: Diff, old: dict[str, Body], new: dict[str, Body], status: int, says: list[str]
) -> None:
    answer = diff(old, new)
    assert (answer.returncode, answer.stderr) == (status, "")
    assert [words for words in says if words not in answer.stdout] == []
    assert answer.stdout.count("instead:") <= 1


def test_what_only_opens_ends_with_3_and_is_named_before_and_after(diff: Diff) -> None:
    groups = (
        each_of("AWS::Logs::LogGroup", "AB", KmsKeyId="key"),
        each_of("AWS::Logs::LogGroup", "AB"),
    )
    id = "research-storage/LogGroup.KmsKeyId"

    refused = diff(*groups)
    document = json.loads(diff(*groups, "--json").stdout)
    permitted = diff(*groups, "--replace", "LogGroup.KmsKeyId")

    assert (refused.returncode, permitted.returncode) == (3, 0)
    for words in (
        "research-storage/A/KmsKeyId: key -> nothing",
        "exposes: KmsKeyId: key -> nothing",
        f"to go on: --replace {id}",
        "Opening something, and refused:",
        "Verdict: exposes",
        "refused: 1 opening; ",
    ):
        assert words in refused.stdout
    assert "Protected" not in refused.stdout
    found = (document["status"], document["verdicts"], document["protected"])
    assert found == (3, ["exposes"], [id])
    assert [each["opens"] for each in document["resources"] if each["opens"]] == [
        ["KmsKeyId: key -> nothing"]
    ]
    verdicts = {each["logical_id"]: each["verdict"] for each in document["resources"]}
    assert verdicts == {"A": None, "B": None, "LogGroup.KmsKeyId": "exposes"}
    # The comment of an approval has room for the first lines alone.
    first = permitted.stdout.partition("exposes: KmsKeyId: key -> nothing")[0]
    assert first.splitlines()[1] == "Permitted by --replace:"


def test_what_replace_names_may_go_is_still_told_and_has_to_be_there(diff: Diff) -> None:
    answer = diff(SAFE, MOVED, "--replace", "A")
    unprotected = diff(
        {"A": body(LUSTRE, DeletionPolicy="Retain")}, {"A": body(LUSTRE)}, "--replace", "A"
    )
    nothing = diff(SAFE, MOVED, "--replace", "B")

    assert (answer.returncode, unprotected.returncode, nothing.returncode) == (0, 0, 1)
    assert "Permitted by --replace:" in answer.stdout
    assert "loses: the file system" in answer.stdout
    assert "--replace: nothing that is called B is stopped" in nothing.stderr


def test_programs_read_all_of_it(diff: Diff) -> None:
    answer = diff(SAFE, MOVED, "--json")
    document = json.loads(answer.stdout)
    assert (answer.returncode, document["status"], document["safe"]) == (3, 3, False)
    assert document["protected"] == ["research-storage/A"]
    assert document["resources"][0]["properties"][0]["path"] == "SubnetIds"


def test_a_stack_that_is_left_behind_is_told_with_how_to_remove_it(
    ultrascale: Ultrascale, file: Path, saved: Any
) -> None:
    old, new = saved("old", SAFE, "research-gone"), saved("new", {}, "research-access")
    answer = ultrascale("diff", file, "--against", old, "--assembly", new)
    assert answer.returncode == 0
    assert "`cdk destroy --exclusively research-gone -c cluster=FILE`" in answer.stdout


@pytest.mark.parametrize("option", ["--assembly", "--against"])
@pytest.mark.parametrize("cluster", ["other", "research-eu"])
def test_an_assembly_of_another_cluster_never_passes_for_all_new(
    ultrascale: Ultrascale, file: Path, saved: Any, tmp_path: Path, option: str, cluster: str
) -> None:
    stacks = {f"{cluster}-cluster": described(template(SAFE), cluster)}
    folders = {"--assembly": saved("new", SAFE), "--against": saved("old", SAFE)}
    folders[option] = write_assembly(tmp_path / "other", stacks)
    answer = ultrascale("diff", file, *(each for pair in folders.items() for each in pair))
    assert answer.returncode == 1
    assert f"{option}: {folders[option]} has stacks that are not of research" in answer.stderr


def test_a_stack_of_a_pool_that_the_file_has_no_more_is_not_deployed_from_an_old_assembly(
    ultrascale: Ultrascale, file: Path, saved: Any
) -> None:
    options = ("--against", saved("old", SAFE), "--assembly", saved("new", SAFE, "research-gone"))
    answer = ultrascale("diff", file, *options)
    assert answer.returncode == 1
    assert "got research-gone; synthesize the file anew" in answer.stderr


@rows(
    "told, account, status, says",
    {
        "a change": (
            {
                DESCRIBE: {"Stacks": [stack("research-storage")]},
                GET: {"TemplateBody": json.dumps(template(SAFE))},
            },
            None,
            3,
            "against account 918273645546",
        ),
        "a second cluster": (
            {DESCRIBE: {"Stacks": [stack("old-storage", "old")]}},
            None,
            0,
            "a whole cluster would be made, beside the clusters that are there: old",
        ),
        "no answer": ({DESCRIBE: denied(DESCRIBE)}, None, 1, DESCRIBE),
        "another account": (
            {DESCRIBE: {"Stacks": []}},
            "210987654321",
            1,
            "the cluster file names account 210987654321, the credentials belong to 918273645546",
        ),
    },
)
def test_without_a_folder_the_account_is_asked_and_its_silence_is_never_safe(
    ultrascale: Ultrascale,
    file: Path,
    saved: Any,
    monkeypatch: pytest.MonkeyPatch,
    told: dict[str, Told],
    account: str | None,
    status: int,
    says: str,
) -> None:
    connects(monkeypatch, told)
    if account:
        file.write_text(as_text(make_document(account=account)))
    answer = ultrascale("diff", file, "--assembly", saved("new", MOVED))
    assert answer.returncode == status
    assert says in answer.stdout + answer.stderr


def test_a_comparison_that_is_killed_says_nothing_that_passes_for_safe(
    ultrascale: Ultrascale, file: Path, saved: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ultrascale.guard.synthesize", Mock(side_effect=KeyboardInterrupt))
    answer = ultrascale("diff", file, "--against", saved("old", SAFE))
    assert answer.returncode != 0
    assert "safe" not in answer.stdout


def test_a_wrong_file_or_folder_is_told_before_half_a_minute_of_synthesis(
    ultrascale: Ultrascale, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("ultrascale.guard.synthesize")
    (tmp_path / "c.yaml").write_text("name: c\n")
    wrong = ultrascale("diff", tmp_path / "c.yaml", "--against", tmp_path)
    missing = ultrascale("diff", file, "--against", tmp_path / "missing")
    assert (wrong.returncode, missing.returncode) == (1, 1)
    assert "region" in wrong.stderr
    assert f"{tmp_path / 'missing'}" in missing.stderr
    assert "synthesizing" not in missing.stderr


def test_the_file_is_synthesized_where_no_assembly_is_given(
    ultrascale: Ultrascale, file: Path, saved: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stacks = {"research-storage": template(TAGGED), "research-cluster": template({})}
    synthesize = Mock(return_value=stacks)
    monkeypatch.setattr("ultrascale.guard.synthesize", synthesize)
    assert ultrascale("diff", file, "--against", saved("old", SAFE)).returncode == 0
    assert synthesize.call_args.args[0] == file


def test_a_comparison_without_a_change_is_said_to_be_none() -> None:
    assert list(text_lines(Changes(resources=()))) == ["safe: no resource changes"]


AGENT = {"AddonName": "eks-node-monitoring-agent", "AddonVersion": "v1.7.1-eksbuild.1"}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"AddonVersion": "v1.7.2-eksbuild.1"}, True),
        ({"ConfigurationValues": '{"dcgmAgent": {}}'}, True),
        ({"Tags": ["x"]}, False),
        ({"AddonName": "coredns", "AddonVersion": "v1.12.0-eksbuild.1"}, False),
    ],
    ids=["a newer agent", "another configuration", "other tags", "another add-on"],
)
def test_a_new_monitoring_agent_is_safe_and_said_to_restart_dcgm(
    diff: Diff, change: dict[str, Any], told: bool
) -> None:
    """One lost connection to DCGM marks sound nodes as broken until the agent starts anew."""
    old = AGENT | ({"AddonName": "coredns"} if "AddonName" in change else {})
    pair = {"A": body("AWS::EKS::Addon", old)}, {"A": body("AWS::EKS::Addon", old | change)}

    answer = diff(*pair)

    assert answer.returncode == 0, answer.stdout
    assert ("--restart-agent" in answer.stdout) is told
    (resource,) = json.loads(diff(*pair, "--json").stdout)["resources"]
    assert bool(resource["note"]) is told
