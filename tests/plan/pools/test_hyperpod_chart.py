"""AWS's HyperPod chart: what a HyperPod node lacks without it, and has twice with all of it."""

import re
from collections.abc import Mapping
from typing import Any, cast

import pytest

from tests.support.cases import for_each
from tests.support.plugin_placement import KEEPS_OFF
from tests.support.pools import HYPERPOD_POOL, make_cluster, make_pool
from ultrascale import catalog, config
from ultrascale.catalog import hyperpod
from ultrascale.parts.hyperpod import chart_facts as chart
from ultrascale.parts.hyperpod.chart import plan_hyperpod_chart
from ultrascale.parts.hyperpod.model import HyperPodChartPlan
from ultrascale.plan.model import PoolPlan
from ultrascale.plan.pools.pool import plan_pool

Values = Mapping[str, Any]

HYPERPOD = {key: HYPERPOD_POOL[key] for key in ("provisioner", "nodes")}
CHECKED: dict[str, Any] = HYPERPOD | {"deep_health_checks": True}
ACCELERATED = sorted(
    name
    for name, spec in catalog.INSTANCE_TYPES.items()
    if spec.hyperpod and spec.accelerator is not None
)
PLUGINS = ("nvidia-device-plugin", "neuron-device-plugin", "aws-efa-k8s-device-plugin")


def pool(instance_type: str = "p5.48xlarge", /, **changes: Any) -> PoolPlan:
    made = make_pool(instance_types=[instance_type], **changes)
    return plan_pool(made, kubernetes_version="1.35")


def plan(*pools: PoolPlan, region: str = "us-west-2") -> HyperPodChartPlan:
    found = plan_hyperpod_chart(region, pools)
    assert found is not None
    return found


def part(found: HyperPodChartPlan, name: str) -> Values:
    """Return the values of a part of the chart."""
    return cast("Values", found.values[name])


def types_of(found: HyperPodChartPlan, plugin: str) -> set[str]:
    """Return the instance types that a plugin of the chart runs on."""
    own = part(found, plugin)
    if not own["devicePlugin"]["enabled"]:
        return set()
    if plugin == "aws-efa-k8s-device-plugin":
        return set(own["supportedInstanceLabels"]["values"])
    if plugin == "neuron-device-plugin":
        return set(found.daemon_set_types[chart.NEURON_DAEMON_SET])
    required = own["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (term,) = required["nodeSelectorTerms"]
    (rule,) = term["matchExpressions"]
    assert (rule["key"], rule["operator"]) == ("node.kubernetes.io/instance-type", "In")
    return set(rule["values"])


class TestParts:
    """Helm takes a part without a value for turned on."""

    def test_every_part_of_the_chart_is_decided_on(self) -> None:
        decided = plan(pool(**HYPERPOD)).values.keys() - {"replicaCount"}

        assert decided == {*chart.ALWAYS_ON, *chart.ALWAYS_OFF, *PLUGINS}

    def test_what_hyperpod_and_its_jobs_need_is_on_and_nothing_else(self) -> None:
        found = plan(pool(**HYPERPOD), region="eu-west-1")
        on = {name for name in found.values if name not in (*PLUGINS, "replicaCount")}
        assert {name for name in on if part(found, name)["enabled"]} == {
            *("deep-health-check", "health-monitoring-agent", "hyperpod-patching"),
            *("job-auto-restart", "trainingOperators"),
        }
        # The placeholder of `helm create` runs nowhere, and controllers on system nodes.
        assert found.values["replicaCount"] == 0
        assert found.controller_node_selector == {"ultrascale.dev/role": "system"}
        # The agent's image comes from the cluster's own Region.
        assert part(found, "health-monitoring-agent")["region"] == "eu-west-1"

    def test_a_fetched_chart_does_not_change_without_the_users_consent(self) -> None:
        assert re.fullmatch(r"[0-9a-f]{40}", chart.COMMIT)
        for remote in chart.REMOTE_CHARTS:
            assert re.fullmatch(r"v?\d+\.\d+\.\d+", remote.version)
            assert remote.sha256 is None or re.fullmatch(r"[0-9a-f]{64}", remote.sha256)


class TestPlugins:
    """Two plugins of one device fight over it; without one nobody gets it."""

    @for_each(ACCELERATED)
    def test_a_hyperpod_node_gets_the_charts_plugins_of_its_devices(self, name: str) -> None:
        spec = catalog.lookup(name)
        assert spec.accelerator is not None
        kind = spec.accelerator.kind

        found = plan(pool(name, **HYPERPOD), pool("m7i.2xlarge", **HYPERPOD))

        own = {f"ml.{name}"}
        assert types_of(found, "nvidia-device-plugin") == (own if kind == "nvidia" else set())
        assert types_of(found, "neuron-device-plugin") == (own if kind == "neuron" else set())
        assert types_of(found, "aws-efa-k8s-device-plugin") == (own if spec.efa_cards else set())

    @pytest.mark.parametrize("name", ["p4de.24xlarge", "trn1.32xlarge"])
    def test_a_node_of_ec2_gets_none_of_the_charts(self, name: str) -> None:
        beside = pool(name)

        found = plan(pool(name, **HYPERPOD), beside)

        for plugin in PLUGINS:
            assert not types_of(found, plugin) & set(beside.node_types)

    def test_ours_keep_off_the_nodes_that_hyperpod_marks(self) -> None:
        marked = (hyperpod.COMPUTE_TYPE, "NotIn", [hyperpod.COMPUTE_TYPE_HYPERPOD])

        assert marked in [(each["key"], each["operator"], each["values"]) for each in KEEPS_OFF]

    def test_the_charts_plugins_tolerate_the_taints_of_hyperpod_pools(self) -> None:
        tainted = pool(**HYPERPOD)
        assert "dedicated" in plan(tainted).plugin_taints
        assert set(plan(tainted).plugin_taints) == {taint.key for taint in tainted.taints}
        # Taints of other pools do not concern them.
        assert plan(pool(**CHECKED), pool()).plugin_taints == ()


@pytest.mark.parametrize(
    ("region", "warned"), [("us-west-2", False), ("eu-north-1", False), ("eu-south-2", True)]
)
def test_a_region_without_a_known_agent_image_is_warned_of(region: str, warned: bool) -> None:
    cluster = make_cluster().model_copy(
        update={"region": region, "pools": (make_pool(**HYPERPOD),)}
    )

    found = [line for line in config.warnings(cluster) if "health-monitoring agent" in line]

    assert bool(found) is warned
