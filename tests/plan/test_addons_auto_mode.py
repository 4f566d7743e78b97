"""EKS add-ons beside EKS Auto Mode and with NVIDIA GPUs."""

from typing import Any

import pytest

from tests.support.pools import LUSTRE as FILE_SYSTEM
from tests.support.pools import (
    NEURON_POOL,
    POOL,
    SYSTEM_POOL,
    as_text,
    loads_own,
    make_cluster,
    make_document,
)
from ultrascale.catalog import addons, auto_mode, eks
from ultrascale.errors import ConfigError
from ultrascale.plan import plan_cluster
from ultrascale.plan.model import AddonPlan

LUSTRE = {"lustre": [FILE_SYSTEM]}
AUTO_SYSTEM = SYSTEM_POOL | {"provisioner": "auto-mode", "nodes": {"max": 4}}
AUTO_POOL = POOL | {"name": "auto", "provisioner": "auto-mode"}
BESIDE_AUTO_MODE = [SYSTEM_POOL, NEURON_POOL, AUTO_POOL]


def planned(**changes: Any) -> dict[str, AddonPlan]:
    control_plane = plan_cluster(make_cluster(**changes)).control_plane
    every = (*control_plane.node_addons, *control_plane.workload_addons)
    return {addon.name: addon for addon in every}


def mistakes(**changes: Any) -> tuple[str, ...]:
    cluster = make_cluster(**changes)
    with pytest.raises(ConfigError) as caught:
        plan_cluster(cluster)
    return caught.value.mistakes


class TestAutoMode:
    """Its nodes bring along what add-ons give to the others."""

    def test_a_cluster_of_nothing_else_installs_none_but_the_driver_of_lustre(self) -> None:
        assert planned(pools=[AUTO_SYSTEM, AUTO_POOL]) == {}
        assert [*planned(pools=[AUTO_SYSTEM, AUTO_POOL], storage=LUSTRE)] == ["aws-fsx-csi-driver"]

    @pytest.mark.parametrize(
        "pools", [BESIDE_AUTO_MODE, [AUTO_SYSTEM, NEURON_POOL]], ids=["beside", "system"]
    )
    def test_nodes_beside_it_get_what_they_always_get(self, pools: list[Any]) -> None:
        assert planned(pools=pools).keys() == planned().keys()

    def test_nothing_but_what_it_brings_along_is_left_out(self) -> None:
        left_out = planned(storage=LUSTRE).keys() - {"aws-fsx-csi-driver"}

        assert left_out == auto_mode.BUILT_IN

    @pytest.mark.parametrize("name", sorted(auto_mode.BUILT_IN))
    def test_a_version_of_what_it_brings_along_is_refused(self, name: str) -> None:
        (line,) = mistakes(
            pools=[AUTO_SYSTEM, AUTO_POOL], kubernetes={"addons": {name: "v9.0.0-eksbuild.1"}}
        )

        assert line.startswith(f"kubernetes.addons.{name}: not installed in this cluster")

    @pytest.mark.parametrize("name", sorted(auto_mode.ADDON_FLOORS))
    def test_a_release_that_would_run_on_its_nodes_is_refused_beside_it(self, name: str) -> None:
        release = {"vpc-cni": "1.18.5", "eks-pod-identity-agent": "1.2.0"}.get(name, "1.36.0")
        own = {"addons": {name: f"v{release}-eksbuild.1"}}

        (line,) = mistakes(pools=BESIDE_AUTO_MODE, kubernetes=own)

        assert f"beside EKS Auto Mode the EKS add-on {name} must be v1." in line
        assert line.startswith(f"kubernetes.addons.{name}: ")
        assert planned(kubernetes=own)[name].version == own["addons"][name]

    @pytest.mark.parametrize("minor", eks.SUPPORTED_VERSIONS)
    def test_every_pin_keeps_off_its_nodes(self, minor: str) -> None:
        for name, floor in auto_mode.ADDON_FLOORS.items():
            assert addons.parse_release(addons.version(name, minor).version) >= floor

    @pytest.mark.parametrize("pools", [5, [{"name": "train"}]])
    def test_a_file_whose_pools_cannot_be_read_is_told_of_them_alone(self, pools: Any) -> None:
        own = {"addons": {"coredns": "v1.13.9-eksbuild.9"}}
        text = as_text(make_document(pools=pools, kubernetes=own))
        with pytest.raises(ConfigError) as caught:
            plan_cluster(loads_own(text))
        assert not [line for line in caught.value.mistakes if "kubernetes.addons" in line]


class TestNodeMonitoring:
    """A GPU whose DCGM server does not answer is found broken, and its node replaced."""

    AGENT = "eks-node-monitoring-agent"

    @pytest.mark.parametrize("provisioner", ["managed-node-group", "self-managed"])
    def test_the_dcgm_server_tolerates_the_taints_of_gpu_nodes(self, provisioner: str) -> None:
        pools = [SYSTEM_POOL, POOL | {"provisioner": provisioner}]

        settings = planned(pools=pools)[self.AGENT].configuration

        assert settings == {"dcgmAgent": {"tolerations": [{"operator": "Exists"}]}}

    @pytest.mark.parametrize("pools", [[SYSTEM_POOL, NEURON_POOL], BESIDE_AUTO_MODE])
    def test_it_is_as_eks_has_it_where_there_are_none(self, pools: list[Any]) -> None:
        assert planned(pools=pools)[self.AGENT].configuration == {}
