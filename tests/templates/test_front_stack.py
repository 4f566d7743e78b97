"""Order and values by which Helm brings the front into the cluster."""

import json
from functools import cache
from typing import Any

import pytest
import yaml
from aws_cdk.assertions import Template

from tests.support.construct_stacks import cluster_of, logical_id, resources
from tests.support.crd_schemas import CrdSet
from tests.support.folders import ROOT
from tests.support.pools import SYSTEM_POOL, make_document, pool_document
from tests.support.queued_pools import planned
from ultrascale_k8s import define_charts
from ultrascale_stacks.front import FrontStack

CHARTS = "Custom::AWSCDK-EKS-HelmChart"
MANIFESTS = "Custom::AWSCDK-EKS-KubernetesResource"


CHAT = {"kind": "service", "pool": "train", "image": "docker.io/library/nginx:1"} | {
    "model_names": ["chat"],
    "port": 8000,
}
CERTIFICATE = "arn:aws:acm:us-west-2:111122223333:certificate/11111111-2222-4333-8444-555555555501"
INTERNET = (
    f"{{exposure: internet, certificate: '{CERTIFICATE}', api_keys: keys, "
    "allowed_cidrs: [192.0.2.0/24]}"
)
BALANCER = "AWS::ElasticLoadBalancingV2::LoadBalancer"
LISTENER = "AWS::ElasticLoadBalancingV2::Listener"
TARGETS = "AWS::ElasticLoadBalancingV2::TargetGroup"


@cache
def template(front: str, *, auto_mode: bool = False) -> Template:
    """Return the stack of a front, which is given as YAML."""
    pools = [SYSTEM_POOL, pool_document(provisioner="auto-mode")] if auto_mode else None
    changes = {} if pools is None else {"pools": pools}
    serving = {"front": yaml.safe_load(front)}
    plan = planned(make_document(serving=serving, jobs={"chat": CHAT}, **changes))
    cluster = cluster_of(plan, define_charts(plan))
    return Template.from_stack(FrontStack(cluster, "research-front"))


@pytest.fixture
def stack() -> Template:
    return template("{exposure: cluster}")


def values(stack: Template) -> dict[str, Any]:
    (chart,) = resources(stack, CHARTS)
    return json.loads(chart["Properties"]["Values"])


def one(stack: Template, kind: str) -> dict[str, Any]:
    (found,) = resources(stack, kind)
    return found["Properties"]


def test_the_gateway_comes_after_its_controller_and_its_policies_and_goes_before_them(
    stack: Template,
) -> None:
    """Nobody else deletes the proxies, or lets the class of gateways go."""
    (controller,) = resources(stack, CHARTS)
    ((name, policies), (_, gateway)) = stack.find_resources(MANIFESTS).items()
    assert controller["Properties"]["Wait"] is True
    assert logical_id(stack, CHARTS, Release="gateway-helm") in policies["DependsOn"]
    for each in (controller, policies, gateway):
        assert each["DeletionPolicy"] == "Delete"
    # Routes are judged before the gateway follows them.
    assert "ValidatingAdmissionPolicyBinding" in json.dumps(policies)
    assert "ValidatingAdmissionPolicy" not in json.dumps(gateway)
    assert name in gateway["DependsOn"]


def test_the_controller_runs_twice_on_system_nodes_and_reads_namespaces_of_services_alone(
    stack: Template,
) -> None:
    found = values(stack)
    gateway = found["config"]["envoyGateway"]
    provider = gateway["provider"]["kubernetes"]
    # With a list of namespaces the chart makes Roles in place of a ClusterRole.
    names = ["envoy-gateway-system", "training"]
    assert provider["watch"] == {"type": "Namespaces", "namespaces": names}
    # Envoy Gateway 1.9 takes no Lua unless it is told to: the script that reads models.
    assert gateway["extensionApis"] == {"enableLua": True}
    assert found["deployment"]["replicas"] == 2
    assert found["podDisruptionBudget"] == {"minAvailable": 1}
    assert provider["proxyTopologyInjector"] == {"disabled": True}
    for pod in (found["deployment"]["pod"], found["certgen"]["job"]):
        assert pod["nodeSelector"] == {"ultrascale.dev/role": "system"}
        assert pod["tolerations"] == [{"key": "CriticalAddonsOnly", "operator": "Exists"}]


# --- the load balancer ---------------------------------------------------------------------------


def test_the_load_balancer_is_internal_unless_the_file_says_otherwise(stack: Template) -> None:
    # Pods of the cluster alone reach a front without one.
    assert not resources(stack, BALANCER)
    internal = template("{}")
    balancer = one(internal, BALANCER)
    targets = one(internal, TARGETS)
    assert balancer["Scheme"] == "internal"
    assert len(balancer["Subnets"]) == 3
    assert one(internal, LISTENER)["Protocol"] == "HTTP"
    (rule,) = one(internal, "AWS::EC2::SecurityGroup")["SecurityGroupIngress"]
    assert (rule["CidrIp"], rule["FromPort"]) == ("10.0.0.0/16", 80)
    # An answer of an hour passes, and a proxy that goes ends its own.
    attributes = {each["Key"]: each["Value"] for each in balancer["LoadBalancerAttributes"]}
    drains = {each["Key"]: each["Value"] for each in targets["TargetGroupAttributes"]}
    assert attributes["idle_timeout.timeout_seconds"] == "3600"
    assert drains["deregistration_delay.timeout_seconds"] == "600"
    assert targets["HealthCheckPath"] == "/healthz"


