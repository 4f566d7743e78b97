"""`ultrascale diff`, as its user and a pipeline see it."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.account import fake_account
from tests.support.assemblies import described, write_assembly
from tests.support.changes import Body, body, guard, launch_template, node_group, template
from tests.support.command_line import Ultrascale
from tests.support.fake_aws import Told, denied
from tests.support.pools import as_text, make_document
from ultrascale.account import Account
from ultrascale.guard import Changes
from ultrascale.plan.names import stack_description

DESCRIBE, GET = "cloudformation:DescribeStacks", "cloudformation:GetTemplate"
LUSTRE = "AWS::FSx::FileSystem"
SAFE = {"A": body(LUSTRE, {"SubnetIds": ["subnet-1"], "Tags": []})}
TAGGED = {"A": body(LUSTRE, {"SubnetIds": ["subnet-1"], "Tags": ["x"]})}
MOVED = {"A": body(LUSTRE, {"SubnetIds": ["subnet-2"], "Tags": []})}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "cluster.yaml"
    path.write_text(as_text(make_document()))
    return path


@pytest.fixture
def saved(tmp_path: Path) -> partial[Path]:
    return partial(assembly, tmp_path)


def assembly(
    root: Path, name: str, resources: dict[str, Body], stack: str = "research-storage"
) -> Path:
    """Write an assembly of one stack beside the cluster's, and return its folder."""
    stacks = {stack: template(resources), "research-cluster": template({})}
    return write_assembly(root / name, {each: described(stacks[each]) for each in stacks})


def answers(monkeypatch: pytest.MonkeyPatch, told: dict[str, Told]) -> None:
    account, _ = fake_account(told)

    def connect(_: str, __: str | None) -> Account:
        return account

    monkeypatch.setattr("ultrascale.account.connect", connect)


def stack(name: str, cluster: str = "research") -> Body:
    """Return what AWS says of a stack that stands."""
    return {
        "StackName": name,
        "StackStatus": "CREATE_COMPLETE",
        "CreationTime": "2026-11-01T00:00:00Z",
        "Description": stack_description(cluster),
    }


def test_a_safe_change_ends_with_0_and_a_count(
    ultrascale: Ultrascale, file: Path, saved: Any
) -> None:
    answer = ultrascale(
        "diff", file, "--against", saved("old", SAFE), "--assembly", saved("new", TAGGED)
    )

    assert (answer.returncode, answer.stderr) == (0, "")
    assert answer.stdout.splitlines()[-1] == "safe: 1 updated"


def test_a_protected_one_ends_with_3_and_says_what_is_lost_why_and_what_to_do_instead(
    ultrascale: Ultrascale, file: Path, saved: Any
) -> None:
    answer = ultrascale(
        "diff", file, "--against", saved("old", SAFE), "--assembly", saved("new", MOVED)
    )

    assert answer.returncode == 3
    for words in (
        "replaced: AWS::FSx::FileSystem A (research-storage/A)",
        "SubnetIds: [subnet-1] -> [subnet-2]",
        "loses: the file system and all files on it",
        "instead: put the property back",
        "to go on: --replace research-storage/A",
    ):
        assert words in answer.stdout


def test_what_only_loses_its_protection_is_refused_as_well(
    ultrascale: Ultrascale, file: Path, saved: Any
) -> None:
    old = {"A": body(LUSTRE, DeletionPolicy="Retain")}
    options = ("--against", saved("old", old), "--assembly", saved("new", {"A": body(LUSTRE)}))

    answer = ultrascale("diff", file, *options)

    assert answer.returncode == 3
    assert "loses protection: AWS::FSx::FileSystem A (research-storage/A)" in answer.stdout
    assert "DeletionPolicy: Retain -> nothing" in answer.stdout
    assert "refused: 1 protected; 1 loses protection" in answer.stdout
    assert ultrascale("diff", file, *options, "--replace", "A").returncode == 0


