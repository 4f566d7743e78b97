"""A training pod's way, from its image to `/dev/neuron0`.

Every name, label, taint, security group and claim on that way stands in a template and in a
manifest, written by different code. Where two differ, the job hangs, and the nodes are paid for.
"""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.assembly import Assembly
from tests.support.kubernetes_schemas import pod_spec
from ultrascale.plan import names

NEURON = "aws.amazon.com/neuron"
# The tutorial's job: one pod a node, every device and EFA interface of it.
POD: Mapping[str, Any] = {
    "metadata": {"namespace": "training", "labels": {"app": "berttrain"}},
    "spec": {
        "schedulerName": "volcano",
        "tolerations": [{"key": NEURON, "operator": "Exists", "effect": "NoSchedule"}],
        "nodeSelector": {"node-type": "trn1"},
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "fsx-claim"}}],
    },
}
QUEUE = "test"
NEURON_DEVICES = 16
EFA_INTERFACES = 8


def one(assembly: Assembly, stack: str, kind: str) -> Mapping[str, Any]:
    """Return the properties of the one resource of ``kind`` in ``stack``."""
    resources = assembly.templates[stack]["Resources"].values()
    (found,) = (body["Properties"] for body in resources if body["Type"] == kind)
    return found


@pytest.fixture
def node_group(trainium: Assembly) -> Mapping[str, Any]:
    return one(trainium, "trn1", "AWS::EKS::Nodegroup")


@pytest.fixture
def launch(trainium: Assembly) -> Mapping[str, Any]:
    return one(trainium, "trn1", "AWS::EC2::LaunchTemplate")["LaunchTemplateData"]


def tolerates(tolerations: list[Mapping[str, Any]], taint: Mapping[str, str]) -> bool:
    effect = {"NO_SCHEDULE": "NoSchedule", "NO_EXECUTE": "NoExecute"}[taint["Effect"]]
    return any(
        toleration.get("key", taint["Key"]) == taint["Key"]
        and toleration.get("effect", effect) == effect
        and (toleration["operator"] == "Exists" or toleration["value"] == taint["Value"])
        for toleration in tolerations
    )


def test_its_image_is_pulled_from_a_repository_that_nodes_may_read_without_the_internet(
    trainium: Assembly,
) -> None:
    repositories = {
        body["Properties"]["RepositoryName"]
        for _, body in trainium.resources("AWS::ECR::Repository")
    }
    role = one(trainium, "trn1", "AWS::IAM::Role")
    endpoints = {
        body["Properties"]["ServiceName"]: body["Properties"]
        for _, body in trainium.resources("AWS::EC2::VPCEndpoint")
    }

    assert names.repository("trainium-bert", "bert-pretrain") in repositories
    assert "AmazonEC2ContainerRegistryPullOnly" in json.dumps(role["ManagedPolicyArns"])
    for service in ("ecr.api", "ecr.dkr"):
        assert endpoints[f"com.amazonaws.us-west-2.{service}"]["PrivateDnsEnabled"] is True
    # Layers come from S3.
    assert endpoints["com.amazonaws.us-west-2.s3"]["VpcEndpointType"] == "Gateway"


def test_its_namespace_queue_and_scheduler_are_there(trainium: Assembly) -> None:
    namespace = trainium.find("Namespace", POD["metadata"]["namespace"])
    spec = pod_spec(trainium.find("Deployment", "volcano-scheduler"))
    assert spec is not None
    (container,) = spec["containers"]

    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "baseline"
    assert trainium.find("Queue", QUEUE)["spec"]["weight"] == 1
    assert f"--scheduler-name={POD['spec']['schedulerName']}" in container["args"]


def test_it_tolerates_the_taints_of_its_nodes_and_selects_them(
    node_group: Mapping[str, Any],
) -> None:
    spec = POD["spec"]

    assert [taint["Key"] for taint in node_group["Taints"]] == [NEURON]
    assert all(tolerates(spec["tolerations"], taint) for taint in node_group["Taints"])
    assert spec["nodeSelector"].items() <= node_group["Labels"].items()


@pytest.mark.parametrize("plugin", ["neuron-device-plugin", "aws-efa-k8s-device-plugin"])
def test_the_device_plugins_run_on_its_nodes(
    trainium: Assembly, node_group: Mapping[str, Any], launch: Mapping[str, Any], plugin: str
) -> None:
    spec = pod_spec(trainium.find("DaemonSet", plugin))
    assert spec is not None
    labels = {**node_group["Labels"], "node.kubernetes.io/instance-type": launch["InstanceType"]}
    terms = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]

    assert spec.get("nodeSelector", {}).items() <= labels.items()
    assert any(
        all(
            (labels.get(rule["key"]) in rule["values"]) == (rule["operator"] == "In")
            for rule in term["matchExpressions"]
        )
        for term in terms["nodeSelectorTerms"]
    )
    assert all(tolerates(spec["tolerations"], taint) for taint in node_group["Taints"])


def test_its_nodes_have_the_driver_the_devices_and_the_efa_interfaces_it_asks_for(
    trainium: Assembly, node_group: Mapping[str, Any], launch: Mapping[str, Any]
) -> None:
    (pool,) = trainium.plan.pools
    nics = launch["NetworkInterfaces"]

    assert launch["InstanceType"] == "trn1.32xlarge"
    assert node_group["AmiType"] == "AL2023_x86_64_NEURON"
    assert (pool.accelerator, pool.accelerators_per_node) == (NEURON, NEURON_DEVICES)
    assert node_group["ScalingConfig"]["MinSize"] >= 2
    assert sum(nic["InterfaceType"] == "efa-only" for nic in nics) == EFA_INTERFACES
    assert {nic["NetworkCardIndex"] for nic in nics} == set(range(8))


