"""HyperPod settings that would fail in an account, or share nodes by other rules than meant."""

from typing import Any

import pytest

from tests.support.config_documents import mistakes_in, with_pool
from tests.support.existing_vpc import OWNER, VPC, existing_document
from tests.support.pools import (
    GOVERNED_POOL,
    HYPERPOD_POOL,
    ON_DEMAND,
    SYSTEM_POOL,
    governed_document,
    make_document,
)
from ultrascale import catalog
from ultrascale.catalog.provisioners import installed_provisioners
from ultrascale.config import pools

TAINT = {"key": "team", "value": "vision"}


def hyperpod_document(**pool: Any) -> dict[str, Any]:
    return make_document(pools=[SYSTEM_POOL, HYPERPOD_POOL | pool])


def team(name: str = "research", **changes: Any) -> dict[str, Any]:
    return {"name": name, "fair_share_weight": 40, **changes}


BAD = {
    "operator without a node that takes its controller": (
        hyperpod_document() | {"hyperpod": {"training_operator": True}},
        "hyperpod.training_operator: its controller runs on HyperPod's nodes and tolerates no "
        "taint, which all of them have, got true; "
        "set deep_health_checks: true in a pool of provisioner hyperpod, which has none then",
    ),
    "operator beside an engine that gives it no job": (
        hyperpod_document(deep_health_checks=True)
        | {"hyperpod": {"training_operator": True}, "scheduling": {"queueing": "volcano"}},
        "hyperpod.training_operator: beside volcano, which runs every training job itself, "
        "got true; leave it out, or set scheduling.queueing: none",
    ),
    "type that HyperPod does not have": (
        hyperpod_document(instance_types=["trn2u.48xlarge"]),
        "pools[hp].instance_types[0]: a type that HyperPod does not have, got 'trn2u.48xlarge'; "
        "did you mean trn2.3xlarge?",
    ),
    "count that scales": (
        hyperpod_document(nodes={"min": 1, "max": 8}),
        "pools[hp].nodes.max: a count that scales: nothing scales HyperPod's instance groups, "
        "got 8; "
        "write static for a fixed count",
    ),
    "more than a group holds": (
        hyperpod_document(nodes={"static": 7000}),
        "pools[hp].nodes.static: more than the 6758 instances of a HyperPod group, got 7000; "
        "write shards of fewer nodes",
    ),
    "more groups than a cluster has": (
        hyperpod_document(nodes={"static": 1}, shards=101, purchase=ON_DEMAND),
        "pools: 101 instance groups, and a HyperPod cluster has 100 at most; "
        "write fewer and larger shards",
    ),
    "more labels than a group takes": (
        hyperpod_document(labels={f"l{number}": "x" for number in range(41)}),
        "pools[hp].labels: more labels than the 40 that a HyperPod group has room for beside ours, "
        "got 41; keep 40",
    ),
    "tags of instances in AWS's account": (
        hyperpod_document(tags={"team": "vision"}),
        "pools[hp].tags: HyperPod's instances are in an account of AWS, where nothing of yours "
        "tags "
        "them; leave it out",
    ),
    "taints beside deep health checks": (
        hyperpod_document(deep_health_checks=True, taints=[TAINT]),
        "pools[hp].taints: HyperPod takes no taints where it runs deep health checks; "
        "leave it out, or set deep_health_checks: false",
    ),
    "taints on the nodes of controllers": (
        make_document(pools=[SYSTEM_POOL | {"taints": [TAINT]}]),
        "pools[system].taints: taints on the nodes of controllers and add-ons, which do not "
        "tolerate "
        "them; leave it out",
    ),
    "a taint of the pool's own": (
        with_pool(taints=[{"key": "nvidia.com/gpu", "value": "true"}]),
        "pools[train].taints[0].key: a taint that others set, or that follows from the pool, "
        "got nvidia.com/gpu; use a key of your own",
    ),
    "a taint twice": (
        with_pool(taints=[TAINT, TAINT | {"value": "other"}]),
        "pools[train].taints[1].key: twice with one effect, got team; keep one",
    ),
    "Region without HyperPod": (
        make_document(
            region="eu-west-3",
            network={"vpc_cidr": "10.0.0.0/16", "zones": ["eu-west-3a", "eu-west-3b"]},
            pools=[
                SYSTEM_POOL,
                HYPERPOD_POOL | {"zones": ["eu-west-3a"], "purchase": ON_DEMAND},
            ],
        ),
        "pools[hp].provisioner: CloudFormation makes no HyperPod clusters in eu-west-3, "
        "got 'hyperpod'; use a Region of ap-northeast-1, ap-northeast-2, ap-south-1, ap-south-2, "
        "ap-southeast-1, ap-southeast-2, ap-southeast-3, ap-southeast-4, ca-central-1, "
        "eu-central-1, eu-north-1, eu-south-2, eu-west-1, eu-west-2, sa-east-1, us-east-1, "
        "us-east-2, us-west-1, us-west-2",
    ),
    "Region without all of task governance": (
        make_document(
            pools=[SYSTEM_POOL, HYPERPOD_POOL],
            hyperpod={"task_governance": {"teams": [team()]}},
        ),
        "hyperpod.task_governance: CloudFormation has not all of HyperPod task governance in "
        "us-west-2; leave it out, or use a Region of ap-south-1, eu-central-1, us-east-1",
    ),
    "several types under quotas": (
        governed_document(
            pools=[
                SYSTEM_POOL,
                GOVERNED_POOL
                | {"instance_types": ["p5.48xlarge", "p5en.48xlarge"], "purchase": ON_DEMAND},
            ]
        ),
        "hyperpod.task_governance: several types in pools[hp], of which each team would need a "
        "quota "
        "of its own; keep one type there, or leave task_governance out",
    ),
    "more priorities than there are": (
        governed_document(
            scheduling={"priority_classes": {f"p{number}": number for number in range(11)}}
        ),
        "hyperpod.task_governance: 11 priority classes, and task governance has 10 at most; "
        "shorten scheduling.priority_classes",
    ),
    "a priority that task governance cannot call so": (
        governed_document(scheduling={"priority_classes": {"very.high": 1}}),
        "hyperpod.task_governance: priority class very.high, and task governance takes no dots; "
        "rename it in scheduling.priority_classes",
    ),
    "more types than a quota has": (
        governed_document(
            pools=[
                SYSTEM_POOL,
                *(
                    GOVERNED_POOL
                    | {"name": f"hp{number}", "instance_types": [name], "purchase": ON_DEMAND}
                    for number, name in enumerate(
                        sorted(n for n, spec in catalog.INSTANCE_TYPES.items() if spec.hyperpod)[
                            :16
                        ]
                    )
                ),
            ]
        ),
        "hyperpod.task_governance: pools of 16 types, and a quota has 15 at most; "
        "use fewer types, or leave task_governance out",
    ),
    "weights that are all 0": (
        governed_document(team("a", fair_share_weight=0), team("b", fair_share_weight=0)),
        "hyperpod.task_governance.teams: weights that are all 0, by which 8 nodes of hp cannot be "
        "shared; give one a fair_share_weight above 0, or nodes",
    ),
    "weight above 100": (
        governed_document(team(fair_share_weight=101)),
        "hyperpod.task_governance.teams[research].fair_share_weight: out of range, got 101; "
        "write at most 100",
    ),
    "weight below 0": (
        governed_document(team(fair_share_weight=-1)),
        "hyperpod.task_governance.teams[research].fair_share_weight: out of range, got -1; "
        "write at least 0",
    ),
    "teams of more nodes than the pool": (
        governed_document(team("a", nodes={"hp": 5}), team("b", nodes={"hp": 4})),
        "hyperpod.task_governance.teams: teams of 9 nodes together, and pool hp has 8; "
        "give them fewer, or raise nodes of the pool",
    ),
    "nodes of another pool": (
        governed_document(team(nodes={"ph": 1})),
        "hyperpod.task_governance.teams[research].nodes.ph: no pool with provisioner: "
        "hyperpod, got 1; "
        "known: hp",
    ),
    "team that only borrows": (
        governed_document(team(borrow_limit_percent=50)),
        "hyperpod.task_governance.teams[research].borrow_limit_percent: a team that lends "
        "nothing cannot "
        "borrow, got 50; set lend: true, or leave it out",
    ),
    "borrowing of nothing": (
        governed_document(team(lend=True, borrow_limit_percent=0)),
        "hyperpod.task_governance.teams[research].borrow_limit_percent: out of range, got 0; "
        "write at least 1",
    ),
    "borrowing of more than SageMaker documents": (
        governed_document(team(lend=True, borrow_limit_percent=501)),
        "hyperpod.task_governance.teams[research].borrow_limit_percent: out of range, got 501; "
        "write at most 500",
    ),
    "no team": (
        governed_document(hyperpod={"task_governance": {"teams": []}}),
        "hyperpod.task_governance.teams: no team to govern, got []; "
        "add one, or remove task_governance",
    ),
    "training plan of another Region": (
        governed_document(
            pools=[SYSTEM_POOL, GOVERNED_POOL | {"purchase": HYPERPOD_POOL["purchase"]}]
        ),
        "pools[hp].purchase.plan: an ARN outside us-east-1 of partition aws, "
        "got 'arn:aws:sagemaker:us-west-2:111122223333:training-plan/baseline'; "
        "name one of the cluster's Region",
    ),
    "training plan in a zone without subnets": (
        governed_document(pools=[SYSTEM_POOL, GOVERNED_POOL | {"zones": ["us-east-1c"]}]),
        "pools[hp].zones[0]: not one of network.zones, got 'us-east-1c'; "
        "use one of us-east-1a, us-east-1b, or add it there",
    ),
}


