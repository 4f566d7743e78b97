"""`ultrascale destroy`, as its user sees it."""

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import pytest

from tests.support.command_line import Answer, Terminal, Ultrascale, run
from tests.support.estate.account import Estate
from tests.support.estate.cluster import (
    BUCKET,
    DOCUMENT,
    FILE_SYSTEM,
    estate,
    instance,
    interface,
    stack,
)
from tests.support.estate.doubles import FakeClock
from tests.support.fake_aws import ID, denied
from tests.support.pools import as_text
from tests.support.stub_api_server import Refusal
from ultrascale.account import Account
from ultrascale.cli.destroy import UNFINISHED
from ultrascale.cluster_api.server import Cluster

ARN = f"arn:aws:eks:us-west-2:{ID}:cluster/research"
ALL = ["--delete-logs", *(f"--delete-storage={each}" for each in ("scratch", "data", "trainer"))]


@pytest.fixture
def destroy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Callable[..., Answer]:
    """Run the command on the cluster file against an account."""
    ultrascale: Ultrascale = partial(run, monkeypatch=monkeypatch, capsys=capsys)
    monkeypatch.chdir(tmp_path)

    def run_it(found: Estate, *options: str, kubeconfig: str = ARN, **changes: object) -> Answer:
        file = tmp_path / "cluster.yaml"
        file.write_text(as_text(DOCUMENT | changes))

        def connect(region: str, profile: str | None) -> Account:
            assert (region, profile) == ("us-west-2", None)
            return found.account

        def connected(_path: Path | None, _context: str | None) -> Cluster:
            api = found.reach()
            api.name = kubeconfig
            return api

        monkeypatch.setattr("ultrascale.account.connect", connect)
        monkeypatch.setattr(Cluster, "connected", connected)
        monkeypatch.setattr("ultrascale.cli.destroy.SystemClock", FakeClock)
        return ultrascale("destroy", file, *options)

    return run_it


Destroy = Callable[..., Answer]


def test_a_dry_run_prints_what_goes_and_stays_and_deletes_nothing(destroy: Destroy) -> None:
    cluster = estate()

    answer = destroy(cluster, "--dry-run")

    assert answer.returncode == 0
    assert cluster.changes == 0
    going, _, staying = answer.stdout.partition("\nstays:")
    for id in ("training/bert", "NodeClaim burst-1", "research/train", "vol-1", "secret-1"):
        assert id in going
    for id in (FILE_SYSTEM, BUCKET, "nat-0a1", "key-1"):
        assert id in staying
        assert id not in going
    # A NAT gateway, 1200 GiB of Lustre, a volume and a key; of what else is stored nobody knows.
    hourly = 0.045 + (1200 * 0.21 + 100 * 0.08 + 1) / 730
    assert f"together at least ${hourly:.3f} per hour" in staying
    assert "3 more that are paid for are not in it" in staying


def test_a_dry_run_says_at_which_step_it_would_stop(destroy: Destroy) -> None:
    cluster = estate()
    cluster.interfaces["eni-7"] = interface("eni-7", Description="Amazon EKS research-two")
    answer = destroy(cluster, "--dry-run", *ALL)
    assert answer.returncode == UNFINISHED
    *_, last = answer.stdout.rstrip().splitlines()
    assert last.startswith("it will stop at step 10, network: VPC vpc-0a1: it is in use by")


def test_a_cluster_that_goes_whole_ends_well_and_leaves_a_journal(
    destroy: Destroy, tmp_path: Path
) -> None:
    cluster = estate()
    answer = destroy(cluster, "--confirm=research", *ALL)
    assert answer.returncode == 0, answer
    assert "nothing is left that nobody kept" in answer.stdout
    assert "kept:" in answer.stdout
    lines = (tmp_path / "destroy-research-us-west-2.jsonl").read_text().splitlines()
    assert json.loads(lines[-1])["end"]


def test_a_file_that_a_rule_refuses_still_takes_its_cluster_down(destroy: Destroy) -> None:
    """Its nodes are paid for until they are gone, whatever a younger release says of the file."""
    floors = {"scheduling": {"preflight": {"floors": {"p4d.24xlarge": 30}}}}

    answer = destroy(estate(), "--confirm=research", *ALL, **floors)

    assert answer.returncode == 0, answer
    assert "scheduling.preflight.floors" in answer.stderr


def test_a_step_that_stops_is_told_with_what_is_still_paid_for(destroy: Destroy) -> None:
    cluster = estate(train=stack("train", stuck=("Group", "in use")))

    answer = destroy(cluster, "--confirm=research")

    assert answer.returncode == UNFINISHED
    assert "stopped: stack research-train: AWS::EKS::Nodegroup research/train: in use" in (
        answer.stderr
    )
    left = answer.stdout.partition("left, although nobody kept it:")[2]
    assert "i-0a1 (p5.48xlarge running): it runs on" in left
    assert "per hour, at prices of" in left

    cluster.stacks["research-train"].stuck = None
    again = destroy(cluster, "--confirm=research", *ALL)
    assert again.returncode == 0
    assert "an earlier run ended at" in again.stdout


