"""The security posture of every cluster file, and a broken template for each rule."""

from collections.abc import Iterable, Iterator

import pytest

from tests.support import posture_pods
from tests.support.assembly import Assembly
from tests.support.create_only_schemas import unknown_types
from tests.support.posture import (
    RULES,
    Cluster,
    asset_findings,
    needless,
    read,
)
from tests.support.posture_breaks import BREAKS, Break, applied
from tests.support.posture_exceptions import (
    ADMINISTRATORS,
    CONTAINERS,
    LOST,
    MANAGED_POLICIES,
    PRIVILEGED_BUILDS,
    RIGHTS,
)
from tests.support.posture_options import OPTIONS, option
from tests.support.posture_secrets import text_findings
from tests.support.posture_templates import named_in

NAMES = ("trainium", "mixed", "auto", "hybrid", "ultra", "llm", "estate")


@pytest.fixture(scope="module")
def assemblies(request: pytest.FixtureRequest) -> dict[str, Assembly]:
    return {name: request.getfixturevalue(name) for name in NAMES}


@pytest.fixture(scope="module")
def clusters(assemblies: dict[str, Assembly]) -> dict[str, Cluster]:
    return {name: read(assembly) for name, assembly in assemblies.items()}


@pytest.fixture(scope="module")
def options() -> dict[str, Cluster]:
    return {name: option(name) for name in OPTIONS}


def test_the_change_guard_knows_what_replaces_each_type(clusters: dict[str, Cluster]) -> None:
    for cluster in clusters.values():
        assert unknown_types(cluster.templates.values()) == set()


def test_every_reference_leads_to_a_resource_of_its_own_stack(
    clusters: dict[str, Cluster],
) -> None:
    """CloudFormation refuses any other; a parameter would change what is made, and no template."""
    for cluster in clusters.values():
        for stack, template in cluster.templates.items():
            own = template["Resources"]
            assert {*named_in([own, template.get("Outputs", {})])} <= own.keys(), stack


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_open_without_a_reason(
    clusters: dict[str, Cluster], name: str, rule: str
) -> None:
    assert [*RULES[rule](clusters[name])] == []


@pytest.mark.parametrize("name", OPTIONS)
def test_what_no_file_asks_for_is_closed_as_well(options: dict[str, Cluster], name: str) -> None:
    found = [finding for rule in RULES.values() for finding in rule(options[name])]

    assert len(options[name].documents) > 20
    assert found == []


@pytest.mark.parametrize(
    "change", BREAKS, ids=[f"{c.rule}-{c.kind}-{c.path[-1]}-{c.says}" for c in BREAKS]
)
def test_a_hole_in_a_cluster_is_noticed(clusters: dict[str, Cluster], change: Break) -> None:
    changed = applied(clusters[change.cluster], change)

    found = [*RULES[change.rule](changed)]

    assert any(change.says in finding for finding in found), found


def test_every_rule_has_a_hole_that_it_notices() -> None:
    assert {change.rule for change in BREAKS} == {*RULES}


def test_no_file_that_is_uploaded_holds_a_credential(assemblies: dict[str, Assembly]) -> None:
    found = [
        finding
        for assembly in assemblies.values()
        for finding in asset_findings(assembly.folder / "cdk.out")
    ]

    assert found == []


@pytest.mark.parametrize(
    "text",
    [
        "-----BEGIN RSA PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----",
        "postgresql://backend:horse@db.example.com/backend",
        "ghp_" + "a" * 36,
        "hf_" + "b" * 34,
        "xoxb-" + "1" * 12,
        "eyJ" + "a" * 12 + ".eyJ" + "b" * 12 + "." + "c" * 12,
        "sk-" + "d" * 40,
    ],
)
def test_a_credential_is_known_by_its_form(text: str) -> None:
    assert [*text_findings(f"start {text} end")]


def test_an_address_without_a_password_is_no_secret() -> None:
    assert [*text_findings("https://example.com:8443/path and postgresql://${USER}@db")] == []


def used(clusters: Iterable[Cluster]) -> Iterator[tuple[str, str]]:
    for cluster in clusters:
        for container, rules in posture_pods.by_container(cluster.documents).items():
            yield from ((container, rule) for rule in rules)


def test_no_exception_of_a_container_outlives_its_need(
    clusters: dict[str, Cluster], options: dict[str, Cluster]
) -> None:
    excepted = {(name, rule) for name, rules in CONTAINERS.items() for rule in rules}

    assert excepted == {*used([*clusters.values(), *options.values()])}


def test_no_right_is_excepted_that_nobody_has(clusters: dict[str, Cluster]) -> None:
    granted = {
        right
        for cluster in clusters.values()
        for right in posture_pods.right_findings(cluster.documents)
    }

    assert granted == {*RIGHTS}


@pytest.mark.parametrize(
    ("rule", "excepted", "name"),
    [
        (rule, excepted, name)
        for rule, excepted in (
            ("administrators", ADMINISTRATORS),
            ("builds", PRIVILEGED_BUILDS),
            ("managed policies", MANAGED_POLICIES),
            ("retention", LOST),
        )
        for name in excepted
    ],
)
def test_no_exception_of_a_resource_outlives_its_need(
    clusters: dict[str, Cluster],
    monkeypatch: pytest.MonkeyPatch,
    rule: str,
    excepted: dict[str, str],
    name: str,
) -> None:
    monkeypatch.delitem(excepted, name)

    assert [finding for cluster in clusters.values() for finding in RULES[rule](cluster)]


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_acknowledged_where_nothing_breaks_a_rule(
    assemblies: dict[str, Assembly], name: str
) -> None:
    assert needless(assemblies[name].folder / "cdk.out") == set()
