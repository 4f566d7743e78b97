"""Manifests and Helm charts that CloudFormation applies to a cluster, and values of charts."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from aws_cdk import CfnElement, CfnResource, Duration, RemovalPolicy, Stack
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_lambda as lambda_
from aws_cdk import lambda_layer_kubectl_v35 as kubectl
from aws_cdk.aws_logs import CfnLogGroup
from constructs import Construct, IConstruct

from ultrascale.plan import names
from ultrascale.plan.model import ControllerPlan
from ultrascale_constructs.acknowledgment import acknowledge, acknowledge_managed_policies
from ultrascale_constructs.cdk_types import answer_in_time, child, logical_id
from ultrascale_constructs.cluster_context import ClusterContext

Manifest = Mapping[str, object]


# A third of the time limit of the provider's function. If the function ended first, Helm would
# leave the release `pending-upgrade`, and refuse every later deployment (aws/aws-cdk#35299).
_HELM_MINUTES = 5
# Folder of kubectl's own settings, and their path in the function: Lambda unpacks layers there.
_SETTINGS = Path(__file__).parent / "kubectl"
_SETTINGS_PATH = "/opt/kuberc"


class ManifestApplier(Construct):
    """Defines a kubectl provider, and applies manifests and charts through it, in order.

    The provider is outside the cluster's stack, so that its new versions never touch the cluster.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster: ClusterContext,
        through: "ManifestApplier | None" = None,
    ) -> None:
        """Define the provider, or use the provider of ``through``.

        Args:
            scope: Parent.
            id: Construct id.
            cluster: The cluster.
            through: Applier whose provider is used, without waiting for its manifests.
        """
        super().__init__(scope, id)
        self._cluster: eks.ICluster
        self._access: eks.AccessEntry
        self._first: tuple[IConstruct, ...]
        if through is not None:
            self._cluster, self._access = through._cluster, through._access
            self._first = self._last = through._first
            return
        provider = eks.KubectlProvider(
            self,
            "Provider",
            cluster=eks.Cluster.from_cluster_attributes(
                self,
                "Network",
                cluster_name=cluster.name,
                cluster_security_group_id=cluster.security_group_id,
                vpc=cluster.vpc,
            ),
            # One version for all clusters: kubectl works with servers one minor older and newer.
            # Source: https://kubernetes.io/releases/version-skew-policy/#kubectl
            kubectl_layer=kubectl.KubectlV35Layer(self, "Kubectl"),
            private_subnets=cluster.private_subnets(self),
            environment={"KUBERC": _SETTINGS_PATH},
        )
        settings = lambda_.LayerVersion(
            self, "Settings", code=lambda_.Code.from_asset(str(_SETTINGS))
        )
        child(provider, lambda_.Function, "Handler").add_layers(settings)
        self._acknowledge(provider)
        self._cluster = eks.Cluster.from_cluster_attributes(
            self,
            "Cluster",
            cluster_name=cluster.name,
            kubectl_provider=provider,
            prune=False,
        )
        # Manifests depend on the provider's function, but neither on its right to use the cluster
        # nor on its log groups. If the function is called before CloudFormation has made the log
        # groups, Lambda makes them, and the stack fails with `already exists` (aws/aws-cdk#667).
        self._access = self._entry(provider)
        logs = [part for part in provider.node.find_all() if isinstance(part, CfnLogGroup)]
        self._first = (self._access, *logs)
        self._last: tuple[IConstruct, ...] = self._first

    def apply(
        self, id: str, manifests: Sequence[Manifest], *, retain: bool, once: bool = False
    ) -> None:
        """Apply ``manifests`` after everything that was applied before.

        Args:
            id: Construct id. It must never change: CloudFormation would create the same objects
                again and then delete them (aws/aws-cdk#33406).
            manifests: The objects.
            retain: Keep the objects when they leave the template or the stack is deleted.
            once: Whether it must never be applied again, not even for another time limit.
        """
        resource = eks.KubernetesManifest(
            self,
            id,
            cluster=self._cluster,
            manifest=manifests,
            # `kubectl apply` also creates them: retained objects may already exist.
            overwrite=True,
            prune=False,
            removal_policy=_removal(retain=retain),
        )
        if not once:
            answer_in_time(child(resource.node.find_child("Resource"), CfnResource))
        self._append(resource)

    def install_chart(
        self,
        id: str,
        *,
        repository: str,
        version: str,
        namespace: str,
        values: Mapping[str, object],
        retain: bool,
        wait: bool = False,
    ) -> None:
        """Install a Helm chart after everything that was applied before.

        Missing CRDs in the chart's `crds` folder are installed, and never upgraded: the provider's
        function ignores `skip_crds` (aws-cdk-lib 2.275). A chart of CRDs must be installed before.

        Args:
            id: Construct id. As with `apply`, it must never change.
            repository: Location of the chart, ``oci://REGISTRY/PATH/NAME``, or
                ``https://HOST/PATH/NAME`` with the URL of a Helm repository before the name. The
                release has the chart's name.
            version: Version of the chart.
            namespace: Namespace of the release, which must exist.
            values: The chart's values, without tokens; None removes the chart's own value.
            retain: Leave the release alone when it leaves the template or the stack is deleted.
            wait: Whether later steps wait until its pods are ready, and fail if they are not.
        """
        index, _, name = repository.rpartition("/")
        resource = eks.HelmChart(
            self,
            id,
            cluster=self._cluster,
            chart=name,
            release=name,
            # Helm takes a registry's chart by its whole name, and a repository's by its index.
            repository=repository if repository.startswith("oci://") else index,
            version=version,
            namespace=namespace,
            create_namespace=False,
            values=values,
            wait=wait,
            timeout=Duration.minutes(_HELM_MINUTES),
            removal_policy=_removal(retain=retain),
        )
        custom_resource = answer_in_time(child(resource.node.find_child("Resource"), CfnResource))
        # The construct drops null values, which remove a chart's own values in Helm.
        text = json.dumps(values, separators=(",", ":"), ensure_ascii=False)
        custom_resource.add_property_override("Values", text)
        self._append(resource)

    def patch(
        self,
        id: str,
        resource: str,
        operations: Sequence[Mapping[str, object]],
        *,
        namespace: str | None = None,
    ) -> None:
        """Patch an object after everything that was applied before, whenever ``operations`` change.

        Nothing is undone when the patch leaves the template or the stack is deleted: `kubectl`
        would fail on an object that is already gone, and so would the deletion of the stack.

        Args:
            id: Construct id.
            resource: Kind and name of the object, ``kind.group/name``.
            operations: A JSON patch. Source: https://www.rfc-editor.org/rfc/rfc6902
            namespace: Namespace of the object; None for an object of the whole cluster.
        """
        patch = eks.KubernetesPatch(
            self,
            id,
            cluster=self._cluster,
            resource_name=resource,
            resource_namespace=namespace,
            apply_patch={},
            restore_patch={},
            patch_type=eks.PatchType.JSON,
            removal_policy=RemovalPolicy.RETAIN,
        )
        custom_resource = answer_in_time(child(patch.node.find_child("Resource"), CfnResource))
        # The construct takes objects only; a JSON patch is a list.
        text = Stack.of(self).to_json_string(operations)
        custom_resource.add_property_override("ApplyPatchJson", text)
        custom_resource.add_property_override("RestorePatchJson", "[]")
        self._append(patch)

    def after(self, *constructs: IConstruct) -> None:
        """Apply everything after ``constructs``, and delete them after all applied objects.

        Call this method before anything is applied.
        """
        self._access.node.add_dependency(*constructs)

    def before_next(self, construct: IConstruct) -> None:
        """Apply all later objects after ``construct``."""
        self._last = (*self._last, construct)

    def before(self, construct: IConstruct) -> None:
        """Define ``construct`` after everything applied so far; at deletion, delete it first."""
        construct.node.add_dependency(*self._last)

    def _append(self, resource: Construct) -> None:
        resource.node.add_dependency(*self._last)
        self._last = (resource,)

    def _acknowledge(self, provider: eks.KubectlProvider) -> None:
        """Accept findings in the CDK's own kubectl provider."""
        reason = "part of the CDK's kubectl provider, whose roles cannot be replaced one by one"
        acknowledge_managed_policies(
            provider,
            {
                "service-role/AWSLambdaBasicExecutionRole": reason,
                "service-role/AWSLambdaVPCAccessExecutionRole": reason,
                "AmazonEC2ContainerRegistryReadOnly": reason,
            },
        )
        stack = Stack.of(self)
        handler = provider.node.find_child("Handler")
        condition = child(handler, CfnElement, "HasEcrPublic")
        has_ecr_public = stack.get_logical_id(condition)
        function = logical_id(handler)
        partition = {"Ref": "AWS::Partition"}
        name = ":iam::aws:policy/AmazonElasticContainerRegistryPublicReadOnly"
        policy = {
            "Fn::If": [
                has_ecr_public,
                {"Fn::Join": ["", ["arn:", partition, name]]},
                {"Ref": "AWS::NoValue"},
            ]
        }
        text = json.dumps(policy, separators=(",", ":"))
        acknowledge(
            provider,
            {
                f"AwsSolutions::AwsSolutions-IAM4[Policy::{text}]": reason,
                f"AwsSolutions::AwsSolutions-IAM5[Resource::<{function}.Arn>:*]": (
                    "the provider's framework calls every version of its own handler"
                ),
                "AwsSolutions::AwsSolutions-L1": "the CDK chooses its handler's runtime",
            },
        )

    def _entry(self, provider: eks.KubectlProvider) -> eks.AccessEntry:
        role = provider.role
        assert role is not None
        return eks.AccessEntry(
            self,
            "Access",
            cluster=self._cluster,
            principal=role.role_arn,
            access_policies=[
                eks.AccessPolicy.from_access_policy_name(
                    names.CLUSTER_ADMIN_POLICY, access_scope_type=eks.AccessScopeType.CLUSTER
                )
            ],
        )


