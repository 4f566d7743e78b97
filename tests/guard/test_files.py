"""The guard on whole cluster files: a sample of what `python -m tests.support.guard_sweep` does."""

from typing import Any

import pytest

from tests.support.assembly import Assembly
from tests.support.cluster_keys import DOCUMENTS, Keys, changed
from tests.support.guard_sweep import made, unnoticed, whole
from ultrascale.guard import compare

FILE = DOCUMENTS["auto-mode"]


def test_a_file_that_stays_as_it_is_changes_nothing(auto: Assembly) -> None:
    changes = compare(whole(auto), whole(auto), region=auto.plan.region)

    assert (changes.resources, changes.pools, changes.unread) == ((), (), ())


def test_lines_of_subnets_that_change_places_replace_no_nodes(estate: Assembly) -> None:
    file = DOCUMENTS["existing-estate"]
    subnets = file["network"]["subnets"]
    later = made(changed(file, ("network", "subnets"), subnets[::-1]))

    assert compare(whole(estate), whole(later), region=estate.plan.region).resources == ()


@pytest.mark.parametrize(
    ("path", "value", "protected"),
    [(("network", "vpc_cidr"), ("10.8.0.0/16",), "VPC"), (("pools", 1), (), "NodePool")],
)
def test_no_protected_replacement_passes_unnoticed(
    auto: Assembly, path: Keys, value: tuple[Any, ...], protected: str
) -> None:
    later = made(changed(FILE, path, *value))

    assert list(unnoticed(auto, later)) == []
    changes = compare(whole(auto), whole(later), region=auto.plan.region)
    kinds = {each.type for each in changes.resources if each.protected}
    assert any(kind.endswith(f"::{protected}") for kind in kinds)


RIGHTS = {"ana": ["chat"]}
WITH_CLIENTS = changed(DOCUMENTS["serving"], ("serving", "front", "models_by_client"), RIGHTS)
FILES = {**DOCUMENTS, "serving-of-clients": WITH_CLIENTS}
# By change: the file, the key, its other value, the verdict, and what is named.
CASES: dict[str, tuple[str, Keys, tuple[Any, ...], str, str]] = {
    "an auditor becomes an administrator": (
        "existing-estate",
        ("kubernetes", "access", 1, "policy"),
        ("cluster-admin",),
        "exposes",
        "AmazonEKSViewPolicy in the whole cluster",
    ),
    "a front without keys": ("serving", ("serving", "front"), ({},), "exposes", "spec/apiKeyAuth"),
    "a front that leaves the file": (
        "serving",
        ("serving", "front"),
        (),
        "outage",
        "NetworkPolicy envoy-gateway-system/proxies-ingress",
    ),
    "an application whose backend leaves the file": (
        "hybrid-hyperpod",
        ("backend",),
        (),
        "outage",
        "ServiceAccount backend/backend",
    ),
    "a lower guarantee of a queue": (
        "llm-kueue",
        ("scheduling", "queues", 1, "guarantee", "reserved"),
        (2,),
        "outage",
        "of reserved: ",
    ),
    "an etcd of three members, whose volumes are empty": (
        "trainium-bert",
        ("scheduling", "rendezvous", "replicas"),
        (3,),
        "loses data",
        "/members-3",
    ),
    "a front whose clients may use more models": (
        "serving-of-clients",
        ("serving", "front", "models_by_client", "ana"),
        (["chat", "summarize"],),
        "exposes",
        "ana: summarize",
    ),
    "a front whose clients may use all models": (
        "serving-of-clients",
        ("serving", "front", "models_by_client"),
        (),
        "exposes",
        "all models",
    ),
    "another key of checkpoints": (
        "existing-estate",
        ("keys", "storage"),
        ("arn:aws:kms:us-east-1:444455556666:key/11111111-2222-4333-8444-555555555599",),
        "cuts running pods off",
        "kms:Decrypt",
    ),
}


@pytest.fixture(scope="module", name="serving-of-clients")
def of_clients() -> Assembly:
    return made(WITH_CLIENTS)


# Fixtures of the files that have another name.
FIXTURES = {
    "existing-estate": "estate",
    "hybrid-hyperpod": "hybrid",
    "llm-kueue": "llm",
    "trainium-bert": "trainium",
}


@pytest.mark.parametrize(
    ("file", "path", "value", "verdict", "named"), CASES.values(), ids=CASES.keys()
)
def test_a_change_of_one_key_is_refused_and_named(
    request: pytest.FixtureRequest,
    file: str,
    path: Keys,
    value: tuple[Any, ...],
    verdict: str,
    named: str,
) -> None:
    before: Assembly = request.getfixturevalue(FIXTURES.get(file, file))
    after = made(changed(FILES[file], path, *value))

    changes = compare(whole(before), whole(after), region=before.plan.region)

    assert changes.verdicts == {verdict}
    told = [part for change in changes.resources for part in (change.lost, *change.opens)]
    assert any(named in part for part in told)