@pytest.mark.parametrize(
    ("place", "deleted"),
    [
        (f"{FakeClock.__module__}.FakeClock.sleep", ["bert"]),
        ("ultrascale.teardown.runner.sweep", None),
    ],
)
def test_ctrl_c_says_that_what_is_left_is_paid_for_and_how_to_go_on(
    place: str, deleted: list[str] | None, destroy: Destroy, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = estate()
    with monkeypatch.context() as patch:
        patch.setattr(place, Mock(side_effect=KeyboardInterrupt))
        answer = destroy(cluster, "--confirm=research", *ALL)
    assert answer.returncode == 130
    assert "what is left is paid for; run the command again" in answer.stderr
    assert deleted is None or cluster.deleted == deleted
    assert destroy(cluster, "--confirm=research", *ALL).returncode == 0


def test_an_orphan_and_what_nobody_could_ask_fail_the_command(destroy: Destroy) -> None:
    cluster = estate()
    cluster.instances["i-9"] = instance("i-9", "", "p5.48xlarge", CapacityReservationId="cr-9")
    cluster.answers["iam:ListInstanceProfiles"] = denied("iam:ListInstanceProfiles")

    answer = destroy(cluster, "--confirm=research", *ALL)
    again = destroy(cluster, "--dry-run")

    assert (answer.returncode, again.returncode) == (UNFINISHED, UNFINISHED)
    assert "aws ec2 terminate-instances --instance-ids i-9 --region us-west-2" in answer.stdout
    assert "nobody knows what is left of it:\n   - iam:ListInstanceProfiles" in answer.stdout
    assert "nothing is left" not in answer.stdout
    assert "nothing of it is there" in again.stdout
    assert "it runs on, and holds cr-9" in again.stdout


@pytest.mark.parametrize(("typed", "deleted"), [("research\n", True), ("yes\n", False)])
def test_only_the_name_of_the_cluster_confirms(
    typed: str, deleted: bool, destroy: Destroy, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = estate()
    monkeypatch.setattr(sys, "stdin", Terminal(typed))
    answer = destroy(cluster, *ALL)
    assert bool(cluster.deleted) == deleted
    assert answer.returncode == (0 if deleted else 1)


@pytest.mark.parametrize(
    ("options", "changes", "says"),
    [
        (["--confirm=other"], {}, "the cluster file names research, got 'other'"),
        ([], {}, "without a terminal nobody is asked; add --confirm research"),
        (["--confirm=research", "--delete-storage=x"], {}, "got 'x'; name one of data"),
        (
            ["--confirm=research"],
            {"account": "123456789012"},
            f"account 123456789012, the credentials belong to {ID}",
        ),
        (
            ["--confirm=research"],
            {"kubeconfig": ARN.replace("research", "prod")},
            "not the EKS cluster research",
        ),
        (["--confirm=research"], {"kubeconfig": ""}, "names the cluster of this pod"),
    ],
)
def test_wrong_options_and_another_account_or_cluster_are_never_touched(
    options: list[str], changes: dict[str, str], says: str, destroy: Destroy
) -> None:
    cluster = estate()
    answer = destroy(cluster, *options, **changes)
    assert answer.returncode == 1
    assert says in answer.stderr
    assert cluster.changes == 0
    assert changes or cluster.aws.calls == []


def test_a_cluster_that_is_still_being_made_is_waited_for(destroy: Destroy) -> None:
    cluster = estate()
    cluster.cluster = {"status": "CREATING", "deletionProtection": False}
    answer = destroy(cluster, "--confirm=research")
    assert "it is CREATING; wait until that has ended" in answer.stderr
    assert cluster.changes == 0


def test_an_api_server_that_does_not_answer_is_told_with_how_to_reach_it(destroy: Destroy) -> None:
    cluster = estate()
    cluster.api.refuse("GET", "nodepools", Refusal(503))
    answer = destroy(cluster, "--confirm=research")
    assert answer.returncode == 1
    assert "aws eks update-kubeconfig --name research --region us-west-2" in answer.stderr
    assert cluster.changes == 0


def test_nobody_does_without_the_api_server_while_nodes_run_that_it_alone_can_end(
    destroy: Destroy,
) -> None:
    cluster = estate()
    tags = [
        {"Key": "kubernetes.io/cluster/research", "Value": "owned"},
        {"Key": "karpenter.sh/nodepool", "Value": "burst"},
    ]
    cluster.instances["i-9"] = instance("i-9", "", "m7i.8xlarge", Tags=tags)

    refused = destroy(cluster, "--confirm=research", "--skip-kubernetes")

    assert refused.returncode == 1
    assert "1 nodes of NodePools run (i-9)" in refused.stderr
    assert cluster.changes == 0

    del cluster.instances["i-9"]
    cluster.api.refuse("GET", "", Refusal(503))
    answer = destroy(cluster, "--confirm=research", "--skip-kubernetes", *ALL)
    assert answer.returncode == 0
    assert "research-network" in cluster.deleted
