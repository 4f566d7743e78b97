"""Deployments of Volcano's programs: at least two replicas, hardened, on the system pool."""

from collections.abc import Mapping, Sequence

from cdk8s_plus_27 import k8s as kube
from constructs import Construct
from msgspec import field

from ultrascale.frozen import Frozen
from ultrascale.plan.names import VOLCANO_NAMESPACE
from ultrascale_k8s._pods import (
    NAME_LABEL,
    REVISIONS,
    SYSTEM_CLUSTER_CRITICAL,
    keep_apart,
    metadata,
    restricted_container,
    restricted_pod,
    selector,
    system_affinity,
    tolerations,
)
from ultrascale_k8s._pods import labels as labels_of

# Upstream's images run as root unless told otherwise; its chart runs them as this user.
USER = 1000
_TMP = "tmp"
# Of all three programs alike.
HEALTH_PORT = 11251


class Probes(Frozen):
    """Probes by which the kubelet judges a program."""

    liveness: kube.Probe  # Restarts it
    readiness: kube.Probe  # Takes it out of its Service
    startup: kube.Probe | None = None  # Holds the other two back until it succeeds once


class Program(Frozen):
    """One of Volcano's programs."""

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
    """Ask the health port, which a standby replica answers as well as the leader."""
    port = kube.IntOrString.from_number(HEALTH_PORT)
    healthz = kube.HttpGetAction(path="/healthz", port=port)
    return Probes(
        # A scheduler that is busy with a large gang answers late, and is not to be killed for it.
        liveness=kube.Probe(
            http_get=healthz, initial_delay_seconds=15, timeout_seconds=5, failure_threshold=6
        ),
        readiness=kube.Probe(http_get=healthz, timeout_seconds=5),
    )


def define_program(scope: Construct, program: Program) -> None:
    """Define the Deployment of ``program`` and its disruption budget."""
    own = metadata(program.name, namespace=VOLCANO_NAMESPACE)
    one = kube.IntOrString.from_number(1)
    none = kube.IntOrString.from_number(0)
    kube.KubeDeployment(
        scope,
        program.name,
        metadata=own,
        spec=kube.DeploymentSpec(
            replicas=program.replicas,
            revision_history_limit=REVISIONS,
            selector=selector(program.name),
            strategy=kube.DeploymentStrategy(
                type="RollingUpdate",
                rolling_update=kube.RollingUpdateDeployment(max_surge=one, max_unavailable=none),
            ),
            template=kube.PodTemplateSpec(
                metadata=kube.ObjectMeta(labels=labels_of(program.name)), spec=_pod(program)
            ),
        ),
    )
    kube.KubePodDisruptionBudget(
        scope,
        f"{program.name}-budget",
        metadata=own,
        spec=kube.PodDisruptionBudgetSpec(max_unavailable=one, selector=selector(program.name)),
    )


def define_service(
    scope: Construct,
    *,
    name: str,
    program: str,
    port: kube.ServicePort,
    annotations: Mapping[str, str] | None = None,
) -> None:
    """Define the Service ``name`` in front of the pods of ``program``."""
    kube.KubeService(
        scope,
        name,
        metadata=kube.ObjectMeta(
            name=name,
            namespace=VOLCANO_NAMESPACE,
            labels=labels_of(program),
            annotations=annotations,
        ),
        spec=kube.ServiceSpec(selector={NAME_LABEL: program}, ports=[port]),
    )


def define_metrics_service(scope: Construct, *, program: str, port: int) -> None:
    """Define the Service through which Prometheus scrapes ``program`` on ``port``."""
    define_service(
        scope,
        name=f"{program}-service",
        program=program,
        port=kube.ServicePort(
            name="metrics", port=port, target_port=kube.IntOrString.from_string("metrics")
        ),
        annotations={
            "prometheus.io/scrape": "true",
            "prometheus.io/path": "/metrics",
            "prometheus.io/port": str(port),
        },
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
    """Return the pod of ``container``: on the system pool, as no root, with a scratch `/tmp`.

    Args:
        container: Its one container, already hardened.
        account: Service account whose token it gets.
        volumes: Volumes beside the scratch one.
        spread: How its replicas keep apart.
        restart_policy: Kubernetes' own default unless given.
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
    """Mount the scratch volume: the programs keep a log-level socket and cache dumps there."""
    return kube.VolumeMount(name=_TMP, mount_path="/tmp")


def _pod(program: Program) -> kube.PodSpec:
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
