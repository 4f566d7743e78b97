"""The document for nodeadm; a node that cannot read it never joins."""

from email.message import Message
from email.parser import Parser
from typing import Any

import pytest
import yaml
from aws_cdk import Fn
from msgspec.structs import replace

from tests.support.construct_stacks import make_context, make_pool_plan, make_stack
from ultrascale.plan.model import Taint
from ultrascale_constructs.launch_template import user_data

CLUSTER = make_context(make_stack())
PULL: dict[str, object] = {"featureGates": {"FastImagePull": True}}


def node_config(text: str) -> dict[str, Any]:
    """Return the one NodeConfig of a MIME document."""
    message = Parser().parsestr(text)
    assert not message.defects
    (part,) = (part for part in message.walk() if not part.is_multipart())
    assert isinstance(part, Message)
    assert part.get_content_type() == "application/node.eks.aws"
    (document,) = (item for item in yaml.safe_load_all(str(part.get_payload())) if item)
    return document


def flags(**changes: Any) -> dict[str, str]:
    """Return the kubelet's flags of a self-managed node."""
    plan = replace(make_pool_plan(), **changes)
    found = node_config(user_data(plan, cluster=CLUSTER))["spec"]["kubelet"]["flags"]
    return dict(flag.split("=", 1) for flag in found)


@pytest.mark.parametrize(
    ("instance_type", "pods", "more"),
    [
        ("p5.48xlarge", 250, {"instance": {"localStorage": {"strategy": "RAID0"}}} | PULL),
        ("inf2.xlarge", 110, PULL),
        ("m7g.2xlarge", 110, {}),
    ],
    ids=["NVMe disks", "no NVMe disk", "no accelerator"],
)
def test_nodes_join_with_the_pods_disks_and_pull_of_their_plan(
    instance_type: str, pods: int, more: dict[str, object]
) -> None:
    document = node_config(user_data(make_pool_plan(instance_type)))

    assert document["kind"] == "NodeConfig"
    assert document["apiVersion"] == "node.eks.aws/v1alpha1"
    assert document["spec"] == {"kubelet": {"config": {"maxPods": pods}}} | more


class TestSelfManaged:
    """Nobody completes the document of a node that nobody manages."""

    def test_it_says_the_same_of_the_node_and_names_the_cluster(self) -> None:
        plan = make_pool_plan("p5.48xlarge")
        managed = node_config(user_data(plan))["spec"]

        own = node_config(user_data(plan, cluster=CLUSTER))["spec"]

        assert own.pop("cluster") == {
            "name": "research",
            "apiServerEndpoint": CLUSTER.endpoint,
            "certificateAuthority": CLUSTER.certificate_authority,
            "cidr": "172.20.0.0/16",
        }
        del own["kubelet"]["flags"]
        assert own == managed

    def test_nodes_have_their_labels_and_taints_from_the_first_moment(self) -> None:
        """No pod that is not meant for them gets there first."""
        labels = {"ultrascale.dev/pool": "train", "team": "research"}
        taints = (
            Taint(key="nvidia.com/gpu", value="true", effect="NoSchedule"),
            Taint(key="dedicated", value="x", effect="NoExecute"),
        )

        assert flags(labels=labels, taints=taints) == {
            "--node-labels": "ultrascale.dev/pool=train,team=research",
            "--register-with-taints": "nvidia.com/gpu=true:NoSchedule,dedicated=x:NoExecute",
        }
        assert "--register-with-taints" not in flags(taints=())

    def test_values_that_only_the_deploy_knows_stand_in_their_places(self) -> None:
        stack = make_stack()
        cluster = replace(
            CLUSTER,
            endpoint=Fn.import_value("endpoint"),
            certificate_authority=Fn.import_value("authority"),
        )

        resolved = stack.resolve(user_data(make_pool_plan(), cluster=cluster))

        _, parts = resolved["Fn::Join"]
        text = "".join(part if isinstance(part, str) else part["Fn::ImportValue"] for part in parts)
        spec = node_config(text)["spec"]["cluster"]
        assert spec["apiServerEndpoint"] == "endpoint"
        assert spec["certificateAuthority"] == "authority"
