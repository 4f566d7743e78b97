"""Namespaces of the platform, network policies, and their enforcement by EKS Auto Mode."""

from collections.abc import Iterator, Mapping, Sequence

from ultrascale.documents import Json, JsonObject
from ultrascale.plan.model import NamespacePlan
from ultrascale.plan.names import (
    ETCD_SERVER_SERVICE,
    JOB_LABEL,
    ROUTED_LABEL,
    SYSTEM_NAMESPACE,
    TRAINING_LABEL,
)
from ultrascale_k8s._pods import selector
from ultrascale_k8s.objects import NAME_LABEL, manifest

# --- Network policies, and their enforcement by EKS Auto Mode -------------------------------------
# The kubelet's probes need no rule: a node always reaches its own pods.
#
# Source: https://kubernetes.io/docs/concepts/services-networking/network-policies/


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


# --- Namespaces of the platform, and the network policies of their pods ---------------------------


_NAMESPACE_LABEL = "kubernetes.io/metadata.name"
_DENY, _ALLOW = "default-deny-ingress", "allow-same-namespace"
_EGRESS = "egress-without-node-metadata"
# Pods with EKS Pod Identity ask another address of the link, 169.254.170.23.
# Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html
_METADATA = "169.254.169.254/32"


def policy_names(plan: NamespacePlan) -> Iterator[str]:
    """Yield the names of a namespace's network policies."""
    yield from (_EGRESS,) if plan.hides_metadata else ()
    yield from (_DENY, _ALLOW, *(_allows(each.namespace) for each in plan.reached_from))


def _allows(namespace: str) -> str:
    return f"allow-{namespace}"


def namespace_objects(
    plans: Sequence[NamespacePlan], kubernetes_version: str, *, policies_of_jobs: bool = True
) -> Iterator[JsonObject]:
    """Yield each namespace with its Pod Security Standard and its network policies.

    Ingress is closed in every namespace, so the chart of a server has a policy that opens the
    server's port. EFA traffic bypasses network policies: only security groups guard it.
    Source: https://docs.aws.amazon.com/eks/latest/userguide/cni-network-policy.html

    Args:
        plans: The namespaces. `kube-system` is EKS's own and must not be among them.
        kubernetes_version: The cluster's minor, such as ``1.35``. The Pod Security Standard is read
            as of that minor, so that an upgrade changes it when the file does.
        policies_of_jobs: Whether policies select the pods of jobs. If not, policies of the same
            names
            select only the rendezvous server: `kubectl apply` would leave the earlier policies
            in a cluster that has grown.
    """
    for plan in plans:
        if plan.name == SYSTEM_NAMESPACE:
            # Retained: deleting this chart would delete the cluster's own components.
            raise ValueError(f"{SYSTEM_NAMESPACE} belongs to EKS, a chart must not own it")
        yield manifest(
            "Namespace", plan.name, own_labels=namespace_labels(plan, kubernetes_version), spec={}
        )
        yield from _policies(plan, selects_all=policies_of_jobs or not plan.training)


def namespace_labels(plan: NamespacePlan, kubernetes_version: str) -> dict[str, str]:
    """Return the labels of a namespace.

    Source: https://kubernetes.io/docs/concepts/security/pod-security-admission/
    """
    levels = {
        f"pod-security.kubernetes.io/{mode}{suffix}": value
        for mode in ("enforce", "audit", "warn")
        for suffix, value in (("", plan.pod_security), ("-version", f"v{kubernetes_version}"))
    }
    return levels | ({TRAINING_LABEL: "true"} if plan.training else {})


def _policies(plan: NamespacePlan, *, selects_all: bool) -> Iterator[JsonObject]:
    everyone: JsonObject = {} if selects_all else selector(ETCD_SERVER_SERVICE)
    yield _policy(plan, _DENY, everyone, None)
    if plan.training:
        # NCCL and Neuron bootstrap on ephemeral ports. Policies add up, so the rendezvous server
        # and pods with policies of their own, which name the peers that reach them, are left out.
        expressions: list[Json] = [
            {"key": NAME_LABEL, "operator": "NotIn", "values": [ETCD_SERVER_SERVICE]}
        ]
        closed = [*([ROUTED_LABEL] if plan.is_routed else []), *plan.closed]
        expressions += ({"key": label, "operator": "DoesNotExist"} for label in closed)
        pods: JsonObject = {"matchExpressions": expressions} if selects_all else everyone
        rules = [ingress_rule([], [{"podSelector": {}}])] if selects_all else []
        yield _policy(plan, _ALLOW, pods, rules)
    if plan.hides_metadata:
        # No deployment deletes the policy: in a cluster that has grown it allows all.
        closed: Json = {"ipBlock": {"cidr": "0.0.0.0/0", "except": [_METADATA]}}
        rule: Json = {"to": [closed]} if selects_all else {}
        yield manifest(
            "NetworkPolicy",
            _EGRESS,
            namespace=plan.name,
            own_labels={},
            spec={"podSelector": everyone, "policyTypes": ["Egress"], "egress": [rule]},
        )
    # Without a policy that selects them, the pods of jobs accept all connections.
    for ingress in plan.reached_from if selects_all else ():
        source: Json = {"namespaceSelector": {"matchLabels": {_NAMESPACE_LABEL: ingress.namespace}}}
        jobs: JsonObject = {"matchExpressions": [{"key": JOB_LABEL, "operator": "Exists"}]}
        yield _policy(
            plan, _allows(ingress.namespace), jobs, [ingress_rule([ingress.port], [source])]
        )


def _policy(
    plan: NamespacePlan, name: str, pods: JsonObject, rules: Sequence[JsonObject] | None
) -> JsonObject:
    return ingress_policy(name, plan.name, rules, pods=pods, own_labels={})
