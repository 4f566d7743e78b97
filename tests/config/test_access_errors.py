"""Mistakes in `kubernetes.access`, by `check` and by `plan`."""

from typing import Any

import pytest

from tests.support.cases import for_each
from tests.support.config_documents import mistakes_in
from tests.support.pools import as_text, governed_document, loads_own, make_cluster, make_document
from ultrascale import config
from ultrascale.errors import ConfigError
from ultrascale.plan import plan_cluster

ROLE = "arn:aws:iam::111122223333:role/"
ADMIN = f"{ROLE}PlatformAdmin"
KUEUE = {"queueing": "kueue", "queues": [{"name": "research"}]}


def item(policy: str = "edit", role: str = f"{ROLE}R", **scope: Any) -> dict[str, Any]:
    return {"role": role, "policy": policy, **scope}


def access(*items: dict[str, Any], **changes: Any) -> dict[str, Any]:
    kubernetes = {"admins": [ADMIN], "access": [*items]}
    return make_document(kubernetes=kubernetes, **changes)


def planned(document: dict[str, Any]) -> list[str]:
    try:
        plan_cluster(loads_own(as_text(document), source="f"))
    except ConfigError as error:
        return [each.keyed for each in error.diagnostics]
    return []


HERE: dict[str, Any] = {"namespaces": ["training"]}
BY_CHECK: dict[str, tuple[dict[str, Any], str]] = {
    "not a level": (
        access(item("write", **HERE)),
        "kubernetes.access[0].policy: unknown value, got 'write'; "
        "write view, edit, admin or cluster-admin",
    ),
    "no role": (
        access(item(role="Researchers", **HERE)),
        "kubernetes.access[0].role: not the ARN of an IAM role, got 'Researchers'; "
        "write arn:aws:iam::ACCOUNT:role/NAME",
    ),
    "a role of Identity Center without its path": (
        access(item(role=f"{ROLE}AWSReservedSSO_Dev_0123456789abcdef", **HERE)),
        "kubernetes.access[0].role: a role of IAM Identity Center without its path, got "
        f"'{ROLE}AWSReservedSSO_Dev_0123456789abcdef'; write it with "
        "aws-reserved/sso.amazonaws.com/ before its name, as `aws iam get-role` tells it",
    ),
    "another partition": (
        access(item(role="arn:aws-us-gov:iam::111122223333:role/R", **HERE)),
        "kubernetes.access[0].role: a role outside partition aws of us-west-2, got "
        "'arn:aws-us-gov:iam::111122223333:role/R'; write arn:aws:iam::ACCOUNT:role/NAME",
    ),
    "an administrator": (
        access(item(role=ADMIN, **HERE)),
        "kubernetes.access[0].role: one of kubernetes.admins, which may do everything already, "
        f"got '{ADMIN}'; keep it in one of the two lists",
    ),
    "a bounded cluster-admin": (
        access(item("cluster-admin", **HERE)),
        "kubernetes.access[0].namespaces: a bound of cluster-admin, which holds in the whole "
        "cluster; leave it out, or write policy: admin",
    ),
    "no namespace": (
        access(item(namespaces=[])),
        "kubernetes.access[0].namespaces: an empty list, which lets nobody in, got []; name some; "
        "without the key it holds in the whole cluster",
    ),
    "a team beside namespaces": (
        governed_document(kubernetes={"access": [item(team="research", **HERE)]}),
        "kubernetes.access[0].namespaces: beside team, which stands for namespace "
        "hyperpod-ns-research; keep one of the two",
    ),
    "a team that is not there": (
        governed_document(kubernetes={"access": [item(team="reserch")]}),
        "kubernetes.access[0].team: not a team of hyperpod.task_governance, got 'reserch'; "
        "did you mean research?",
    ),
    "a queue that is not there": (
        access(item(queue="reserch"), scheduling=KUEUE),
        "kubernetes.access[0].queue: not one of scheduling.queues, got 'reserch'; "
        "did you mean research?",
    ),
    "a queue without an engine": (
        access(item(queue="research")),
        "kubernetes.access[0].queue: a queue without an engine, got 'research'; "
        "set scheduling.queueing: kueue, or volcano",
    ),
    "a reader of one queue": (
        access(item("view", queue="research"), scheduling=KUEUE),
        "kubernetes.access[0].queue: a queue of a role that sends no jobs: nobody can read the "
        "jobs of one queue alone, got 'research'; name namespaces, or write policy: edit",
    ),
    "an admin with one queue": (
        access(item("admin", queue="research"), scheduling=KUEUE),
        "kubernetes.access[0].queue: a queue of an admin, who may let service accounts send jobs "
        "to any, got 'research'; leave it out, or write policy: edit",
    ),
    "the same again": (
        access(item(**HERE), item(**HERE)),
        "kubernetes.access[1]: adds nothing to kubernetes.access[0], which gives the same role as "
        "much; leave one of them out",
    ),
    "less than another one": (
        access(item("view", **HERE), item()),
        "kubernetes.access[0]: adds nothing to kubernetes.access[1], which gives the same role as "
        "much; leave one of them out",
    ),
}
BY_PLAN: dict[str, tuple[dict[str, Any], str]] = {
    "a namespace that nobody makes": (
        access(item(namespaces=["trainning"])),
        "kubernetes.access[0].namespaces[0]: not a namespace that this cluster makes, got "
        "'trainning'; did you mean training?; jobs run in training, and where storage has claims",
    ),
    "a namespace of controllers": (
        access(item(namespaces=["training", "kube-system"])),
        "kubernetes.access[0].namespaces[1]: a namespace of controllers: who has edit there takes "
        "on their service accounts, and rules the cluster, got 'kube-system'; write policy: view, "
        "or cluster-admin",
    ),
}


@for_each(BY_CHECK)
def test_access_that_gives_nothing_or_too_much_is_refused(
    document: dict[str, Any], line: str
) -> None:
    assert mistakes_in(document) == [line]


@for_each(BY_PLAN)
def test_a_namespace_that_nobody_should_write_in_is_refused(
    document: dict[str, Any], line: str
) -> None:
    assert mistakes_in(document) == []
    assert planned(document) == [line]


@pytest.mark.parametrize(
    "items",
    [
        [item(**HERE), item("view")],
        [item("cluster-admin")],
        [item("view", namespaces=["training", "kube-system"])],
        [
            item(
                role=f"{ROLE}aws-reserved/sso.amazonaws.com/us-west-2/AWSReservedSSO_D_0123456789abcdef"
            )
        ],
    ],
    ids=["two levels of one role", "another administrator", "a reader", "Identity Center"],
)
def test_what_people_write_is_taken(items: list[dict[str, Any]]) -> None:
    assert planned(access(*items)) == []


def warned(*items: dict[str, Any], admins: bool = True) -> list[str]:
    kubernetes = {"admins": [ADMIN] if admins else [], "access": [*items]}
    found = config.warnings(make_cluster(kubernetes=kubernetes))
    return [line for line in found if line.startswith("kubernetes.")]


def test_an_editor_of_the_whole_cluster_is_warned_of() -> None:
    (line,) = warned(item())

    assert line == (
        "kubernetes.access[0].policy: edit without namespaces includes kube-system, whose Secrets "
        "and service accounts rule the cluster; name namespaces, or write cluster-admin if that is "
        "meant"
    )


def test_a_cluster_that_nobody_administers_is_warned_of() -> None:
    (line,) = warned(item(**HERE), admins=False)

    assert line.startswith("kubernetes.admins: empty, so nobody administers the cluster")
    assert warned(item("cluster-admin"), admins=False) == []
