"""vc-scheduler, Volcano's scheduler."""

from collections.abc import Iterator

from constructs import Construct

from ultrascale.parts.volcano.facts import NAMESPACE
from ultrascale.parts.volcano.model import NodeScoringPlan, Plan, VolcanoScale
from ultrascale_k8s._api_objects import define_object
from ultrascale_k8s._typed_pods import planned_resources
from ultrascale_k8s.objects import config_map, name_of
from ultrascale_k8s.upstream import upstream_rules
from ultrascale_k8s.volcano.configuration import (
    SCHEDULER_CONFIGURATION_KEY,
    scheduler_configuration,
)
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

SCHEDULER = "volcano-scheduler"
_CONFIG_MAP = "volcano-scheduler-configmap"
_CONFIG_PATH = "/volcano.scheduler"
_METRICS_PORT = 8080
# Source: https://github.com/volcano-sh/volcano/blob/v1.15.1/cmd/scheduler/app/options/options.go
_ARGS = (
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
    # finished before the note, and is then waited for until the time limit. Source:
    # https://github.com/volcano-sh/volcano/blob/v1.15.1/pkg/scheduler/cache/event_handlers.go
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
            args=(*_ARGS, *_sized_args(plan.scale), *_scoring_args(plan.scoring)),
            resources=planned_resources(plan.scale.scheduler),
            ports={"metrics": _METRICS_PORT},
            probes=health_probes(),
            mounts={_CONFIG_PATH: config_map_volume(name_of(config))},
        ),
    )
    define_metrics_service(scope, program=SCHEDULER, port=_METRICS_PORT)


def _sized_args(scale: VolcanoScale) -> Iterator[str]:
    yield f"--resource-sync-timeout={scale.sync_seconds}s"
    yield f"-v={scale.log_level}"


def _scoring_args(scoring: NodeScoringPlan) -> Iterator[str]:
    if scoring.percent is not None:
        yield f"--percentage-nodes-to-find={scoring.percent}"
    if scoring.least is not None:
        yield f"--minimum-feasible-nodes={scoring.least}"