def test_the_internet_comes_by_tls_and_from_the_ranges_of_the_file() -> None:
    stack = template(INTERNET)
    listener = one(stack, LISTENER)
    assert (listener["Protocol"], listener["Port"]) == ("HTTPS", 443)
    assert listener["Certificates"] == [{"CertificateArn": CERTIFICATE}]
    assert listener["SslPolicy"].startswith("ELBSecurityPolicy-TLS13")
    assert one(stack, BALANCER)["Scheme"] == "internet-facing"
    (rule,) = one(stack, "AWS::EC2::SecurityGroup")["SecurityGroupIngress"]
    assert (rule["CidrIp"], rule["FromPort"]) == ("192.0.2.0/24", 443)


def test_the_controller_changes_the_targets_of_the_front_and_nothing_else() -> None:
    stack = template("{}")
    (role,) = (
        body["Properties"]
        for body in resources(stack, "AWS::IAM::Role")
        if "pods.eks.amazonaws.com" in json.dumps(body)
    )
    (policy,) = role["Policies"]
    describes, registers = policy["PolicyDocument"]["Statement"]
    assert all(":Describe" in action for action in describes["Action"])
    assert registers["Action"] == [
        "elasticloadbalancing:DeregisterTargets",
        "elasticloadbalancing:RegisterTargets",
    ]
    assert ":targetgroup/*" in json.dumps(registers["Resource"])
    tag = registers["Condition"]["StringEquals"]["aws:ResourceTag/eks:eks-cluster-name"]
    targets = one(stack, "AWS::ElasticLoadBalancingV2::TargetGroup")
    assert {"Key": "eks:eks-cluster-name", "Value": tag} in targets["Tags"]


def test_another_exposure_shares_no_target_group_and_no_binding_with_the_old() -> None:
    """A target group belongs to one load balancer, and a binding keeps its target group."""
    stacks = (template("{}"), template(INTERNET))
    bindings = [binding(each) for each in stacks]

    assert len({logical_id(each, TARGETS) for each in stacks}) == 2
    assert len({resource for resource, _ in bindings}) == 2
    assert len({manifest["metadata"]["name"] for _, manifest in bindings}) == 2


def binding(stack: Template) -> tuple[str, dict[str, Any]]:
    """Return the resource that binds the target group to the proxies, and its object."""
    ((resource, body),) = (
        (name, body)
        for name, body in stack.find_resources(MANIFESTS).items()
        if "TargetGroupBinding" in json.dumps(body["Properties"]["Manifest"])
    )
    text = "".join(
        part if isinstance(part, str) else "x"
        for part in body["Properties"]["Manifest"]["Fn::Join"][1]
    )
    (manifest,) = json.loads(text)
    return resource, manifest


@pytest.mark.parametrize("auto_mode", [False, True])
def test_a_controller_keeps_the_list_of_proxies_and_outlives_it(*, auto_mode: bool) -> None:
    """The binding has a finalizer: it goes while its controller runs."""
    stack = template("{}", auto_mode=auto_mode)
    resource, manifest = binding(stack)
    charts = {body["Properties"]["Release"] for body in resources(stack, CHARTS)}
    if auto_mode:
        assert charts == {"gateway-helm"}
        assert manifest["apiVersion"] == "eks.amazonaws.com/v1"
        return
    assert charts == {"gateway-helm", "aws-load-balancer-controller"}
    chart = logical_id(stack, CHARTS, Release="aws-load-balancer-controller")
    assert stack.to_json()["Resources"][resource]["DependsOn"] == [chart]
    lines = (ROOT / "tests" / "data" / "front_crds.jsonl").read_text().splitlines()
    upstream = CrdSet.from_documents(json.loads(x) for x in lines if '"TargetGroupBinding"' in x)
    manifest["spec"]["targetGroupARN"] = "arn:aws:elasticloadbalancing:x"
    manifest["spec"]["vpcID"] = "vpc-0123456789abcdef0"
    assert upstream.validate(manifest) == []


def test_the_controller_makes_no_load_balancer_of_its_own() -> None:
    (values_of,) = (
        body["Properties"]["Values"]
        for body in resources(template("{}"), CHARTS)
        if body["Properties"]["Release"] == "aws-load-balancer-controller"
    )
    text = "".join(part if isinstance(part, str) else "vpc" for part in values_of["Fn::Join"][1])
    found = json.loads(text)
    assert not any(found["controllerConfig"]["featureGates"].values())
    assert found["watchNamespace"] == "envoy-gateway-system"
    assert found["createIngressClassResource"] is False
