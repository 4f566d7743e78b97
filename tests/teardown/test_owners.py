"""Resources that another stack has adopted are not deleted."""

from pathlib import Path

import pytest

from tests.support.estate.account import Estate
from tests.support.estate.cluster import (
    BUCKET,
    FILE_SYSTEM,
    LOGS,
    REPOSITORY,
    estate,
    ids,
    kept,
    stack,
)
from tests.support.estate.doubles import FakeStack
from tests.support.fake_aws import denied
from ultrascale.errors import QuestionError, UnansweredError
from ultrascale.teardown.kept import Asked

ASK = "cloudformation:DescribeStackResources"
INSIGHTS = "/aws/containerinsights/research/performance"


def imported(kind: str, id: str) -> Estate:
    """Return the account of a cluster whose storage outlived it, and went into another's stack."""
    theirs = FakeStack("theirs-storage", [(kind, "Imported", id, True)], cluster="theirs")
    gone = {name: stack(name, status="DELETE_COMPLETE") for name in ("storage", "registry")}
    return estate(theirs, **gone)


@pytest.mark.parametrize(
    ("name", "kind", "id"),
    [
        ("scratch", "AWS::FSx::FileSystem", FILE_SYSTEM),
        (FILE_SYSTEM, "AWS::FSx::FileSystem", FILE_SYSTEM),
        ("data", "AWS::S3::Bucket", BUCKET),
        ("trainer", "AWS::ECR::Repository", REPOSITORY),
    ],
)
def test_data_that_another_stack_has_taken_over_is_not_deleted(
    name: str, kind: str, id: str
) -> None:
    cluster = imported(kind, id)
    with pytest.raises(QuestionError, match=f"{id} .*is in the stack theirs-storage by now"):
        cluster.planned(Asked(storage=frozenset({name})))
    assert id in kept(cluster.planned())


def test_a_log_group_of_another_stack_stays_and_the_others_go(tmp_path: Path) -> None:
    held = [("AWS::Logs::LogGroup", "Performance", INSIGHTS, False)]
    cluster = estate(FakeStack("monitoring", held, cluster="theirs"))
    cluster.log_groups.add(INSIGHTS)

    teardown = cluster.run(tmp_path, Asked(logs=True))

    assert INSIGHTS in cluster.log_groups
    assert LOGS not in cluster.log_groups
    left = kept(teardown)[INSIGHTS]
    assert left.why == "the stack monitoring has it, which is not of this cluster"
    assert left.command == "goes with that stack"


def test_what_only_a_stack_held_that_is_gone_goes_when_it_is_named() -> None:
    cluster = estate(storage=stack("storage", status="DELETE_COMPLETE"))
    assert FILE_SYSTEM in ids(cluster.planned(Asked(storage=frozenset({"scratch"}))))


def test_nothing_is_deleted_of_which_nobody_can_tell_whose_it_is() -> None:
    cluster = estate(storage=stack("storage", status="DELETE_COMPLETE"))
    cluster.answers[ASK] = denied(ASK)
    with pytest.raises(UnansweredError):
        cluster.planned(Asked(storage=frozenset({"scratch"})))
