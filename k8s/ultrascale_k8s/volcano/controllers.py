"""vc-controller-manager, Volcano's controllers of Job, Queue, PodGroup, HyperNode and others."""

from cdk8s_plus_27 import k8s as kube
from constructs import Construct

from ultrascale.parts.volcano.facts import NAMESPACE
from ultrascale.parts.volcano.model import Plan, VolcanoScale
from ultrascale_k8s._rbac import rule
from ultrascale_k8s._typed_pods import metadata, planned_resources
from ultrascale_k8s.upstream import upstream_rules
from ultrascale_k8s.volcano.configuration import (
    CONTROLLER_CONFIG_MAP,
    CONTROLLER_CONFIGURATION_KEY,
    controller_configuration,
)
from ultrascale_k8s.volcano.workload import (
    LEASE_RULE,
    ROLES,
    Program,
    define_account,
    define_metrics_service,
    define_program,
    health_probes,
)

CONTROLLERS = "volcano-controllers"
_METRICS_PORT = 8081
# Source: https://github.com/volcano-sh/volcano/blob/v1.15.1/cmd/controller-manager/app/options/options.go
_ARGS = (
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
            ports={"metrics": _METRICS_PORT},
            probes=health_probes(),
            # No volume: the controllers read their ConfigMap through the API, and find it by these
            # two variables.
            mounts={},
            env={"KUBE_POD_NAMESPACE": NAMESPACE, "HELM_RELEASE_NAME": "volcano"},
        ),
    )
    define_metrics_service(scope, program=CONTROLLERS, port=_METRICS_PORT)


def _arguments(scale: VolcanoScale) -> tuple[str, ...]:
    return (
        *_ARGS,
        f"--kube-api-qps={scale.client_qps}",
        f"--kube-api-burst={scale.client_burst}",
        f"--worker-threads={scale.workers}",
        f"--worker-threads-for-podgroup={scale.workers}",
    )
