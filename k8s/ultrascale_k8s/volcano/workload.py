"""Deployments of Volcano's programs: two replicas or more, hardened, on the system pool."""

from collections.abc import Iterable, Mapping, Sequence

from cdk8s_plus_27 import k8s as kube
from constructs import Construct
from msgspec import field

from ultrascale.documents import Json, JsonObject
from ultrascale.frozen import Frozen
from ultrascale.parts.volcano.facts import NAMESPACE
from ultrascale_k8s._platform_chart import define_objects
from ultrascale_k8s._pods import REVISIONS, SYSTEM_CLUSTER_CRITICAL, budget, scraped, service
from ultrascale_k8s._rbac import account_with_rules, rule
from ultrascale_k8s._typed_pods import (
    keep_apart,
    metadata,
    restricted_container,
    restricted_pod,
    selector,
    system_affinity,
    tolerations,
)
from ultrascale_k8s.namespaces import program_policy
from ultrascale_k8s.objects import labels as labels_of

# Upstream's images run as root unless told otherwise; its chart runs them as this user.
USER = 1000
_TMP = "tmp"
# Shared by all three programs.
HEALTH_PORT = 11251
# Name of the file with upstream's rules.
ROLES = "volcano-roles"
# Rule that allows a program to hold its Lease in Volcano's own namespace.
LEASE_RULE = rule("leases", group="coordination.k8s.io", verbs=("get", "create", "update", "watch"))


class Probes(Frozen):
    """The kubelet's probes of a program."""

    liveness: kube.Probe  # Restarts it
    readiness: kube.Probe  # Takes it out of its Service
    startup: kube.Probe | None = None  # Holds the other two back until it succeeds once


class Program(Frozen):
    """One of Volcano's three programs."""

    name: str  # Name of its Deployment, service account and disruption budget
    image: str  # Image reference, pinned
    args: tuple[str, ...]  # Its command line
    resources: kube.ResourceRequirements  # What its container requests and may use
    ports: Mapping[str, int]  # What it listens on, by port name; the health port is added
    probes: Probes  # How it is watched
    mounts: Mapping[str, kube.Volume]  # Volumes that it reads, by the path where it finds them
    env: Mapping[str, str] = field(default_factory=dict[str, str])  # Environment variables
    pre_stop: tuple[str, ...] = ()  # Command to run before it is asked to stop
    replicas: int = 2  # Its pods; where one of them leads, the other stands by


def health_probes() -> Probes:
    """Return probes of the health port, which a standby replica answers as well as the leader."""
    port = kube.IntOrString.from_number(HEALTH_PORT)
    healthz = kube.HttpGetAction(path="/healthz", port=port)
    return Probes(
        # A scheduler that is busy with a large gang answers late, and must not be killed for it.
        liveness=kube.Probe(
            http_get=healthz, initial_delay_seconds=15, timeout_seconds=5, failure_threshold=6
        ),
        readiness=kube.Probe(http_get=healthz, timeout_seconds=5),
    )


def define_account(
    scope: Construct, name: str, *, rules: Iterable[Json] = (), own_rules: Iterable[Json] = ()
) -> None:
    """Define the service account ``name`` with its rights.

    Args:
        scope: The chart.
        name: Name of the account, and of its roles and bindings.
        rules: Rights in every namespace.
        own_rules: Rights in Volcano's own namespace.
    """
    account = account_with_rules(name, cluster=rules, own=own_rules, namespace=NAMESPACE)
    define_objects(scope, account)


def define_program(scope: Construct, program: Program) -> None:
    """Define the Deployment of ``program`` and its disruption budget."""
    one = kube.IntOrString.from_number(1)
    none = kube.IntOrString.from_number(0)
    kube.KubeDeployment(
        scope,
        program.name,
        metadata=metadata(program.name, namespace=NAMESPACE),
        spec=kube.DeploymentSpec(
            replicas=program.replicas,
            revision_history_limit=REVISIONS,
            selector=selector(program.name),
            strategy=kube.DeploymentStrategy(
                type="RollingUpdate",
                rolling_update=kube.RollingUpdateDeployment(max_surge=one, max_unavailable=none),
            ),
            template=kube.PodTemplateSpec(
                metadata=kube.ObjectMeta(labels=labels_of(program.name)), spec=_program_pod(program)
            ),
        ),
    )
    define_objects(scope, [budget(program.name, NAMESPACE)])


