"""The AWS Node Termination Handler."""

from collections.abc import Mapping

import cdk8s
from cdk8s_plus_27 import k8s as kube
from constructs import Construct

from ultrascale.plan.model import TerminationHandlerPlan
from ultrascale.plan.names import SYSTEM_NAMESPACE, TERMINATION_HANDLER_ACCOUNT
from ultrascale_k8s._pods import (
    REVISIONS,
    SYSTEM_CLUSTER_CRITICAL,
    keep_apart,
    labels,
    metadata,
    resources,
    restricted_container,
    restricted_pod,
    selector,
    system_affinity,
    tolerations,
)
from ultrascale_k8s._rbac import bind_cluster_role, rule

_NAME = TERMINATION_HANDLER_ACCOUNT
_PORT = 8080
# As upstream's chart has it.
_USER = 1000
# What upstream's chart allows in queue mode, without the API groups of long ago.
# Source: https://github.com/aws/aws-node-termination-handler/tree/v1.25.6/config/helm/aws-node-termination-handler
_RULES = (
    rule("nodes", verbs=("get", "list", "patch", "update")),
    rule("pods", verbs=("get", "list")),
    rule("pods/eviction", verbs=("create",)),
    rule("events", verbs=("create", "patch")),
    rule("daemonsets", verbs=("get",), group="apps"),
)


class TerminationHandlerChart(cdk8s.Chart):
    """Defines the controller that drains nodes before EC2 takes them.

    Two of them read one queue. A message that one of them works on for longer than 20 s goes to
    the other as well; draining a node twice is draining it once.

    Source: https://github.com/aws/aws-node-termination-handler#single-instance-vs-multiple-replicas
    """

    def __init__(self, scope: Construct, id: str, *, plan: TerminationHandlerPlan) -> None:
        super().__init__(scope, id, disable_resource_name_hashes=True)
        kube.KubeServiceAccount(
            self, "Account", metadata=metadata(_NAME, namespace=SYSTEM_NAMESPACE)
        )
        kube.KubeClusterRole(self, "ClusterRole", metadata=metadata(_NAME), rules=list(_RULES))
        bind_cluster_role(self, "ClusterBinding", name=_NAME, role=_NAME, account=_NAME)
        kube.KubeDeployment(
            self,
            "Deployment",
            metadata=metadata(_NAME, namespace=SYSTEM_NAMESPACE),
            spec=kube.DeploymentSpec(
                revision_history_limit=REVISIONS,
                # A Spot Instance is gone two minutes after its notice: about as long as it takes
                # to start a pod elsewhere when its node goes.
                replicas=2,
                selector=selector(_NAME),
                template=kube.PodTemplateSpec(
                    metadata=kube.ObjectMeta(labels=labels(_NAME)), spec=_pod(plan)
                ),
            ),
        )
        kube.KubePodDisruptionBudget(
            self,
            "Budget",
            metadata=metadata(_NAME, namespace=SYSTEM_NAMESPACE),
            spec=kube.PodDisruptionBudgetSpec(
                max_unavailable=kube.IntOrString.from_number(1), selector=selector(_NAME)
            ),
        )


def handler_environment(plan: TerminationHandlerPlan) -> Mapping[str, str]:
    """Return the settings, as environment variables.

    Source: https://github.com/aws/aws-node-termination-handler/blob/v1.25.6/pkg/config/config.go
    """
    return {
        "AWS_REGION": plan.region,
        "ENABLE_SQS_TERMINATION_DRAINING": "true",
        "QUEUE_URL": plan.queue_url,
        # Events come from the whole account; instances without the tag are somebody else's.
        "CHECK_TAG_BEFORE_DRAINING": "true",
        "MANAGED_TAG": plan.managed_tag,
        # Both how long a drain may take and how long before an announced event it begins.
        "NODE_TERMINATION_GRACE_PERIOD": str(plan.drain_seconds),
        # Each pod takes the time that its own specification asks for.
        "POD_TERMINATION_GRACE_PERIOD": "-1",
        "WORKERS": str(plan.workers),
        # An instance whose node is gone, or never joined, has nothing to wait for.
        "DELETE_SQS_MSG_IF_NODE_NOT_FOUND": "true",
        "EMIT_KUBERNETES_EVENTS": "true",
        "ENABLE_PROBES_SERVER": "true",
        "PROBES_SERVER_PORT": str(_PORT),
        "PROBES_SERVER_ENDPOINT": "/healthz",
    }


def _pod(plan: TerminationHandlerPlan) -> kube.PodSpec:
    alive = kube.HttpGetAction(path="/healthz", port=kube.IntOrString.from_number(_PORT))
    container = kube.Container(
        name=_NAME,
        image=plan.image,
        env=[
            # By its own name it knows the one pod that it must not evict.
            _own("NODE_NAME", "spec.nodeName"),
            _own("POD_NAME", "metadata.name"),
            _own("NAMESPACE", "metadata.namespace"),
            *(
                kube.EnvVar(name=name, value=value)
                for name, value in handler_environment(plan).items()
            ),
        ],
        ports=[kube.ContainerPort(name="http", container_port=_PORT)],
        liveness_probe=kube.Probe(http_get=alive, period_seconds=10, failure_threshold=3),
        security_context=restricted_container(),
        resources=resources(cpu="50m", memory="64Mi", memory_limit="512Mi"),
    )
    return kube.PodSpec(
        service_account_name=_NAME,
        automount_service_account_token=True,
        priority_class_name=SYSTEM_CLUSTER_CRITICAL,
        affinity=system_affinity(),
        tolerations=tolerations(),
        topology_spread_constraints=keep_apart(_NAME),
        security_context=restricted_pod(_USER),
        containers=[container],
    )


def _own(name: str, path: str) -> kube.EnvVar:
    reference = kube.ObjectFieldSelector(field_path=path)
    return kube.EnvVar(name=name, value_from=kube.EnvVarSource(field_ref=reference))
