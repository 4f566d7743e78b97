"""Mistakes in `kubernetes.access`, by `check` and by `plan`."""

from typing import Any

import pytest

from tests.support.pools import as_text, loads_own, make_cluster, make_document
from tests.support.verdicts import verdicts, warned_of
from ultrascale.errors import ConfigError
from ultrascale.plan import plan_cluster

ROLE = "arn:aws:iam::111122223333:role/"
ADMIN = f"{ROLE}PlatformAdmin"


def item(policy: str = "edit", role: str = f"{ROLE}R", **scope: Any) -> dict[str, Any]:
    return {"role": role, "policy": policy, **scope}


def access(*items: dict[str, Any], **changes: Any) -> dict[str, Any]:
    kubernetes = {"admins": [ADMIN], "access": [*items]}
    return make_document(kubernetes=kubernetes, **changes)


def planned(document: dict[str, Any]) -> list[str]:
    try:
        plan_cluster(loads_own(as_text(document), source="f"))
    except ConfigError as error:
        return verdicts(error)
    return []


HERE: dict[str, Any] = {"namespaces": ["training"]}


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
    found = warned_of(make_cluster(kubernetes=kubernetes))
    return [line for line in found if line.startswith("warning kubernetes.")]


def test_an_editor_of_the_whole_cluster_is_warned_of() -> None:
    (line,) = warned(item())

    assert line == "warning kubernetes.access[0].policy: edits_the_whole_cluster"


def test_a_cluster_that_nobody_administers_is_warned_of() -> None:
    (line,) = warned(item(**HERE), admins=False)

    assert line.startswith("warning kubernetes.admins: nobody_has_access")
    assert warned(item("cluster-admin"), admins=False) == []
