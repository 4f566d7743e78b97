"""Nobody who may edit in a namespace of jobs takes requests for the models of others.

`tests/data/front-route-attacks.yaml` has the routes that would.
"""

from collections.abc import Sequence
from copy import deepcopy
from functools import cache
from typing import Any

import pytest
import yaml

from tests.support.access_cases import attacks, hostile_route
from tests.support.admission import Policy
from tests.support.applied import applied
from tests.support.cases import for_each
from tests.support.folders import ROOT
from tests.support.jobs import objects, prepared
from tests.support.kubernetes_schemas import MINORS, validate_core
from tests.support.queued_pools import planned as planned_file
from ultrascale.jobs.patches import merged
from ultrascale.parts.front import Plan
from ultrascale_k8s.front import front_route_objects

Document = dict[str, Any]
ATTACKS = attacks()


def with_front(name: str) -> Document:
    """Return a file of `clusters/` with a front."""
    document: Document = yaml.safe_load((ROOT / "clusters" / f"{name}.yaml").read_text())
    serving: Document = document.get("serving", {})
    return document | {"serving": {"front": {"exposure": "cluster"}} | serving}


@cache
def front_of(name: str = "serving") -> Plan:
    front = planned_file(with_front(name)).part(Plan)
    assert front is not None
    return front


@cache
def manifests(name: str = "serving") -> Sequence[Document]:
    return applied(front_route_objects(front_of(name)))


def policy_manifest(kind: str, name: str = "serving") -> Document:
    (found,) = (
        each
        for each in manifests(name)
        if each["kind"] == "ValidatingAdmissionPolicy"
        and each["metadata"]["name"] == f"ultrascale-front-{kind}"
    )
    return found


def policy(kind: str, name: str = "serving") -> Policy:
    return Policy(policy_manifest(kind, name))


def sent(name: str, service: str) -> Document:
    """Return the HTTPRoute that `submit` sends for a service of a file."""
    return deepcopy(_sent(name, service))


@cache
def _sent(name: str, service: str) -> Document:
    (route,) = objects(prepared(with_front(name), service), "HTTPRoute")
    return route


def patched(value: Document, patch: Document) -> Document:
    changed: Any = merged(value, patch)
    return changed


def route_of(attack: Document) -> Document:
    return hostile_route(sent("serving", "summarize"), attack)


@for_each({name: (attack,) for name, attack in ATTACKS.items()})
def test_a_route_that_takes_requests_of_others_is_refused(attack: Document) -> None:
    hostile, namespace = route_of(attack), attack.get("namespace", "serving")

    refusals = policy("routes").refusals(hostile, namespace=namespace)

    assert refusals
    assert attack["refused"] in refusals[0]
    if attack.get("alone"):
        assert len(refusals) == 1
    # Whatever it was before, and without a Gateway at first too.
    for old in (sent("serving", "summarize"), patched(hostile, {"spec": {"parentRefs": None}})):
        assert policy("routes").refusals(hostile, old=old, namespace=namespace) == refusals


def test_without_any_of_its_rules_the_policy_lets_an_attack_pass() -> None:
    whole = policy_manifest("routes")
    routes = [(route_of(attack), attack.get("namespace", "serving")) for attack in ATTACKS.values()]
    for number, rule in enumerate(whole["spec"]["validations"]):
        left = deepcopy(whole)
        del left["spec"]["validations"][number]
        weaker = Policy(left)
        assert any(not weaker.refusals(route, namespace=at) for route, at in routes), rule


@pytest.mark.parametrize("name", ["llm-kueue", "serving"])
def test_the_route_of_each_service_of_an_example_is_taken(name: str) -> None:
    services = front_of(name).services
    assert services
    for each in services:
        route = sent(name, each.name)
        assert policy("routes", name).refusals(route, namespace=each.namespace) == []
        assert policy("routes", name).refusals(route, old=route, namespace=each.namespace) == []


