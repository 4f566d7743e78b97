"""Network policies, and their enforcement by EKS Auto Mode.

The kubelet's probes need no rule: a node always reaches its own pods.

Source: https://kubernetes.io/docs/concepts/services-networking/network-policies/
"""

from collections.abc import Mapping, Sequence

from ultrascale.documents import Json, JsonObject
from ultrascale.plan.names import SYSTEM_NAMESPACE
from ultrascale_k8s._pods import selector
from ultrascale_k8s.objects import manifest


def controller_objects(*, enforced: bool) -> list[JsonObject]:
    """Return the ConfigMap that enables network policies in clusters without the VPC CNI add-on.

    Without it, the API server accepts network policies, and nothing enforces them.

    Source: https://docs.aws.amazon.com/eks/latest/userguide/auto-net-pol.html
    """
    data = {"enable-network-policy-controller": "true" if enforced else "false"}
    # EKS reads the ConfigMap of this name.
    return [manifest("ConfigMap", "amazon-vpc-cni", namespace=SYSTEM_NAMESPACE, data=data)]


def ingress_rule(ports: Sequence[int], sources: Sequence[Json] = ()) -> JsonObject:
    """Return the rule that lets ``sources``, by default everything, reach TCP ``ports``.

    Never a selector of all pods: EKS would list each pod of the cluster for every node.
    """
    allowed: list[Json] = [{"port": port, "protocol": "TCP"} for port in ports]
    return {"ports": allowed or None, "from": [*sources] or None}


def ingress_policy(
    name: str,
    namespace: str,
    rules: Sequence[JsonObject] | None,
    *,
    pods: JsonObject,
    component: str | None = None,
    own_labels: Mapping[str, str] | None = None,
) -> JsonObject:
    """Return the NetworkPolicy ``name``, which refuses all connections without a rule.

    Args:
        name: Its name.
        namespace: Its namespace.
        rules: Connections that it allows; None leaves the field out.
        pods: Selector of the pods that it is for.
        component: Component in its labels; by default its name.
        own_labels: Its labels, instead of the labels of a component.
    """
    return manifest(
        "NetworkPolicy",
        name,
        namespace=namespace,
        component=component,
        own_labels=own_labels,
        spec={"podSelector": pods, "policyTypes": ["Ingress"], "ingress": rules},
    )


def program_policy(
    program: str,
    namespace: str,
    ports: Sequence[int],
    *,
    pods: JsonObject | None = None,
    sources: Sequence[Json] = (),
) -> JsonObject:
    """Return the policy that opens ``ports`` of a program, and no others of its namespace.

    Args:
        program: Name of the program.
        namespace: Its namespace.
        ports: Ports that it serves.
        pods: Selector of its pods; by default by the program's name.
        sources: Peers that reach the ports. By default everything does: the API server calls
            webhooks from the control plane's network interfaces, which no selector names.
    """
    return ingress_policy(
        f"{program}-ingress",
        namespace,
        [ingress_rule(ports, sources)],
        pods=pods or selector(program),
        component=program,
    )


def address_peers(ranges: Sequence[str]) -> list[Json]:
    """Return address ranges as peers: EKS needs no list of pods for them."""
    return [{"ipBlock": {"cidr": each}} for each in ranges]
