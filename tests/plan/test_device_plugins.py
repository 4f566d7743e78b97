"""A plugin without its devices crash-loops; devices without their plugin are invisible."""

from typing import Any

import pytest

from tests.support.pools import TRAINING_PLAN, make_cluster, make_pool
from ultrascale import catalog
from ultrascale.catalog import versions
from ultrascale.plan.model import DevicePluginPlan, PoolPlan
from ultrascale.plan.platform import (
    plan_dcgm_exporter,
    plan_efa_plugin,
    plan_neuron_monitor,
    plan_neuron_plugin,
    plan_neuron_scheduler,
    plan_nvidia_plugin,
)
from ultrascale.plan.pools.pool import plan_pool
from ultrascale.plan.scale import plan_scale

Changes = dict[str, Any]

GPU: Changes = {"instance_types": ["p5.48xlarge"]}
ARM_GPU: Changes = {"instance_types": ["g5g.16xlarge"]}
NEURON: Changes = {"instance_types": ["trn1.32xlarge"]}
CPU: Changes = {"instance_types": ["m7g.8xlarge"]}
AUTO_MODE: Changes = {"provisioner": "auto-mode"}
HYPERPOD: Changes = {"provisioner": "hyperpod", "purchase": TRAINING_PLAN, "nodes": {"static": 8}}


def pools(*changes: Changes) -> list[PoolPlan]:
    return [plan_pool(make_pool(**each), kubernetes_version="1.35") for each in changes]


def efa_plugin(*changes: Changes) -> DevicePluginPlan | None:
    return plan_efa_plugin(make_cluster(), pools(*changes))


class TestWhichNodes:
    """Exactly one plugin for each kind of device on each node."""

    @pytest.mark.parametrize("provisioner", ["managed-node-group", "self-managed", "karpenter"])
    def test_nodes_from_eks_amis_get_every_plugin_of_their_devices(self, provisioner: str) -> None:
        gpus, neuron = (each | {"provisioner": provisioner} for each in (GPU, NEURON))
        for plan in (plan_nvidia_plugin, plan_dcgm_exporter):
            assert plan(pools(gpus)) is not None
            assert plan(pools(neuron, CPU)) is None
        for plan in (plan_neuron_plugin, plan_neuron_monitor):
            assert plan(pools(neuron)) is not None
            assert plan(pools(gpus, CPU)) is None
        assert efa_plugin(gpus) is not None
        assert efa_plugin(neuron) is not None

    @pytest.mark.parametrize("on", [AUTO_MODE, HYPERPOD], ids=["Auto Mode", "HyperPod"])
    def test_nodes_that_bring_plugins_along_get_no_second_ones(self, on: Changes) -> None:
        for plan in (plan_nvidia_plugin, plan_dcgm_exporter):
            assert plan(pools(GPU | on)) is None
        for plan in (plan_neuron_plugin, plan_neuron_monitor):
            assert plan(pools(NEURON | on)) is None
        assert efa_plugin(GPU | on) is None

    def test_pools_that_bring_plugins_along_change_nothing_for_the_others(self) -> None:
        mixed = (GPU | AUTO_MODE, GPU)

        assert plan_nvidia_plugin(pools(*mixed)) == plan_nvidia_plugin(pools(GPU))
        assert plan_dcgm_exporter(pools(*mixed)) == plan_dcgm_exporter(pools(GPU))
        assert efa_plugin(*mixed) == efa_plugin(GPU)


class TestNvidia:
    """GPUs, and what they do."""

    def test_plugin_runs_on_the_nodes_that_our_pools_mark(self) -> None:
        plan = plan_nvidia_plugin(pools(GPU))

        assert plan is not None
        assert plan.node_selector == {"nvidia.com/gpu.present": "true"}
        assert plan.node_selector.items() <= pools(GPU)[0].labels.items()
        assert plan.taint_keys == ("nvidia.com/gpu",)

    def test_plugin_leaves_efas_devices_alone(self) -> None:
        tag = versions.image("nvidia-device-plugin").tag

        # 0.19.0 to 0.19.2 give them to every container with a GPU.
        assert tuple(int(part) for part in tag.removeprefix("v").split(".")) >= (0, 19, 3)

    def test_exporter_runs_where_the_monitoring_agent_runs_dcgm(self) -> None:
        plan = plan_dcgm_exporter(pools(GPU, ARM_GPU))
        assert plan is not None
        present = {"nvidia.com/gpu.present": "true", "kubernetes.io/arch": "amd64"}
        assert plan.node_selector == present
        assert plan_nvidia_plugin(pools(ARM_GPU)) is not None
        assert plan_dcgm_exporter(pools(ARM_GPU)) is None


class TestNeuron:
    """Neuron devices, whole and in parts."""

    def test_plugin_knows_every_neuron_type(self) -> None:
        plan = plan_neuron_plugin(pools(NEURON))
        assert plan is not None
        types = {
            spec.instance_type
            for spec in catalog.INSTANCE_TYPES.values()
            if spec.accelerator and spec.accelerator.kind == "neuron" and spec.announced
        }
        assert {*plan.instance_types} == types
        assert {"trn1.32xlarge", "trn2.48xlarge", "inf2.48xlarge"} <= types
        assert plan.taint_keys == ("aws.amazon.com/neuron",)

    def test_exporter_runs_on_the_nodes_of_the_plugin(self) -> None:
        exporter, plugin = plan_neuron_monitor(pools(NEURON)), plan_neuron_plugin(pools(NEURON))

        assert exporter is not None
        assert plugin is not None
        assert exporter.instance_types == plugin.instance_types
        assert exporter.taint_keys == plugin.taint_keys
        assert exporter.image == versions.image("neuron-monitor").reference

    @pytest.mark.parametrize("minor", ["1.35", "1.36"])
    def test_scheduler_is_of_the_clusters_own_minor_when_asked_for(self, minor: str) -> None:
        asked = {"neuron_scheduler_extension": True}
        cluster = make_cluster(kubernetes={"version": minor}, scheduling=asked)
        plan = plan_neuron_scheduler(cluster, plan_scale(cluster))
        assert plan is not None
        assert plan.scheduler_image == versions.kube_scheduler(minor).reference
        assert f":v{minor}." in plan.scheduler_image
        assert plan_neuron_scheduler(make_cluster(), plan_scale(make_cluster())) is None


class TestEfa:
    """EFA interfaces, whatever accelerator they serve."""

    @pytest.mark.parametrize(
        "changes",
        [
            {"efa": "none"},
            {"instance_types": ["g6.xlarge"]},
            {"instance_types": ["g6e.12xlarge"], "zones": ["us-west-2a", "us-west-2b"]},
        ],
        ids=["switched off", "no EFA", "several zones"],
    )
    def test_plugin_stays_away_where_no_node_has_efa(self, changes: Changes) -> None:
        assert efa_plugin(changes) is None

    def test_plugin_runs_on_nodes_with_efa_and_tolerates_the_taints_of_all(self) -> None:
        plan = efa_plugin(GPU, NEURON)
        assert plan is not None
        assert plan.node_selector == {"ultrascale.dev/efa": "true"}
        assert plan.instance_types == ()
        assert plan.taint_keys == ("aws.amazon.com/neuron", "nvidia.com/gpu")
        # Pulled from the registry of the Region.
        assert ".dkr.ecr.us-west-2.amazonaws.com/eks/aws-efa-k8s-device-plugin:v" in plan.image