def _removal(*, retain: bool) -> RemovalPolicy:
    return RemovalPolicy.RETAIN if retain else RemovalPolicy.DESTROY


# --- Values that charts of controllers on system nodes have in common -----------------------------


SYSTEM_NODES: Mapping[str, str] = {names.ROLE_LABEL: names.SYSTEM_ROLE}
SYSTEM_TOLERATIONS: Sequence[Mapping[str, str]] = [
    {"key": "CriticalAddonsOnly", "operator": "Exists"}
]
# Otherwise users' pods of higher priority could preempt a controller's pods.
PRIORITY = "system-cluster-critical"


def image_values(reference: str) -> dict[str, str]:
    """Return the repository and the tag of an image; the tag holds the digest as well.

    The charts join repository, colon and tag, whatever the tag holds.
    """
    name, at, digest = reference.partition("@")
    repository, _, tag = name.rpartition(":")
    return {"repository": repository, "tag": f"{tag}{at}{digest}"}


def resources_of(plan: ControllerPlan, *, chart_limits_cpu: bool) -> dict[str, object]:
    """Return the requests, and limits without CPU.

    Args:
        plan: The controller.
        chart_limits_cpu: Whether the chart has a limit of CPU: then a null removes the limit. Else
            Helm would keep the null, and the API server would read it as a limit of 0.
    """
    no_limit: Mapping[str, object] = {"cpu": None} if chart_limits_cpu else {}
    return {
        "requests": {"cpu": plan.cpu, "memory": plan.memory},
        "limits": {**no_limit, "memory": plan.memory},
    }


def spread_over(key: str, otherwise: str, labels: Mapping[str, str]) -> dict[str, object]:
    """Return the constraint that spreads pods over the values of a label of their nodes.

    Args:
        key: The label of nodes.
        otherwise: Choice if the constraint cannot be met: ``DoNotSchedule`` or ``ScheduleAnyway``.
        labels: Labels of the pods.
    """
    return {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": otherwise,
        "labelSelector": {"matchLabels": {**labels}},
    }


def kept_apart(labels: Mapping[str, str]) -> dict[str, object]:
    """Return the affinity that prefers another node, then another zone, for each of the pods."""
    terms = [
        {
            "weight": 100 // place,
            "podAffinityTerm": {
                "topologyKey": key,
                "labelSelector": {"matchLabels": {**labels}},
            },
        }
        for place, key in enumerate((names.HOSTNAME_LABEL, names.ZONE_LABEL), start=1)
    ]
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}
