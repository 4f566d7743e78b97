"""The change guard tells which stacks that are left behind lose what they need."""

from typing import Any

from tests.support.changes import REGION, Body, body, manifest, template
from ultrascale.guard import Changes, compare

OUTAGE = {"outage"}
CHART = "Custom::AWSCDK-EKS-HelmChart"
ASSOCIATION = "AWS::EKS::PodIdentityAssociation"


def thing(kind: str, name: str, namespace: str = "", **more: Any) -> Body:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"kind": kind, "metadata": metadata, **more}


def policy(name: str, namespace: str, *rules: Body) -> Body:
    spec: Body = {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [*rules]}
    return thing("NetworkPolicy", name, namespace, spec=spec)


def binding(kind: str, name: str, namespace: str = "") -> Body:
    subject = {"kind": kind, "name": name} | ({"namespace": namespace} if namespace else {})
    return thing("ClusterRoleBinding", "b", subjects=[subject], roleRef={"name": "r"})


def without(left: dict[str, Body], gone: Body, *, and_it: bool = False) -> Changes:
    """Return what happens as an object goes that another stack applies, with a stack or before it.

    Args:
        left: Resources of the stack that leaves the file.
        gone: The object.
        and_it: Whether the stack is destroyed already.
    """
    namespace = manifest(thing("Namespace", "n"), DeletionPolicy="Retain")
    deny = manifest(policy("deny", "n"), DeletionPolicy="Retain")
    kept = {"N": namespace, "D": deny}
    old = {"c-platform": template({**kept, "P": manifest(gone)})}
    if not and_it:
        old["c-front"] = template(left)
    return compare(old, {"c-platform": template(kept)}, region=REGION)


def test_proxies_that_are_left_behind_need_their_opening() -> None:
    chart = {"C": body(CHART, {"Namespace": "n", "Release": "front"})}

    changes = without(chart, policy("ingress", "n", {}))

    (change,) = changes.protected
    assert changes.verdicts == OUTAGE
    assert (change.ids[0], "NetworkPolicy n/ingress" in change.lost) == ("c-front", True)
    assert "cdk destroy --exclusively c-front" in change.instead
    assert changes.permit("c-front").is_safe
    assert "outage" not in without(chart, policy("ingress", "other", {})).verdicts
    assert without(chart, policy("ingress", "n", {}), and_it=True).is_safe


def test_pods_with_an_identity_of_a_stack_that_is_left_behind_need_their_account_and_rights() -> (
    None
):
    identity = {"A": body(ASSOCIATION, {"Namespace": "n", "ServiceAccount": "backend"})}

    for needed in (
        thing("ServiceAccount", "backend", "n"),
        binding("ServiceAccount", "backend", "n"),
        policy("ingress", "n", {}),
    ):
        assert without(identity, needed).verdicts == OUTAGE, needed
    assert without(identity, thing("ServiceAccount", "other", "n")).is_safe
    assert without(identity, binding("ServiceAccount", "backend", "other")).is_safe


def test_functions_of_a_stack_that_is_left_behind_need_their_rights_in_the_cluster() -> None:
    function = {
        "R": body("AWS::IAM::Role"),
        "E": body(
            "AWS::EKS::AccessEntry",
            {"PrincipalArn": {"Fn::GetAtt": ["R", "Arn"]}, "KubernetesGroups": ["metrics"]},
        ),
    }

    assert without(function, binding("Group", "metrics")).verdicts == OUTAGE
    assert "outage" not in without(function, binding("Group", "others")).verdicts
