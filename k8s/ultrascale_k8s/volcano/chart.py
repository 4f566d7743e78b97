"""Volcano: its kinds, and its three programs in one chart, with their configuration."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

import cdk8s
from cdk8s_plus_27 import k8s as kube
from constructs import Construct

from ultrascale import yaml_writer
from ultrascale.documents import Json, JsonObject, mapping
from ultrascale.parts.volcano.facts import NAMESPACE
from ultrascale.parts.volcano.model import NodeScoringPlan, Plan, VolcanoScale
from ultrascale.plan.names import HOSTNAME_LABEL, network_layer_label
from ultrascale_k8s._platform_chart import define_object, define_objects
from ultrascale_k8s._rbac import rule
from ultrascale_k8s._typed_pods import metadata, planned_resources
from ultrascale_k8s.objects import config_map, name_of
from ultrascale_k8s.upstream import upstream_objects, upstream_rules
from ultrascale_k8s.volcano.admission import define_admission
from ultrascale_k8s.volcano.workload import (
    LEASE_RULE,
    ROLES,
    Program,
    config_map_volume,
    define_account,
    define_metrics_service,
    define_program,
    health_probes,
)

# --- Configuration of Volcano's scheduler and controllers, in ConfigMaps --------------------------
# The controllers watch their ConfigMap and apply a change without a restart; a changed
# configuration of the scheduler makes new pods of the scheduler.


SCHEDULER_CONFIGURATION_KEY = "volcano-scheduler.conf"
# The controllers look their ConfigMap up by these names.
# Source: https://github.com/volcano-sh/volcano/blob/v1.15.1/pkg/controllers/hypernode/config/loader.go
CONTROLLER_CONFIG_MAP = "volcano-controller-configmap"
CONTROLLER_CONFIGURATION_KEY = "volcano-controller.conf"

# `preempt` and `reclaim` are no default actions of upstream; without them neither a job's priority
# nor a queue's `reclaimable` has an effect while other jobs run.
_ACTIONS = ("reclaim", "allocate", "backfill", "preempt")
_BINPACK_WEIGHT = 10
_ACCELERATOR_WEIGHT = 10
_TOPOLOGY_WEIGHT = 10
_TOPOLOGY_ACCELERATOR_WEIGHT = 2

_Plugin = dict[str, Json]


def scheduler_configuration(plan: Plan) -> str:
    """Return ``volcano-scheduler.conf`` in YAML.

    Queues share by weight, so the `proportion` plugin serves them, which also respects a queue's
    `capability`; the plugin `capacity` excludes it and needs absolute shares, which no queue has.

    Source: https://volcano.sh/en/docs/schduler_introduction/
    """
    actions = ("enqueue", *_ACTIONS) if plan.enqueue else _ACTIONS
    configuration = {
        "actions": ", ".join(actions),
        "tiers": [{"plugins": _first_tier(plan)}, {"plugins": _second_tier(plan)}],
    }
    return _to_yaml(configuration)


def controller_configuration(plan: Plan) -> str:
    """Return ``volcano-controller.conf`` in YAML.

    Labels are sorted from the broadest to the narrowest. The last label names the node itself, and
    the label before it becomes tier 1. The name of a topology type has at most 20 characters. There
    is no interval: the source `label` looks again only when a node's labels change.

    Source: https://github.com/volcano-sh/volcano/blob/v1.15.1/pkg/controllers/hypernode/discovery/label/label.go
    """
    if not plan.topology_aware:
        return _to_yaml({"networkTopologyDiscovery": []})
    layers = range(1, plan.topology_layers + 1)
    labels = [*map(network_layer_label, layers), HOSTNAME_LABEL]
    types = {f"aws{plan.topology_layers}": [{"nodeLabel": label} for label in labels]}
    source = {
        "source": "label",
        "enabled": True,
        "config": {"networkTopologyTypes": types},
    }
    return _to_yaml({"networkTopologyDiscovery": [source]})


def _first_tier(plan: Plan) -> list[_Plugin]:
    """Return the plugins that are asked first, and whose answers are combined.

    The action `reclaim` stops at the first tier with victims, and `conformance` always has some: in
    a later tier `proportion` would protect no queue that is within its share. A gang leaves its
    queue likewise once a tier agrees.

    Source: https://github.com/volcano-sh/volcano/issues/5896
    """
    plugins: list[_Plugin] = [
        {"name": "priority"},
        _not_preempting("gang"),
        {"name": "conformance"},
    ]
    if plan.enqueue:
        # Judges whether a gang may leave the queue; only the action `enqueue` asks it.
        plugins.append({"name": "overcommit"})
    return [*plugins, {"name": "proportion"}]


def _second_tier(plan: Plan) -> list[_Plugin]:
    plugins: list[_Plugin] = [_not_preempting("drf"), {"name": "predicates"}]
    plugins.append(_nodeorder(plan.scoring.left_out))
    plugins.append(_binpack(plan.accelerator_resources))
    if plan.topology_aware:
        plugins.append(_network_topology_aware(plan.accelerator_resources))
    return plugins


def _not_preempting(name: str) -> _Plugin:
    # As in upstream: priority chooses a victim; neither its gang nor its share protects it.
    return {"name": name, "enablePreemptable": False}


def _nodeorder(left_out: Sequence[str]) -> _Plugin:
    arguments: dict[str, Json] = {f"{score}.weight": 0 for score in left_out}
    return {"name": "nodeorder", "arguments": arguments}


def _binpack(resources: Sequence[str]) -> _Plugin:
    arguments: dict[str, Json] = {"binpack.weight": _BINPACK_WEIGHT}
    if resources:
        arguments |= _weights("binpack.resources", resources, _ACCELERATOR_WEIGHT)
    return {"name": "binpack", "arguments": arguments}


def _network_topology_aware(resources: Sequence[str]) -> _Plugin:
    arguments: dict[str, Json] = {"weight": _TOPOLOGY_WEIGHT}
    if resources:
        prefix = "hypernode.binpack.resources"
        arguments |= _weights(prefix, resources, _TOPOLOGY_ACCELERATOR_WEIGHT)
    return {"name": "network-topology-aware", "arguments": arguments}


def _weights(prefix: str, resources: Sequence[str], weight: int) -> dict[str, Json]:
    names = sorted(resources)
    return {prefix: ", ".join(names), **{f"{prefix}.{name}": weight for name in names}}


def _to_yaml(value: object) -> str:
    return yaml_writer.dump(value)


# --- vc-scheduler, Volcano's scheduler ------------------------------------------------------------


SCHEDULER = "volcano-scheduler"
_CONFIG_MAP = "volcano-scheduler-configmap"
_CONFIG_PATH = "/volcano.scheduler"
_SCHEDULER_PORT = 8080
# Source: https://github.com/volcano-sh/volcano/blob/v1.15.1/cmd/scheduler/app/options/options.go
_SCHEDULER_ARGS = (
    f"--scheduler-conf={_CONFIG_PATH}/{SCHEDULER_CONFIGURATION_KEY}",
    "--scheduler-name=volcano",
    "--enable-healthz=true",
    "--enable-metrics=true",
    "--leader-elect=true",
    f"--leader-elect-resource-namespace={NAMESPACE}",
    "--kube-api-qps=2000",
    "--kube-api-burst=2000",
    "--schedule-period=1s",
    # The result of each worker is stored under a lock, so more workers gain nothing. A node is
    # queued before it is noted as one to wait for: with more workers, it is likelier that a node is
    # finished before the note, and is then waited for until the time limit.
    # Source: https://github.com/volcano-sh/volcano/blob/v1.15.1/pkg/scheduler/cache/event_handlers.go
    "--node-worker-threads=4",
)


def define_scheduler(scope: Construct, plan: Plan) -> None:
    """Define the scheduler, its configuration, its rights and its metrics Service."""
    define_account(scope, SCHEDULER, rules=upstream_rules(ROLES, SCHEDULER), own_rules=[LEASE_RULE])
    config = config_map(
        _CONFIG_MAP,
        namespace=NAMESPACE,
        component=SCHEDULER,
        data={SCHEDULER_CONFIGURATION_KEY: scheduler_configuration(plan)},
    )
    define_object(scope, _CONFIG_MAP, config)
    define_program(
        scope,
        Program(
            name=SCHEDULER,
            image=plan.scheduler_image,
            args=(*_SCHEDULER_ARGS, *_sized_args(plan.scale), *_scoring_args(plan.scoring)),
            resources=planned_resources(plan.scale.scheduler),
            ports={"metrics": _SCHEDULER_PORT},
            probes=health_probes(),
            mounts={_CONFIG_PATH: config_map_volume(name_of(config))},
        ),
    )
    define_metrics_service(scope, program=SCHEDULER, port=_SCHEDULER_PORT)


def _sized_args(scale: VolcanoScale) -> Iterator[str]:
    yield f"--resource-sync-timeout={scale.sync_seconds}s"
    yield f"-v={scale.log_level}"


def _scoring_args(scoring: NodeScoringPlan) -> Iterator[str]:
    if scoring.percent is not None:
        yield f"--percentage-nodes-to-find={scoring.percent}"
    if scoring.least is not None:
        yield f"--minimum-feasible-nodes={scoring.least}"


# --- vc-controller-manager, Volcano's controllers of Job, Queue, PodGroup, HyperNode and others


CONTROLLERS = "volcano-controllers"
_CONTROLLERS_PORT = 8081
# Source: https://github.com/volcano-sh/volcano/blob/v1.15.1/cmd/controller-manager/app/options/options.go
_CONTROLLERS_ARGS = (
    "--enable-healthz=true",
    "--enable-metrics=true",
    "--leader-elect=true",
    f"--leader-elect-resource-namespace={NAMESPACE}",
    "--worker-threads-for-gc=5",
    "-v=3",
)


def define_controllers(scope: Construct, plan: Plan) -> None:
    """Define the controllers, their configuration, their rights and their metrics Service."""
    # Upstream's role means the finalizers of JobFlows, but names those of Jobs in JobFlow's API
    # group.
    finalizers = rule("jobflows/finalizers", group="flow.volcano.sh", verbs=("update", "patch"))
    rules = [*upstream_rules(ROLES, CONTROLLERS), finalizers]
    define_account(scope, CONTROLLERS, rules=rules, own_rules=[LEASE_RULE])
    # Not immutable: the controllers look the ConfigMap up by name, and watch it.
    kube.KubeConfigMap(
        scope,
        CONTROLLER_CONFIG_MAP,
        metadata=metadata(CONTROLLER_CONFIG_MAP, namespace=NAMESPACE, component=CONTROLLERS),
        data={CONTROLLER_CONFIGURATION_KEY: controller_configuration(plan)},
    )
    define_program(
        scope,
        Program(
            name=CONTROLLERS,
            image=plan.controllers_image,
            args=_arguments(plan.scale),
            resources=planned_resources(plan.scale.controllers),
            ports={"metrics": _CONTROLLERS_PORT},
            probes=health_probes(),
            # No volume: the controllers read their ConfigMap through the API, and find it by these
            # two variables.
            mounts={},
            env={"KUBE_POD_NAMESPACE": NAMESPACE, "HELM_RELEASE_NAME": "volcano"},
        ),
    )
    define_metrics_service(scope, program=CONTROLLERS, port=_CONTROLLERS_PORT)


def _arguments(scale: VolcanoScale) -> tuple[str, ...]:
    return (
        *_CONTROLLERS_ARGS,
        f"--kube-api-qps={scale.client_qps}",
        f"--kube-api-burst={scale.client_burst}",
        f"--worker-threads={scale.workers}",
        f"--worker-threads-for-podgroup={scale.workers}",
    )


# --- Charts of Volcano: its kinds, and its three programs -----------------------------------------


# Upstream's CustomResourceDefinitions of eleven kinds are ten times as large; each travels whole in
# a manifest. So these keep every field that they do not name, and leave pod templates, volume
# claims and `status` to the kinds that own them; otherwise they serve the same API.

# Deleting a CRD deletes every object of its kind, so neither Helm nor Argo CD may delete it.
KEEP_ON_DELETE: Mapping[str, str] = MappingProxyType(
    {
        "helm.sh/resource-policy": "keep",
        "argocd.argoproj.io/sync-options": "Prune=false,Delete=false",
    }
)


def crds() -> Sequence[JsonObject]:
    """Return the CustomResourceDefinitions."""
    return [
        {**crd, "metadata": {**mapping(crd, "metadata"), "annotations": dict(KEEP_ON_DELETE)}}
        for crd in upstream_objects("volcano-crds").values()
    ]


class VolcanoCrdsChart(cdk8s.Chart):
    """Defines Volcano's CustomResourceDefinitions; applied before all other charts of Volcano."""

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id, disable_resource_name_hashes=True)
        define_objects(self, crds())


class VolcanoChart(cdk8s.Chart):
    """Defines Volcano's scheduler, controllers and webhook server in Volcano's own namespace.

    All three run on the system pool only: a webhook server that waited for capacity which Volcano
    schedules would refuse the very jobs that bring that capacity.
    """

    def __init__(self, scope: Construct, id: str, *, plan: Plan) -> None:
        super().__init__(scope, id, disable_resource_name_hashes=True)
        define_scheduler(self, plan)
        define_controllers(self, plan)
        define_admission(self, plan)