def test_a_route_may_be_narrower_than_its_service() -> None:
    """`patch` of a job sets time-outs, and not every request need reach a service."""
    route = sent("serving", "chat")
    route["metadata"].pop("annotations")
    route["spec"]["rules"][0] |= {"timeouts": {"request": "600s"}}
    route["spec"]["rules"][0]["matches"][0] |= {"method": "POST"}
    assert policy("routes").refusals(route, namespace="serving") == []


def test_people_take_their_routes_away() -> None:
    route = sent("serving", "chat")
    assert policy("routes").refusals(None, old=route, namespace="serving") == []


def test_without_services_in_the_file_there_is_no_route() -> None:
    document = with_front("serving")
    document["jobs"] = {"notebook": document["jobs"]["notebook"]}
    front = planned_file(document).part(Plan)
    assert front is not None
    assert front.namespaces == ("envoy-gateway-system",)
    routes, *_ = applied(front_route_objects(front))
    assert Policy(routes).refusals(sent("serving", "chat"), namespace="serving")


# Kinds that attach to a Gateway or a route, take part in one, or are one.
OTHERS = {
    "gateway.networking.k8s.io": "backendtlspolicies gateways grpcroutes listenersets "
    "referencegrants tcproutes tlsroutes udproutes",
    "gateway.networking.x-k8s.io": "xbackendtrafficpolicies xlistenersets",
    "gateway.envoyproxy.io": "backends backendtrafficpolicies clienttrafficpolicies "
    "envoyextensionpolicies envoypatchpolicies envoyproxies httproutefilters securitypolicies",
}


@for_each(
    {
        f"{resource}.{group}": (group, resource)
        for group, resources in OTHERS.items()
        for resource in resources.split()
    }
)
def test_no_other_kind_of_the_gateway_is_made_beside_jobs(group: str, resource: str) -> None:
    spec = policy_manifest("others")["spec"]
    rules = spec["matchConstraints"]["resourceRules"]
    assert [group] in [each["apiGroups"] for each in rules]
    assert {(*each["apiVersions"], *each["resources"]) for each in rules} == {("*", "*")}
    mine: Document = {"metadata": {"name": "mine"}, "spec": {}}
    assert policy("others").refusals(mine, resource=resource)
    assert policy("others").refusals(mine, old=mine, resource=resource)


def test_a_class_of_gateways_is_made_and_gets_its_finalizer() -> None:
    """It has no namespace: without it the front has no address, and other teams no Gateways."""
    ours: Document = {"metadata": {"name": "ultrascale-front"}, "spec": {}}
    others = policy("others")
    assert others.refusals(ours, namespace=None, resource="gatewayclasses") == []
    assert others.refusals(ours, old=ours, namespace=None, resource="gatewayclasses") == []


def test_routes_are_left_to_their_own_policy() -> None:
    assert policy("others").refusals(sent("serving", "chat"), resource="httproutes") == []


def test_no_service_takes_the_addresses_of_others() -> None:
    """Nodes send what goes to an external IP to its Service: CVE-2020-8554."""
    service: Document = {"metadata": {"name": "mine"}, "spec": {"ports": [{"port": 8000}]}}
    taken = patched(service, {"spec": {"externalIPs": ["100.64.3.7"]}})
    assert policy("addresses").refusals(service) == []
    assert policy("addresses").refusals(taken)
    assert policy("addresses").refusals(taken, old=service)


def test_the_policies_hold_in_all_namespaces_of_jobs() -> None:
    bindings = [each for each in manifests() if each["kind"].endswith("Binding")]
    assert len(bindings) == 3
    for each in bindings:
        (term,) = each["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"]
        assert (term["key"], term["operator"]) == ("kubernetes.io/metadata.name", "In")
        assert {*term["values"]} == {"development", "serving", "training"}
        assert each["spec"]["validationActions"] == ["Deny"]


@pytest.mark.parametrize("minor", MINORS)
def test_the_api_server_takes_the_policies(minor: str) -> None:
    assert [found for each in manifests() for found in validate_core(each, minor)] == []