def define_service(
    scope: Construct,
    name: str,
    program: str,
    port: JsonObject,
    *,
    served: int,
    annotations: Mapping[str, str] | None = None,
) -> None:
    """Define the Service ``name`` of ``program``, and the policy that lets everything reach it.

    Args:
        scope: The chart.
        name: Name of the Service.
        program: Name of the program.
        port: Port of the Service.
        served: Port that the program listens on.
        annotations: Annotations of the Service.
    """
    policy = program_policy(program, NAMESPACE, [served])
    own = service(name, program, port, namespace=NAMESPACE, annotations=annotations)
    define_objects(scope, [own, policy])


def define_metrics_service(scope: Construct, *, program: str, port: int) -> None:
    """Define the Service through which Prometheus scrapes ``program`` on ``port``."""
    define_service(
        scope,
        f"{program}-service",
        program,
        {"name": "metrics", "port": port, "targetPort": "metrics"},
        served=port,
        annotations={**scraped(port), "prometheus.io/path": "/metrics"},
    )


def config_map_volume(name: str) -> kube.Volume:
    """Return a volume with the files of the ConfigMap ``name``."""
    return kube.Volume(name="config", config_map=kube.ConfigMapVolumeSource(name=name))


def hardened_pod(
    container: kube.Container,
    *,
    account: str,
    volumes: Sequence[kube.Volume] = (),
    spread: Sequence[kube.TopologySpreadConstraint] = (),
    restart_policy: str | None = None,
) -> kube.PodSpec:
    """Return the pod of ``container``: on the system pool, not as root, with a temporary `/tmp`.

    Args:
        container: The only container, already hardened.
        account: Service account whose token the pod gets.
        volumes: Volumes beside the temporary one.
        spread: Constraints that spread the replicas.
        restart_policy: Restart policy; by default Kubernetes' own.
    """
    return kube.PodSpec(
        service_account_name=account,
        automount_service_account_token=True,
        enable_service_links=False,
        priority_class_name=SYSTEM_CLUSTER_CRITICAL,
        restart_policy=restart_policy,
        affinity=system_affinity(),
        tolerations=tolerations(),
        topology_spread_constraints=list(spread) or None,
        security_context=restricted_pod(USER),
        containers=[container],
        volumes=[*volumes, kube.Volume(name=_TMP, empty_dir=kube.EmptyDirVolumeSource())],
    )


def tmp_mount() -> kube.VolumeMount:
    """Return the mount of `/tmp`, where the programs keep a log-level socket and cache dumps."""
    return kube.VolumeMount(name=_TMP, mount_path="/tmp")


def _program_pod(program: Program) -> kube.PodSpec:
    ports = {**program.ports, "health": HEALTH_PORT}
    volumes = {volume.name: volume for volume in program.mounts.values()}
    lifecycle = kube.Lifecycle(
        pre_stop=kube.LifecycleHandler(exec=kube.ExecAction(command=list(program.pre_stop)))
    )
    container = kube.Container(
        name=program.name,
        image=program.image,
        image_pull_policy="IfNotPresent",
        args=list(program.args),
        env=[kube.EnvVar(name=name, value=value) for name, value in program.env.items()] or None,
        ports=[kube.ContainerPort(name=name, container_port=port) for name, port in ports.items()],
        startup_probe=program.probes.startup,
        liveness_probe=program.probes.liveness,
        readiness_probe=program.probes.readiness,
        lifecycle=lifecycle if program.pre_stop else None,
        resources=program.resources,
        security_context=restricted_container(),
        volume_mounts=[
            *(
                kube.VolumeMount(name=volume.name, mount_path=path, read_only=True)
                for path, volume in program.mounts.items()
            ),
            tmp_mount(),
        ],
    )
    return hardened_pod(
        container,
        account=program.name,
        volumes=list(volumes.values()),
        spread=keep_apart(program.name),
    )
