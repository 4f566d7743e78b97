"""Enforcement of network policies: without it every pod reaches the training jobs' etcd."""

from tests.support.assembly import Assembly


def test_auto_mode_is_told_to_enforce_them(auto: Assembly) -> None:
    settings = auto.find("ConfigMap", "amazon-vpc-cni")

    assert settings["metadata"]["namespace"] == "kube-system"
    assert settings["data"] == {"enable-network-policy-controller": "true"}


def test_nobody_writes_what_the_vpc_cni_add_on_owns(trainium: Assembly, mixed: Assembly) -> None:
    for assembly in (trainium, mixed):
        names = {d["metadata"]["name"] for d in assembly.documents if d["kind"] == "ConfigMap"}
        assert "amazon-vpc-cni" not in names
        (addon,) = (
            body["Properties"]
            for _, body in assembly.resources("AWS::EKS::Addon")
            if body["Properties"]["AddonName"] == "vpc-cni"
        )
        assert '"enableNetworkPolicy": "true"' in addon["ConfigurationValues"]
