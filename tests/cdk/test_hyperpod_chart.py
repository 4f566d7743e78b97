"""The build that installs AWS's HyperPod chart: its rights in the cluster, and nobody else's."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

import pytest
from aws_cdk.assertions import Template
from msgspec.structs import replace

from tests.support.construct_stacks import make_context, make_pool_plan, make_stack, resources, the
from tests.support.hyperpod import hyperpod_of
from tests.support.pools import HYPERPOD_POOL, SYSTEM_POOL, TRAINING_PLAN, make_cluster
from ultrascale import config
from ultrascale.parts.hyperpod.chart import plan_hyperpod_chart
from ultrascale.parts.hyperpod.model import HyperPodChartPlan
from ultrascale.plan.cluster import assemble
from ultrascale_constructs.hyperpod.chart import HyperPodChart

PROJECT = "AWS::CodeBuild::Project"
BUILD = "Custom::Build"
# A function of AWS Lambda runs no longer than 15 minutes.
LAMBDA_MINUTES = 15


def make_plan() -> HyperPodChartPlan:
    purchase = config.TrainingPlan.model_validate(TRAINING_PLAN)
    pool = make_pool_plan(provisioner="hyperpod", purchase=purchase)
    plan = plan_hyperpod_chart("us-west-2", [pool])
    assert plan is not None
    return plan


def build(plan: HyperPodChartPlan) -> Template:
    stack = make_stack()
    HyperPodChart(stack, "Chart", plan=plan, cluster=make_context(stack))
    return Template.from_stack(stack)


@pytest.fixture(scope="module")
def plan() -> HyperPodChartPlan:
    return make_plan()


@pytest.fixture(scope="module")
def built(plan: HyperPodChartPlan) -> Template:
    return build(plan)


@pytest.fixture(scope="module")
def project(built: Template) -> dict[str, Any]:
    return the(built, PROJECT)


@pytest.fixture(scope="module")
def variables(project: Mapping[str, Any]) -> dict[str, str]:
    return {each["Name"]: each["Value"] for each in project["Environment"]["EnvironmentVariables"]}


def role_of(built: Template, service: str) -> str:
    """Return the logical id of the role that a service takes."""
    (found,) = (
        name
        for name, body in built.find_resources("AWS::IAM::Role").items()
        if service in json.dumps(body)
    )
    return found


def allowed(built: Template, service: str) -> Iterator[tuple[str, str]]:
    """Yield each action that the role of a service allows, and on what."""
    role = {"Ref": role_of(built, service)}
    for policy in resources(built, "AWS::IAM::Policy"):
        if role not in policy["Properties"]["Roles"]:
            continue
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
            for action in _listed(statement["Action"]):
                for resource in _listed(statement["Resource"]):
                    yield str(action), json.dumps(resource)


def _listed(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else [value]


class TestProject:
    """Project of CodeBuild: its network and its inputs."""

    def test_it_reaches_a_private_endpoint_and_no_second_one_changes_the_release(
        self, built: Template, project: dict[str, Any]
    ) -> None:
        assert project["VpcConfig"] == {
            "VpcId": "vpc-1",
            "Subnets": ["subnet-a", "subnet-b"],
            "SecurityGroupIds": ["sg-0123456789abcdef0"],
        }
        assert project["ConcurrentBuildLimit"] == 1
        # It ends before the function that waits for it.
        assert project["TimeoutInMinutes"] + project["QueuedTimeoutInMinutes"] < LAMBDA_MINUTES
        # It brings Helm and kubectl along instead of downloading them.
        (tools,) = project["SecondarySources"]
        layer = the(built, "AWS::Lambda::LayerVersion")["Content"]
        assert tools["SourceIdentifier"] == "tools"
        assert json.dumps(tools["Location"]).endswith(f'/{layer["S3Key"]}"]]}}')

    def test_it_gets_the_pins_and_values_of_the_plan(
        self, plan: HyperPodChartPlan, variables: dict[str, str]
    ) -> None:
        assert variables["CHART_COMMIT"] == plan.commit
        assert json.loads(variables["VALUES"]) == plan.values
        pins = [pin.split(":") for pin in variables["REMOTE_CHARTS"].split()]
        assert pins == [[p.name, p.version, p.sha256 or ""] for p in plan.remote_charts]
        assert all(variables.values())  # CodeBuild takes no empty variable.


class TestRights:
    """A build that anybody could start or change would be an administrator of the cluster."""

    def test_the_build_alone_is_let_into_the_cluster_as_administrator(
        self, built: Template
    ) -> None:
        entry = the(built, "AWS::EKS::AccessEntry")

        assert entry["PrincipalArn"] == {
            "Fn::GetAtt": [role_of(built, "codebuild.amazonaws.com"), "Arn"]
        }
        (policy,) = entry["AccessPolicies"]
        assert "AmazonEKSClusterAdminPolicy" in json.dumps(policy["PolicyArn"])

    def test_no_other_project_takes_its_role(self, built: Template) -> None:
        role = built.find_resources("AWS::IAM::Role")[role_of(built, "codebuild.amazonaws.com")]

        (statement,) = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
        source = json.dumps(statement["Condition"]["StringEquals"]["aws:SourceArn"])
        assert source.endswith(':project/research-hyperpod-chart"]]}')

    def test_outside_the_cluster_it_reads_its_sources_and_makes_its_interface(
        self, built: Template
    ) -> None:
        rights = [*allowed(built, "codebuild.amazonaws.com")]

        assert {action for action, _ in rights if not action.startswith("ec2:")} == {
            "eks:DescribeCluster",
            *(
                "logs:CreateLogStream",
                "logs:PutLogEvents",
                "s3:GetBucketAcl",
                "s3:GetBucketLocation",
            ),
            *("s3:GetObject", "s3:GetObjectVersion"),
        }
        assert {action.removeprefix("ec2:") for action, on in rights if on == '"*"'} == {
            *("CreateNetworkInterface", "DeleteNetworkInterface", "DescribeDhcpOptions"),
            *("DescribeNetworkInterfaces", "DescribeSecurityGroups", "DescribeSubnets"),
            "DescribeVpcs",
        }

    def test_its_interfaces_lie_in_its_own_subnets(self, built: Template) -> None:
        (condition,) = (
            statement["Condition"]
            for policy in resources(built, "AWS::IAM::Policy")
            for statement in policy["Properties"]["PolicyDocument"]["Statement"]
            if statement["Action"] == "ec2:CreateNetworkInterfacePermission"
        )

        assert condition["StringEquals"] == {"ec2:AuthorizedService": "codebuild.amazonaws.com"}
        subnets = json.dumps(condition["ArnEquals"]["ec2:Subnet"])
        assert ":subnet/subnet-a" in subnets
        assert ":subnet/subnet-b" in subnets

    def test_the_function_starts_and_stops_this_build_and_no_other(self, built: Template) -> None:
        rights = [
            (action, on)
            for action, on in allowed(built, "lambda.amazonaws.com")
            if action.startswith("codebuild:")
        ]

        assert {action for action, _ in rights} == {
            "codebuild:BatchGetBuilds",
            "codebuild:StartBuild",
            "codebuild:StopBuild",
        }
        assert all(":project/research-hyperpod-chart" in on for _, on in rights)


class TestWhen:
    """A build that does not run leaves the old chart, one that runs for nothing delays a deploy."""

    def test_it_runs_once_everything_that_it_needs_is_there(self, built: Template) -> None:
        (build,) = resources(built, BUILD)
        every = built.to_json()["Resources"]

        there = {every[name]["Type"] for name in build["DependsOn"]}
        assert {PROJECT, "AWS::EKS::AccessEntry"} <= there

    def test_cloudformation_waits_longer_than_the_function_runs(self, built: Template) -> None:
        waits = int(the(built, BUILD)["ServiceTimeout"])

        assert waits > the(built, "AWS::Lambda::Function")["Timeout"] == LAMBDA_MINUTES * 60

    def test_it_runs_again_when_it_would_do_something_else_and_only_then(
        self, plan: HyperPodChartPlan, built: Template
    ) -> None:
        changes: tuple[dict[str, Any], ...] = (
            *({"commit": "1" * 40}, {"values": {"replicaCount": 1}}, {"plugin_taints": ("other",)}),
            {},
        )

        for change in changes:
            other = the(build(replace(plan, **change)), BUILD)
            assert (other["Revision"] != the(built, BUILD)["Revision"]) is bool(change), change


def test_with_a_mirror_the_build_knows_no_other_place_and_may_pull_from_it(
    plan: HyperPodChartPlan,
) -> None:
    mirror = "111122223333.dkr.ecr.us-west-2.amazonaws.com/mirror"
    pools = [SYSTEM_POOL, HYPERPOD_POOL]
    mirrored = assemble(make_cluster(pools=pools, images={"mirror": mirror}))
    template = build(hyperpod_of(mirrored).chart_release)
    found = the(template, PROJECT)["Environment"]["EnvironmentVariables"]
    variables = {each["Name"]: each["Value"] for each in found}

    assert variables["CHART_COPY"].startswith(f"oci://{mirror}/")
    assert variables["IMAGE_REGISTRIES"].split() == [mirror, "*.dkr.ecr.us-west-2.amazonaws.com"]
    assert not {"CHART_REPOSITORY", "REMOTE_CHARTS"} & variables.keys()
    # Names of images that the chart gives are looked for, not pulled.
    assert plan.repository not in json.dumps(variables)
    rights = dict(allowed(template, "codebuild.amazonaws.com"))
    assert "repository/mirror/*" in rights["ecr:BatchGetImage"]
    assert "ecr:GetAuthorizationToken" in rights
