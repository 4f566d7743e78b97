"""The scheduler: vc-scheduler."""

from cdk8s_plus_27 import k8s as kube
from constructs import Construct

from k8s._pods import metadata, resources
from k8s.volcano.configuration import SCHEDULER_CONFIGURATION_KEY, scheduler_configuration
from k8s.volcano.network_policy import define_metrics_policy
from k8s.volcano.rbac import define_service_account, leader_election_rules, scheduler_rules
from k8s.volcano.workload import (
    Program,
    config_map_volume,
    define_metrics_service,
    define_program,
    health_probes,
)
from ultrascale.plan.model import VolcanoPlan
from ultrascale.plan.names import VOLCANO_NAMESPACE

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
    f"--leader-elect-resource-namespace={VOLCANO_NAMESPACE}",
    "--kube-api-qps=2000",
    "--kube-api-burst=2000",
    "--schedule-period=1s",
    "--node-worker-threads=20",
    "-v=3",
)


def define_scheduler(scope: Construct, plan: VolcanoPlan) -> None:
    """Define the scheduler, its configuration, its rights and its metrics Service."""
    define_service_account(
        scope, name=SCHEDULER, cluster=scheduler_rules(), namespaced=leader_election_rules()
    )
    kube.KubeConfigMap(
        scope,
        _CONFIG_MAP,
        metadata=metadata(_CONFIG_MAP, namespace=VOLCANO_NAMESPACE, component=SCHEDULER),
        data={SCHEDULER_CONFIGURATION_KEY: scheduler_configuration(plan)},
    )
    define_program(
        scope,
        Program(
            name=SCHEDULER,
            image=plan.scheduler_image,
            args=_ARGS,
            # It holds every node and pod of the cluster in memory: kube-scheduler took 2 GiB for
            # 100,000 nodes, and Volcano copies its cache for each session.
            resources=resources(cpu="500m", memory="1Gi", memory_limit="16Gi"),
            ports={"metrics": _METRICS_PORT},
            probes=health_probes(),
            mounts={_CONFIG_PATH: config_map_volume(_CONFIG_MAP)},
        ),
    )
    define_metrics_service(scope, program=SCHEDULER, port=_METRICS_PORT)
    define_metrics_policy(scope, program=SCHEDULER, port=_METRICS_PORT)
