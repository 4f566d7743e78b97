"""Rights of Volcano's programs: upstream's rules without what nothing of ours uses."""

from collections.abc import Sequence

from cdk8s_plus_27 import k8s as kube
from constructs import Construct

from ultrascale.plan.names import VOLCANO_NAMESPACE
from ultrascale_k8s._pods import metadata
from ultrascale_k8s._rbac import rule, rules_from_upstream

_RBAC_GROUP = "rbac.authorization.k8s.io"
_UPDATE = ("update", "patch")

_Rules = list[kube.PolicyRule]


def define_service_account(
    scope: Construct,
    *,
    name: str,
    cluster: Sequence[kube.PolicyRule] = (),
    namespaced: Sequence[kube.PolicyRule] = (),
) -> None:
    """Define the service account ``name`` and give it rules.

    Args:
        scope: The chart.
        name: Name of the account, and of its roles and bindings.
        cluster: Rules that hold in every namespace.
        namespaced: Rules that hold in Volcano's own namespace only.
    """
    own = metadata(name, namespace=VOLCANO_NAMESPACE)
    subject = kube.Subject(kind="ServiceAccount", name=name, namespace=VOLCANO_NAMESPACE)
    kube.KubeServiceAccount(scope, f"{name}-account", metadata=own)
    if cluster:
        everywhere = metadata(name)
        kube.KubeClusterRole(
            scope, f"{name}-cluster-role", metadata=everywhere, rules=list(cluster)
        )
        kube.KubeClusterRoleBinding(
            scope,
            f"{name}-cluster-binding",
            metadata=everywhere,
            role_ref=kube.RoleRef(api_group=_RBAC_GROUP, kind="ClusterRole", name=name),
            subjects=[subject],
        )
    if namespaced:
        kube.KubeRole(scope, f"{name}-role", metadata=own, rules=list(namespaced))
        kube.KubeRoleBinding(
            scope,
            f"{name}-binding",
            metadata=own,
            role_ref=kube.RoleRef(api_group=_RBAC_GROUP, kind="Role", name=name),
            subjects=[subject],
        )


def leader_election_rules() -> _Rules:
    """Allow a program to hold its Lease, in Volcano's own namespace."""
    return [rule("leases", group="coordination.k8s.io", verbs=("get", "create", "update", "watch"))]


def scheduler_rules() -> _Rules:
    """Return the scheduler's rules in every namespace."""
    return rules_from_upstream("volcano-roles", "volcano-scheduler")


def controllers_rules() -> _Rules:
    """Return the controllers' rules in every namespace."""
    return [
        *rules_from_upstream("volcano-roles", "volcano-controllers"),
        rule("jobflows/finalizers", group="flow.volcano.sh", verbs=_UPDATE),
    ]


def admission_rules(webhooks: Sequence[str]) -> _Rules:
    """Return the rules of the webhooks' server, which writes its certificate into ``webhooks``."""
    kinds = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
    return [
        *rules_from_upstream("volcano-roles", "volcano-admission"),
        rule(*kinds, group="admissionregistration.k8s.io", verbs=_UPDATE, names=webhooks),
        rule("events", verbs=("create", "patch")),
    ]


def certificate_rules(*, secret: str, deployment: str) -> _Rules:
    """Allow to make ``secret``, and to restart ``deployment`` after it was renewed.

    A name cannot restrict `create`: the object has none yet when it is asked for.
    """
    return [
        rule("secrets", verbs=("create",)),
        rule("secrets", verbs=("get", "patch"), names=[secret]),
        rule("deployments", group="apps", verbs=("get", "patch"), names=[deployment]),
    ]