BAD["chart that no build can install"] = (
    existing_document(
        SYSTEM_POOL,
        HYPERPOD_POOL | {"purchase": ON_DEMAND, "zones": ["us-east-1a"]},
        vpc={"id": VPC, "cidrs": ["10.20.0.0/16", "100.64.0.0/16"], "owner": OWNER},
    ),
    "pools[hp].provisioner: a build in the VPC installs HyperPod's chart, and AWS CodeBuild runs "
    "in no subnet that another account shares, got 'hyperpod'; "
    "use another provisioner, or a VPC of this account",
)


@pytest.mark.parametrize(("document", "line"), BAD.values(), ids=list(BAD))
def test_a_mistake_is_named_with_its_key_its_value_and_a_way_out(
    document: dict[str, Any], line: str
) -> None:
    assert line in mistakes_in(document)


def test_the_documents_that_the_mistakes_are_made_in_have_none() -> None:
    assert mistakes_in(hyperpod_document()) == []
    assert mistakes_in(governed_document(team("a", nodes={"hp": 8}), team("b"))) == []
    assert mistakes_in(with_pool(taints=[TAINT, TAINT | {"effect": "NoExecute"}])) == []


def test_a_pool_of_a_part_that_is_not_installed_is_a_mistake(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    core = {key: value for key, value in installed_provisioners().items() if key != "hyperpod"}
    monkeypatch.setattr(pools, "installed_provisioners", lambda: core)

    assert (
        "pools[hp].provisioner: a provisioner of a part that is not installed, got 'hyperpod'; "
        "install it, or write one of managed-node-group, self-managed, karpenter, auto-mode"
    ) in mistakes_in(hyperpod_document())
