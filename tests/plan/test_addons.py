"""EKS add-ons of a cluster: selection, versions and settings."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

import pytest

from tests.support.pools import HYPERPOD_POOL, NEURON_POOL, SYSTEM_POOL, make_cluster
from tests.support.pools import LUSTRE as FILE_SYSTEM
from ultrascale import config
from ultrascale.catalog import addons, eks, lustre, versions
from ultrascale.errors import ConfigError
from ultrascale.plan import plan_cluster
from ultrascale.plan.addons import foreign_addons
from ultrascale.plan.cluster import assemble
from ultrascale.plan.model import AddonPlan

LUSTRE = {"lustre": [FILE_SYSTEM]}
MOUNTPOINT = "aws-mountpoint-s3-csi-driver"
OWN_VERSIONS = {
    "eks-node-monitoring-agent": "v1.7.2-eksbuild.1",
    "aws-fsx-csi-driver": "v1.10.0-eksbuild.1",
}


def planned(**changes: Any) -> dict[str, AddonPlan]:
    control_plane = plan_cluster(make_cluster(**changes)).control_plane
    every = (*control_plane.node_addons, *control_plane.workload_addons)
    return {addon.name: addon for addon in every}


def mistakes(**changes: Any) -> tuple[str, ...]:
    cluster = make_cluster(**changes)
    with pytest.raises(ConfigError) as caught:
        plan_cluster(cluster)
    return caught.value.mistakes


def key_paths(value: Mapping[str, object], prefix: str = "") -> Iterator[str]:
    """Yield the dotted path of every key of ``value``, at every depth."""
    for key, item in value.items():
        yield f"{prefix}{key}"
        if isinstance(item, Mapping):
            yield from key_paths(cast("Mapping[str, object]", item), f"{prefix}{key}.")


def test_nodes_wait_for_the_addons_that_connect_them_alone() -> None:
    plan = plan_cluster(make_cluster(storage=LUSTRE)).control_plane
    names = [addon.name for addon in plan.node_addons]
    assert names == ["vpc-cni", "kube-proxy", "eks-pod-identity-agent"]


# Without prefixes a p5 node has addresses for 51 pods, and every pod uses up one of the VPC's.
def test_pods_have_addresses_by_prefixes_and_their_network_policies_are_enforced() -> None:
    settings = planned()["vpc-cni"].configuration
    assert settings["env"] == {"ENABLE_PREFIX_DELEGATION": "true", "WARM_PREFIX_TARGET": "1"}
    assert settings["enableNetworkPolicy"] == "true"


@pytest.mark.parametrize(
    ("name", "account", "policy"),
    [
        ("vpc-cni", "aws-node", "AmazonEKS_CNI_Policy"),
        ("aws-ebs-csi-driver", "ebs-csi-controller-sa", "AmazonEBSCSIDriverPolicyV2"),
        ("aws-fsx-csi-driver", "fsx-csi-controller-sa", None),
        # What calls no AWS API has no role.
        ("kube-proxy", None, None),
        ("coredns", None, None),
    ],
)
def test_pods_get_the_role_that_aws_documents(
    name: str, account: str | None, policy: str | None
) -> None:
    """An add-on without permissions is ACTIVE and does nothing."""
    addon = planned(storage=LUSTRE)[name]
    assert (addon.service_account, addon.managed_policy) == (account, policy)


@pytest.mark.parametrize("nodes", [2, 1_001, 5_001, 20_001])
def test_every_key_is_one_that_the_schema_of_the_addon_has(nodes: int) -> None:
    """EKS refuses an add-on at deploy for one key that its schema lacks."""
    for name, addon in (planned(storage=LUSTRE) | TestLargeClusters.planned(nodes)).items():
        known = addons.addon(name).configuration
        for path in key_paths(addon.configuration):
            below = any(path == key or path.startswith(f"{key}.") for key in known)
            above = any(key.startswith(f"{path}.") for key in known)
            assert below or above, f"{name}: {path}"


# The scheduler of a cluster with accelerators fills a node before it opens another.
@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("coredns", {"k8s-app": "kube-dns"}),
        ("aws-ebs-csi-driver", {"app": "ebs-csi-controller"}),
    ],
)
def test_controllers_stay_on_system_nodes_and_the_loss_of_one_takes_not_all_replicas(
    name: str, label: dict[str, str]
) -> None:
    settings: Any = planned()[name].configuration
    affinity = settings.get("controller", settings)["affinity"]
    (apart,) = affinity["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert "'key': 'ultrascale.dev/role', 'operator': 'In', 'values': ['system']" in str(affinity)
    assert apart["podAffinityTerm"] == {
        "labelSelector": {"matchLabels": label},
        "topologyKey": "kubernetes.io/hostname",
    }


def test_lustre_driver_is_there_only_where_there_is_a_file_system() -> None:
    assert "aws-fsx-csi-driver" in planned(storage=LUSTRE)
    assert "aws-fsx-csi-driver" not in planned()


def test_replicas_that_follow_the_use_of_cpu_bring_what_measures_it() -> None:
    def addons_with(**autoscale: Any) -> set[str]:
        scaled = {"metric": "waiting", "target": 50, "max": 2} | autoscale
        job = {"kind": "service", "server": "vllm", "pool": "train", "autoscale": scaled}
        plan = assemble(make_cluster(jobs={"chat": job}))
        return {each.name for each in plan.control_plane.workload_addons}

    assert addons_with(metric="cpu") - addons_with() == {"metrics-server"}


def test_mountpoint_is_there_only_where_pods_mount_a_bucket() -> None:
    buckets = {"buckets": ["checkpoints"]}

    assert MOUNTPOINT not in planned(storage=buckets)
    assert MOUNTPOINT in planned(storage=buckets | {"default_claims": True})


def test_a_bucket_can_be_mounted_on_nodes_with_taints_by_a_controller_that_is_on_none() -> None:
    addon = planned(storage={"buckets": ["checkpoints"], "default_claims": True})[MOUNTPOINT]

    assert addon.configuration["node"] == {"tolerateAllTaints": True}
    assert addon.configuration["controller"] == {"nodeSelector": {"ultrascale.dev/role": "system"}}
    known = addons.addon(MOUNTPOINT).configuration
    assert {path for path in key_paths(addon.configuration) if path.count(".") == 1} <= {*known}


def mounted(minor: str) -> dict[str, Any]:
    """Return file systems, where the images of the minor mount them."""
    return LUSTRE if versions.ami_release(minor).kernel in lustre.CLIENT_KERNELS else {}


@pytest.mark.parametrize("minor", eks.SUPPORTED_VERSIONS)
def test_every_minor_can_be_had_with_versions_of_ones_own(minor: str) -> None:
    storage = mounted(minor)
    own = {k: v for k, v in OWN_VERSIONS.items() if storage or k != "aws-fsx-csi-driver"}
    plans = planned(kubernetes={"version": minor, "addons": own}, storage=storage)

    assert {name: plans[name].version for name in own} == own


class TestConfiguration:
    """EKS refuses an add-on at deploy for one key that its schema lacks."""

    # By EKS's rule a replica for 16 nodes or 256 vCPUs; four m7g.2xlarge have 32, a
    # trn1.32xlarge has 128.
    @pytest.mark.parametrize(
        ("nodes", "shards", "fewest", "most"),
        [(1, 1, 2, 4), (20, 1, 2, 11), (10, 2, 2, 11), (400, 1, 2, 100), (400, 7, 4, 100)],
    )
    def test_coredns_scales_with_the_fleet_within_bounds(
        self, nodes: int, shards: int, fewest: int, most: int
    ) -> None:
        network = {
            "vpc_cidr": "10.0.0.0/16",
            "pod_cidrs": {"count": 31, "from": "100.64.0.0/10"},
            "zones": ["us-west-2a", "us-west-2b", "us-west-2c"],
        }
        pools = [SYSTEM_POOL, NEURON_POOL | {"nodes": {"static": nodes}, "shards": shards}]

        scaling = planned(network=network, pools=pools)["coredns"].configuration["autoScaling"]

        assert scaling == {"enabled": True, "minReplicas": fewest, "maxReplicas": most}


class TestLargeClusters:
    """Settings above 1,000 nodes; smaller clusters have none of them."""

    @staticmethod
    def planned(nodes: int) -> dict[str, AddonPlan]:
        pool = NEURON_POOL | {"provisioner": "karpenter", "nodes": {"max": nodes}}
        cluster = make_cluster(karpenter={"version": "1.15.2"}, pools=[SYSTEM_POOL, pool])
        control_plane = assemble(cluster).control_plane
        every = (*control_plane.node_addons, *control_plane.workload_addons)
        return {addon.name: addon for addon in every}

    @pytest.mark.parametrize(("nodes", "mode"), [(900, None), (4_900, None), (5_001, "nftables")])
    def test_kube_proxy_looks_up_among_many_services(self, nodes: int, mode: str | None) -> None:
        assert self.planned(nodes)["kube-proxy"].configuration.get("mode") == mode

    @pytest.mark.parametrize(("nodes", "limit"), [(900, None), (1_001, "1Gi"), (30_000, "4Gi")])
    def test_controllers_that_follow_every_node_have_room_for_them(
        self, nodes: int, limit: str | None
    ) -> None:
        controller = self.planned(nodes)["aws-ebs-csi-driver"].configuration["controller"]
        resources = cast("dict[str, Any]", controller).get("resources")

        assert (resources and resources["limits"]["memory"]) == limit

    def test_coredns_has_room_and_goes_slowly(self) -> None:
        small, large = (self.planned(nodes)["coredns"].configuration for nodes in (900, 30_000))

        assert {"corefile", "resources"}.isdisjoint(small)
        assert "lameduck 30s" in str(large["corefile"])
        assert cast("dict[str, Any]", large["resources"])["limits"] == {"memory": "4Gi"}


class TestVersionsOfTheFile:
    """`kubernetes.addons`: the way out where no source states a version, or ours is too old."""

    def test_it_takes_the_place_of_the_pin(self) -> None:
        own = {"coredns": "v1.13.9-eksbuild.9", "vpc-cni": "v1.18.5-eksbuild.1"}
        plans = planned(kubernetes={"addons": own})
        assert {name: plans[name].version for name in own} == own
        assert plans["kube-proxy"].version == addons.version("kube-proxy", "1.35").version

    def test_an_addon_without_a_pin_names_the_key_that_helps(self) -> None:
        observability = {"hyperpod_addon": True}
        lines = mistakes(pools=[SYSTEM_POOL, HYPERPOD_POOL], observability=observability)

        assert any(
            f"set kubernetes.addons.{addons.HYPERPOD_OBSERVABILITY} to" in line for line in lines
        )

    def test_a_cni_that_fails_on_efa_only_interfaces_is_refused(self) -> None:
        (line,) = mistakes(kubernetes={"addons": {"vpc-cni": "v1.18.4-eksbuild.1"}})
        assert line.startswith("kubernetes.addons.vpc-cni: ")
        assert "vpc-cni must be v1.18.5 or later, got 'v1.18.4-eksbuild.1'" in line

    @pytest.mark.parametrize("name", ["metrics-server", "aws-fsx-csi-driver"])
    def test_a_version_of_an_addon_that_is_not_installed_is_refused(self, name: str) -> None:
        (line,) = mistakes(kubernetes={"addons": {name: "v1.9.0-eksbuild.1"}})

        assert line.startswith(f"kubernetes.addons.{name}: ")


def test_in_a_vpc_of_others_the_cni_stays_off_subnets_of_neighbours() -> None:
    """It would take addresses of every subnet with a certain tag."""
    own = planned()["vpc-cni"].configuration
    (cni,) = (
        each.configuration
        for each in foreign_addons(config.Kubernetes())[0]
        if each.name == "vpc-cni"
    )

    known = cast("Mapping[str, str]", own["env"])
    assert cni == {**own, "env": {**known, "ENABLE_SUBNET_DISCOVERY": "false"}}
