"""Rights of Volcano's programs.

Upstream's rules at v1.15.1 without what nothing of ours uses: writing CustomResourceDefinitions,
certificate requests and PriorityClasses, the scheduler's writing of ConfigMaps, Leases outside
Volcano's own namespace, and the retired group `scheduling.incubator.k8s.io`.

Source: https://github.com/volcano-sh/volcano/tree/v1.15.1/installer/helm/chart/volcano/templates
"""

from collections.abc import Sequence

from cdk8s_plus_27 import k8s as kube
from constructs import Construct

from ultrascale.plan.names import VOLCANO_NAMESPACE
from ultrascale_k8s._pods import metadata
from ultrascale_k8s._rbac import rule

_RBAC_GROUP = "rbac.authorization.k8s.io"
_READ = ("get", "list", "watch")
_EDIT = ("get", "list", "watch", "create", "update", "patch", "delete")
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
    """Return what the scheduler needs in every namespace."""
    return [
        *_scheduler_core_rules(),
        rule("jobs", group="batch.volcano.sh", verbs=(*_READ, "update", "delete")),
        rule("jobs/status", group="batch.volcano.sh", verbs=_UPDATE),
        # It makes the queues `default` and `root` itself.
        rule("queues", group="scheduling.volcano.sh", verbs=(*_READ, "create", "update", "delete")),
        rule("queues/status", group="scheduling.volcano.sh", verbs=("update",)),
        rule("podgroups", group="scheduling.volcano.sh", verbs=("list", "watch", "update")),
        rule("numatopologies", group="nodeinfo.volcano.sh", verbs=(*_READ, "delete")),
        rule("hypernodes", "hypernodes/status", group="topology.volcano.sh", verbs=_READ),
        rule("nodeshards", group="shard.volcano.sh", verbs=_READ),
        rule("nodeshards/status", group="shard.volcano.sh", verbs=("update",)),
    ]


def _scheduler_core_rules() -> _Rules:
    storage = ("storageclasses", "csinodes", "csidrivers", "csistoragecapacities")
    devices = ("deviceclasses", "resourceslices")
    return [
        rule("events", verbs=("create", "list", "watch", "update", "patch")),
        rule("pods", verbs=(*_READ, "patch", "delete")),
        rule("pods/status", verbs=("update",)),
        rule("pods/binding", verbs=("create",)),
        rule("persistentvolumeclaims", "persistentvolumes", verbs=("list", "watch", "update")),
        rule("namespaces", "services", "replicationcontrollers", "configmaps", verbs=_READ),
        rule("resourcequotas", verbs=("list", "watch")),
        rule("nodes", verbs=(*_READ, "update", "patch")),
        rule(*storage, "volumeattachments", group="storage.k8s.io", verbs=("list", "watch")),
        rule("poddisruptionbudgets", group="policy", verbs=("list", "watch")),
        rule("priorityclasses", group="scheduling.k8s.io", verbs=_READ),
        rule("daemonsets", "replicasets", "statefulsets", group="apps", verbs=_READ),
        rule("resourceclaims", group="resource.k8s.io", verbs=(*_READ, "create", *_UPDATE)),
        rule("resourceclaims/status", group="resource.k8s.io", verbs=("update",)),
        rule("resourceclaims/binding", group="resource.k8s.io", verbs=_UPDATE),
        rule(*devices, group="resource.k8s.io", verbs=(*_READ, "create")),
        rule("devicetaintrules", group="resource.k8s.io", verbs=_READ),
    ]


def controllers_rules() -> _Rules:
    """Return what the controllers need in every namespace."""
    flows = ("jobflows/status", "jobflows/finalizers", "jobtemplates/status")
    return [
        *_controllers_core_rules(),
        rule(
            "jobs",
            "cronjobs",
            group="batch.volcano.sh",
            verbs=(*_READ, "create", "update", "delete"),
        ),
        rule("jobs/status", "jobs/finalizers", group="batch.volcano.sh", verbs=_UPDATE),
        rule("cronjobs/status", "cronjobs/finalizers", group="batch.volcano.sh", verbs=_UPDATE),
        rule("commands", group="bus.volcano.sh", verbs=(*_READ, "delete")),
        rule("podgroups", "queues", "queues/status", group="scheduling.volcano.sh", verbs=_EDIT),
        rule(
            "jobflows",
            "jobtemplates",
            group="flow.volcano.sh",
            verbs=(*_READ, "create", "update", "delete"),
        ),
        rule(*flows, "jobtemplates/finalizers", group="flow.volcano.sh", verbs=_UPDATE),
        rule("hypernodes", "hypernodes/status", group="topology.volcano.sh", verbs=_EDIT),
        rule("nodeshards", "nodeshards/status", group="shard.volcano.sh", verbs=_EDIT),
        rule("colocationconfigurations", group="config.volcano.sh", verbs=_READ),
    ]


def _controllers_core_rules() -> _Rules:
    return [
        rule("events", verbs=("create", "list", "watch", "update", "patch")),
        rule("pods", verbs=_EDIT),
        rule("pods/finalizers", verbs=_UPDATE),
        rule("persistentvolumeclaims", verbs=(*_READ, "create")),
        # The job plugins `svc` and `ssh` make these in the namespaces of the jobs.
        rule("services", verbs=(*_READ, "create", "delete")),
        rule("configmaps", verbs=(*_READ, "create", "update", "delete")),
        rule("secrets", verbs=("get", "create", "update", "delete")),
        rule("networkpolicies", group="networking.k8s.io", verbs=("get", "create", "delete")),
        rule("nodes", verbs=("list", "watch")),
        rule("priorityclasses", group="scheduling.k8s.io", verbs=_READ),
        rule("daemonsets", group="apps", verbs=("get",)),
        rule("replicasets", "statefulsets", group="apps", verbs=_READ),
        rule("jobs", group="batch", verbs=("get",)),
    ]


def admission_rules(webhooks: Sequence[str]) -> _Rules:
    """Return what the webhooks' server needs: to write its certificate into ``webhooks``."""
    kinds = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
    group = "admissionregistration.k8s.io"
    return [
        rule(*kinds, group=group, verbs=_READ),
        rule(*kinds, group=group, verbs=_UPDATE, names=webhooks),
        rule("queues", "podgroups", group="scheduling.volcano.sh", verbs=_READ),
        rule("configmaps", verbs=_READ),
        rule("services", verbs=("get",)),
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
