"""The controllers of Job, Queue, PodGroup, HyperNode and the rest: vc-controller-manager."""

from cdk8s_plus_27 import k8s as kube
from constructs import Construct

from k8s._pods import metadata, resources
from k8s.volcano.configuration import (
    CONTROLLER_CONFIG_MAP,
    CONTROLLER_CONFIGURATION_KEY,
    controller_configuration,
)
from k8s.volcano.network_policy import define_metrics_policy
from k8s.volcano.rbac import controllers_rules, define_service_account, leader_election_rules
from k8s.volcano.workload import (
    Program,
    define_metrics_service,
    define_program,
    health_probes,
)
from ultrascale.plan.model import VolcanoPlan
from ultrascale.plan.names import VOLCANO_NAMESPACE

CONTROLLERS = "volcano-controllers"
_METRICS_PORT = 8081
# The request rate and the workers are ten and three times upstream's, which is made for small
# clusters: a gang of a thousand pods is a thousand requests.
# Source: https://github.com/volcano-sh/volcano/blob/v1.15.1/cmd/controller-manager/app/options/options.go
_ARGS = (
    "--enable-healthz=true",
    "--enable-metrics=true",
    "--leader-elect=true",
    f"--leader-elect-resource-namespace={VOLCANO_NAMESPACE}",
    "--kube-api-qps=500",
    "--kube-api-burst=1000",
    "--worker-threads=10",
    "--worker-threads-for-gc=5",
    "--worker-threads-for-podgroup=10",
    "-v=3",
)


def define_controllers(scope: Construct, plan: VolcanoPlan) -> None:
    """Define the controllers, their configuration, their rights and their metrics Service."""
    define_service_account(
        scope, name=CONTROLLERS, cluster=controllers_rules(), namespaced=leader_election_rules()
    )
    kube.KubeConfigMap(
        scope,
        CONTROLLER_CONFIG_MAP,
        metadata=metadata(
            CONTROLLER_CONFIG_MAP, namespace=VOLCANO_NAMESPACE, component=CONTROLLERS
        ),
        data={CONTROLLER_CONFIGURATION_KEY: controller_configuration(plan)},
    )
    define_program(
        scope,
        Program(
            name=CONTROLLERS,
            image=plan.controllers_image,
            args=_ARGS,
            resources=resources(cpu="250m", memory="512Mi", memory_limit="8Gi"),
            ports={"metrics": _METRICS_PORT},
            probes=health_probes(),
            # No volume: they read their ConfigMap through the API, and find it by these two.
            mounts={},
            env={"KUBE_POD_NAMESPACE": VOLCANO_NAMESPACE, "HELM_RELEASE_NAME": "volcano"},
        ),
    )
    define_metrics_service(scope, program=CONTROLLERS, port=_METRICS_PORT)
    define_metrics_policy(scope, program=CONTROLLERS, port=_METRICS_PORT)
