"""Namespaces of the platform, and the network policies of their pods."""

from collections.abc import Sequence

import cdk8s
import cdk8s_plus_27 as kplus
from cdk8s_plus_27 import k8s as kube
from constructs import Construct

from ultrascale.plan.model import IngressPlan, NamespacePlan
from ultrascale.plan.names import (
    ETCD_SERVER_SERVICE,
    FRONT_LABEL,
    JOB_LABEL,
    SYSTEM_NAMESPACE,
    TRAINING_LABEL,
)
from ultrascale_k8s._pods import NAME_LABEL, selector

_NAMESPACE_LABEL = "kubernetes.io/metadata.name"


class NamespacesChart(cdk8s.Chart):
    """Defines each namespace with its Pod Security Standard and its network policies.

    Ingress is closed in every namespace, so a chart that serves anything brings the policy that
    opens its own port. EFA traffic bypasses network policies: security groups alone guard it.
    Source: https://docs.aws.amazon.com/eks/latest/userguide/cni-network-policy.html
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        plans: Sequence[NamespacePlan],
        kubernetes_version: str,
        policies_of_jobs: bool = True,
    ) -> None:
        """Define ``plans``.

        Args:
            scope: The cdk8s app.
            id: Id of the chart, and name of its file.
            plans: The namespaces. `kube-system` is EKS's own and must not be among them.
            kubernetes_version: The cluster's minor, such as ``1.35``. The Pod Security Standard
                is read as of that minor, so that an upgrade changes it when the file does.
            policies_of_jobs: Whether policies select the pods of jobs. Where not, they stay under
                their names and select the rendezvous server alone: `kubectl apply` would leave
                those of before in a cluster that has grown.
        """
        super().__init__(scope, id, disable_resource_name_hashes=True)
        for plan in plans:
            if plan.name == SYSTEM_NAMESPACE:
                # Deleting this chart would take the cluster's own components with it.
                raise ValueError(f"{SYSTEM_NAMESPACE} belongs to EKS, a chart must not own it")
            _namespace(self, plan, kubernetes_version)
            selects_all = policies_of_jobs or not plan.training
            _deny_ingress(self, plan, selects_all=selects_all)
            if plan.training:
                _allow_same_namespace(self, plan, selects_all=selects_all)
            # Without a policy that selects them, the pods of jobs are open anyway.
            for ingress in plan.reached_from if selects_all else ():
                _allow_from(self, plan, ingress)


def namespace_labels(plan: NamespacePlan, kubernetes_version: str) -> dict[str, str]:
    """Return the labels of the namespace.

    Source: https://kubernetes.io/docs/concepts/security/pod-security-admission/
    """
    levels = {
        f"pod-security.kubernetes.io/{mode}{suffix}": value
        for mode in ("enforce", "audit", "warn")
        for suffix, value in (("", plan.pod_security), ("-version", f"v{kubernetes_version}"))
    }
    return levels | ({TRAINING_LABEL: "true"} if plan.training else {})


def _namespace(chart: cdk8s.Chart, plan: NamespacePlan, kubernetes_version: str) -> None:
    kplus.Namespace(
        chart,
        plan.name,
        metadata=cdk8s.ApiObjectMetadata(
            name=plan.name, labels=namespace_labels(plan, kubernetes_version)
        ),
    )


def _deny_ingress(chart: cdk8s.Chart, plan: NamespacePlan, *, selects_all: bool) -> None:
    kube.KubeNetworkPolicy(
        chart,
        f"{plan.name}-deny-ingress",
        metadata=kube.ObjectMeta(name="default-deny-ingress", namespace=plan.name),
        spec=kube.NetworkPolicySpec(
            pod_selector=kube.LabelSelector() if selects_all else selector(ETCD_SERVER_SERVICE),
            policy_types=["Ingress"],
        ),
    )


def _allow_same_namespace(chart: cdk8s.Chart, plan: NamespacePlan, *, selects_all: bool) -> None:
    """Let the pods of one namespace reach each other on every port.

    NCCL and Neuron bootstrap on ephemeral ports. Policies add up, so the rendezvous server and
    services behind the front are left out: policies of their own say who reaches them.
    """
    behind_no_front = kube.LabelSelectorRequirement(key=FRONT_LABEL, operator="DoesNotExist")
    everyone_but_etcd = kube.LabelSelectorRequirement(
        key=NAME_LABEL, operator="NotIn", values=[ETCD_SERVER_SERVICE]
    )
    kube.KubeNetworkPolicy(
        chart,
        f"{plan.name}-allow-same-namespace",
        metadata=kube.ObjectMeta(name="allow-same-namespace", namespace=plan.name),
        spec=kube.NetworkPolicySpec(
            pod_selector=kube.LabelSelector(
                match_expressions=[
                    everyone_but_etcd,
                    *([behind_no_front] if plan.has_front else []),
                ]
            )
            if selects_all
            else selector(ETCD_SERVER_SERVICE),
            policy_types=["Ingress"],
            ingress=[
                kube.NetworkPolicyIngressRule(
                    from_=[kube.NetworkPolicyPeer(pod_selector=kube.LabelSelector())]
                )
            ]
            if selects_all
            else [],
        ),
    )


def _allow_from(chart: cdk8s.Chart, plan: NamespacePlan, ingress: IngressPlan) -> None:
    kube.KubeNetworkPolicy(
        chart,
        f"{plan.name}-allow-{ingress.namespace}",
        metadata=kube.ObjectMeta(name=f"allow-{ingress.namespace}", namespace=plan.name),
        spec=kube.NetworkPolicySpec(
            pod_selector=kube.LabelSelector(
                match_expressions=[kube.LabelSelectorRequirement(key=JOB_LABEL, operator="Exists")]
            ),
            policy_types=["Ingress"],
            ingress=[
                kube.NetworkPolicyIngressRule(
                    from_=[
                        kube.NetworkPolicyPeer(
                            namespace_selector=kube.LabelSelector(
                                match_labels={_NAMESPACE_LABEL: ingress.namespace}
                            )
                        )
                    ],
                    ports=[
                        kube.NetworkPolicyPort(
                            port=kube.IntOrString.from_number(ingress.port), protocol="TCP"
                        )
                    ],
                )
            ],
        ),
    )
