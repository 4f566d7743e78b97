"""The change guard tells which callers of the backend may do less, and which may do more."""

from typing import Any

from tests.support.cases import for_each
from tests.support.changes import between, manifest
from tests.support.pools import as_text, make_document

WEB = "system:serviceaccounts:web"
ISSUER = "https://login.example.com"


def applied(name: str, *, priorities: dict[str, int] | None = None, **changes: Any) -> Any:
    jobs = {"tune": {"node_selector": {"node-type": "train"}}, "batch": {"kind": "batch"}}
    identity = {
        "issuer": ISSUER,
        "admins": ["platform"],
        "rights": {WEB: {"priority": "high"}, "guests": {"templates": ["tune"]}},
    }
    identity |= changes.pop("identity", {})
    backend = {"submits_to": ["tune", "batch"], "allow_from": ["web", "ui"], "identity": identity}
    document = make_document(jobs=jobs, backend=backend | changes)
    return manifest(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "backend"},
            "data": {"cluster.yaml": as_text(document)},
        }
    )


def lost(**changes: Any) -> list[str]:
    found = between({"A": applied("a")}, {"A": applied("b", **changes)})
    return [
        change.lost.partition("may do: ")[2]
        for change in found.resources
        if change.verdict == "people lose access"
    ]


RULES = {
    "image": "registry.example.com/backend:1",
    "database": {"version": "17"},
    "rules": {
        "job_keys": ["image", "command", "args", "nodes"],
        "rules": [{"name": "all", "types": ["a"], "template": "tune"}],
    },
}
LESS: dict[str, tuple[dict[str, Any], str]] = {
    "another issuer": (
        {"identity": {"issuer": "https://other.example.com"}},
        f"users of {ISSUER} (another issuer)",
    ),
    "another audience": ({"identity": {"audience": "x"}}, f"users of {ISSUER} (another audience)"),
    "an admin goes": ({"identity": {"admins": ["others"]}}, "admin platform"),
    "a group goes": ({"identity": {"rights": {WEB: {"priority": "high"}}}}, "guests"),
    "a lower class": (
        {"identity": {"rights": {WEB: {"priority": "low"}, "guests": {}}}},
        f"{WEB} in part",
    ),
    "fewer kinds": (
        {"identity": {"rights": {WEB: {"priority": "high", "kinds": ["batch"]}, "guests": {}}}},
        f"{WEB} in part",
    ),
    "fewer keys of jobs": (RULES, "jobs that state env, jobs that state script"),
    "a namespace is kept out": ({"allow_from": ["web"]}, "pods of ui"),
}
MORE: dict[str, dict[str, Any]] = {
    "nothing": {},
    "a group more": {
        "identity": {"rights": {WEB: {"priority": "critical"}, "guests": {}, "x": {}}}
    },
    "an admin": {"identity": {"admins": ["platform", WEB, "guests"], "rights": {}}},
    "rules of another application": RULES | {"rules": {"routes": []}},
    "a namespace more": {"allow_from": ["web", "ui", "ops"]},
}


@for_each(LESS)
def test_callers_that_may_do_less_are_told(changes: dict[str, Any], told: str) -> None:
    assert lost(**changes) == [told]


@for_each({name: changes for name, (changes, told) in LESS.items() if "pods of" not in told})
def test_callers_that_may_do_more_are_told(changes: dict[str, Any]) -> None:
    before, after = ({"A": applied("a", **each)} for each in (changes, {}))

    assert "exposes" in between(before, after).verdicts


@for_each(MORE)
def test_callers_that_may_do_more_are_no_loss(changes: dict[str, Any]) -> None:
    assert lost(**changes) == []