def test_efa_traffic_passes_between_its_nodes_which_stand_together_in_one_zone(
    trainium: Assembly, node_group: Mapping[str, Any], launch: Mapping[str, Any]
) -> None:
    inside = one(trainium, "trn1", "AWS::EC2::SecurityGroupIngress")
    outside = one(trainium, "trn1", "AWS::EC2::SecurityGroupEgress")

    assert inside["IpProtocol"] == outside["IpProtocol"] == "-1"
    assert inside["GroupId"] == inside["SourceSecurityGroupId"]
    assert outside["GroupId"] == outside["DestinationSecurityGroupId"] == inside["GroupId"]
    assert all(inside["GroupId"] in nic["Groups"] for nic in launch["NetworkInterfaces"])
    assert len(node_group["Subnets"]) == 1
    assert one(trainium, "trn1", "AWS::EC2::PlacementGroup")["Strategy"] == "cluster"
    assert "GroupName" in launch["Placement"]


def test_its_claim_leads_to_the_file_system_next_to_it(
    trainium: Assembly, node_group: Mapping[str, Any]
) -> None:
    volume = POD["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"]
    claim = trainium.find("PersistentVolumeClaim", volume)
    target = trainium.find("PersistentVolume", claim["spec"]["volumeName"])
    file_system = one(trainium, "storage", "AWS::FSx::FileSystem")
    addons = {b["Properties"]["AddonName"] for _, b in trainium.resources("AWS::EKS::Addon")}

    assert claim["metadata"]["namespace"] == POD["metadata"]["namespace"]
    assert target["spec"]["claimRef"] == {"namespace": "training", "name": volume}
    assert target["spec"]["csi"]["driver"] == "fsx.csi.aws.com"
    assert "aws-fsx-csi-driver" in addons
    assert file_system["SubnetIds"] == node_group["Subnets"]


def test_the_claim_names_the_file_system_that_the_storage_stack_makes(trainium: Assembly) -> None:
    resources = trainium.templates["platform"]["Resources"].values()
    (manifest,) = (
        body["Properties"]["Manifest"]
        for body in resources
        if "fsx.csi.aws.com" in json.dumps(body["Properties"].get("Manifest", ""))
    )
    exports = trainium.templates["storage"]["Outputs"].values()
    attributes = {json.dumps(output["Value"]) for output in exports if "Description" not in output}
    parts: list[Any] = manifest["Fn::Join"][1]
    imports = [str(part["Fn::ImportValue"]) for part in parts if "Fn::ImportValue" in part]
    exported = {output["Export"]["Name"] for output in exports if "Export" in output}

    assert len(imports) == 3
    assert set(imports) <= exported
    assert any("DNSName" in attribute for attribute in attributes)
    assert any("LustreMountName" in attribute for attribute in attributes)


def test_lustre_answers_its_nodes(trainium: Assembly, launch: Mapping[str, Any]) -> None:
    file_system = one(trainium, "storage", "AWS::FSx::FileSystem")
    (servers,) = file_system["SecurityGroupIds"]
    (primary,) = (nic for nic in launch["NetworkInterfaces"] if nic["InterfaceType"] == "interface")
    opened = {
        (rule["FromPort"], rule["ToPort"])
        for _, body in trainium.resources("AWS::EC2::SecurityGroupIngress")
        if (rule := body["Properties"])["GroupId"] == servers
        and rule["SourceSecurityGroupId"] in primary["Groups"]
    }

    assert opened == {(988, 988), (1018, 1023)}


def test_it_meets_its_peers_at_the_tutorials_etcd(trainium: Assembly) -> None:
    service = trainium.find("Service", "etcd-server")
    server = trainium.find("StatefulSet", "etcd-server")
    spec = pod_spec(server)
    assert spec is not None
    policy = trainium.find("NetworkPolicy", "etcd-server")
    namespace = trainium.find("Namespace", POD["metadata"]["namespace"])
    (source,) = (
        rule["from"][0]["namespaceSelector"]["matchLabels"]
        for rule in policy["spec"]["ingress"]
        if rule["ports"][0]["port"] == 2379
    )

    # The short name of the tutorial's command resolves in the pod's own namespace.
    assert service["metadata"]["namespace"] == POD["metadata"]["namespace"]
    assert 2379 in [port["port"] for port in service["spec"]["ports"]]
    pod_labels = server["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= pod_labels.items()
    assert source.items() <= namespace["metadata"]["labels"].items()
    assert "--enable-v2=true" in spec["containers"][0]["args"]


def test_its_peers_reach_it_through_the_namespaces_closed_door(trainium: Assembly) -> None:
    policies = [
        d["spec"]
        for d in trainium.documents
        if d["kind"] == "NetworkPolicy" and d["metadata"]["namespace"] == "training"
        if d["metadata"]["name"] != "etcd-server"
    ]

    assert any(p["podSelector"] == {} and not p.get("ingress") for p in policies)
    assert any(
        {"podSelector": {}} in rule["from"] and not rule.get("ports")
        for p in policies
        for rule in p.get("ingress", [])
    )