def test_what_only_opens_ends_with_3_and_is_named_before_and_after(
    ultrascale: Ultrascale, file: Path, saved: Any
) -> None:
    old, new = (
        saved(name, {each: body("AWS::Logs::LogGroup", properties) for each in "AB"})
        for name, properties in (("old", {"KmsKeyId": "key"}), ("new", {}))
    )
    options = ("diff", file, "--against", old, "--assembly", new)
    id = "research-storage/LogGroup.KmsKeyId"

    refused = ultrascale(*options)
    document = json.loads(ultrascale(*options, "--json").stdout)
    permitted = ultrascale(*options, "--replace", "LogGroup.KmsKeyId")

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
    assert (document["status"], document["verdicts"], document["protected"]) == (
        3,
        ["exposes"],
        [id],
    )
    assert [each["opens"] for each in document["resources"] if each["opens"]] == [
        ["KmsKeyId: key -> nothing"]
    ]
    assert "Protected" not in refused.stdout
    assert {each["logical_id"]: each["verdict"] for each in document["resources"]} == {
        "A": None,
        "B": None,
        "LogGroup.KmsKeyId": "exposes",
    }
    # The comment of an approval has room for the first lines alone.
    first = permitted.stdout.partition("exposes: KmsKeyId: key -> nothing")[0]
    assert first.splitlines()[1] == "Permitted by --replace:"


def test_what_is_lost_alike_is_told_at_once(ultrascale: Ultrascale, file: Path, saved: Any) -> None:
    old, new = (
        {each: body("AWS::EC2::Subnet", {"CidrBlock": f"10.0.{n}.0/24"}) for each in "AB"}
        for n in (0, 1)
    )

    answer = ultrascale(
        "diff", file, "--against", saved("old", old), "--assembly", saved("new", new)
    )

    assert "replaced: 2 AWS::EC2::Subnet of research-storage" in answer.stdout
    assert "B: CidrBlock: 10.0.0.0/24 -> 10.0.1.0/24" in answer.stdout
    assert answer.stdout.count("instead:") == 1


def test_what_replace_names_may_go_and_is_still_told(
    ultrascale: Ultrascale, file: Path, saved: Any
) -> None:
    options = ("--against", saved("old", SAFE), "--assembly", saved("new", MOVED))

    answer = ultrascale("diff", file, *options, "--replace", "A")

    assert answer.returncode == 0
    assert "Permitted by --replace:" in answer.stdout
    assert "loses: the file system" in answer.stdout


def test_a_name_that_replace_gives_to_nothing_is_refused(
    ultrascale: Ultrascale, file: Path, saved: Any
) -> None:
    options = ("--against", saved("old", SAFE), "--assembly", saved("new", MOVED))

    answer = ultrascale("diff", file, *options, "--replace", "B")

    assert answer.returncode == 1
    assert "--replace: nothing that is called B is stopped" in answer.stderr


def test_a_change_that_cloudformation_cannot_make_ends_with_3(
    ultrascale: Ultrascale, file: Path, saved: Any
) -> None:
    old, new = ({"Q": body(kind)} for kind in ("AWS::SQS::Queue", "AWS::SNS::Topic"))

    answer = ultrascale(
        "diff", file, "--against", saved("old", old), "--assembly", saved("new", new)
    )

    assert answer.returncode == 3
    assert "would roll back" in answer.stdout


def test_nodes_that_roll_are_told_with_their_number_and_what_rolls_them(
    ultrascale: Ultrascale, file: Path, saved: Any
) -> None:
    rest = {"Template": launch_template(), "Guard": guard(guarded=False)}
    new = node_group(Version="1.36")

    answer = ultrascale(
        "diff",
        file,
        *("--against", saved("old", {"Group": node_group(), **rest})),
        *("--assembly", saved("new", {"Group": new, **rest})),
    )

    assert answer.returncode == 0
    assert "rolls: pool train (research-storage), at most 16 nodes" in answer.stdout
    assert "Version from 1.35 to 1.36" in answer.stdout


def test_a_stack_that_is_left_behind_is_told_with_how_to_remove_it(
    ultrascale: Ultrascale, file: Path, saved: Any
) -> None:
    answer = ultrascale(
        "diff",
        file,
        *("--against", saved("old", SAFE, "research-gone")),
        *("--assembly", saved("new", {}, "research-access")),
    )

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


def test_programs_read_all_of_it(ultrascale: Ultrascale, file: Path, saved: Any) -> None:
    options = ("--against", saved("old", SAFE), "--assembly", saved("new", MOVED))

    answer = ultrascale("diff", file, *options, "--json")

    document = json.loads(answer.stdout)
    assert (answer.returncode, document["status"], document["safe"]) == (3, 3, False)
    assert document["protected"] == ["research-storage/A"]
    assert document["resources"][0]["properties"][0]["path"] == "SubnetIds"


def test_without_a_folder_the_account_is_asked(
    ultrascale: Ultrascale, file: Path, saved: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployed = {"Stacks": [stack("research-storage")]}
    answers(monkeypatch, {DESCRIBE: deployed, GET: {"TemplateBody": json.dumps(template(SAFE))}})

    answer = ultrascale("diff", file, "--assembly", saved("new", MOVED))

    assert answer.returncode == 3
    assert "against account 918273645546" in answer.stdout


def test_a_cluster_that_would_be_a_second_one_is_told_beside_which(
    ultrascale: Ultrascale, file: Path, saved: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers(monkeypatch, {DESCRIBE: {"Stacks": [stack("old-storage", "old")]}})

    answer = ultrascale("diff", file, "--assembly", saved("new", SAFE))

    assert answer.returncode == 0
    assert "a whole cluster would be made, beside the clusters that are there: old" in answer.stdout


def test_a_comparison_that_is_killed_says_nothing_that_passes_for_safe(
    ultrascale: Ultrascale, file: Path, saved: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ultrascale.guard.synthesize", interrupted)

    answer = ultrascale("diff", file, "--against", saved("old", SAFE))

    assert answer.returncode != 0
    assert "safe" not in answer.stdout


def test_an_account_that_does_not_answer_is_never_safe(
    ultrascale: Ultrascale, file: Path, saved: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers(monkeypatch, {DESCRIBE: denied(DESCRIBE)})

    answer = ultrascale("diff", file, "--assembly", saved("new", MOVED))

    assert answer.returncode == 1
    assert "cloudformation:DescribeStacks" in answer.stderr


def test_another_account_than_the_files_is_never_safe(
    ultrascale: Ultrascale, tmp_path: Path, saved: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers(monkeypatch, {DESCRIBE: {"Stacks": []}})
    file = tmp_path / "other.yaml"
    file.write_text(as_text(make_document(account="210987654321")))

    answer = ultrascale("diff", file, "--assembly", saved("new", SAFE))

    assert answer.returncode == 1
    assert (
        "the cluster file names account 210987654321, the credentials belong to 918273645546"
        in answer.stderr
    )


def test_a_file_that_is_wrong_is_refused_before_anything_is_compared(
    ultrascale: Ultrascale, tmp_path: Path
) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("name: c\n")

    answer = ultrascale("diff", file, "--against", tmp_path)

    assert answer.returncode == 1
    assert "region" in answer.stderr


def test_a_wrong_folder_is_told_before_half_a_minute_of_synthesis(
    ultrascale: Ultrascale, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("ultrascale.guard.synthesize")

    answer = ultrascale("diff", file, "--against", tmp_path / "missing")

    assert answer.returncode == 1
    assert f"{tmp_path / 'missing'}" in answer.stderr
    assert "synthesizing" not in answer.stderr


def test_the_file_is_synthesized_where_no_assembly_is_given(
    ultrascale: Ultrascale, file: Path, saved: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Path] = []

    def synthesize(given: Path, folder: Path) -> dict[str, Body]:
        asked.append(given)
        assert folder.is_dir()
        return {"research-storage": template(TAGGED), "research-cluster": template({})}

    monkeypatch.setattr("ultrascale.guard.synthesize", synthesize)

    assert ultrascale("diff", file, "--against", saved("old", SAFE)).returncode == 0
    assert asked == [file]


def test_a_comparison_without_a_change_is_said_to_be_none() -> None:
    from ultrascale.cli.change_views import text_lines

    assert list(text_lines(Changes(resources=()))) == ["safe: no resource changes"]
