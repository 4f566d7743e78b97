"""etcd for the rendezvous of TorchElastic workers."""

from collections.abc import Mapping, Sequence

import cdk8s
from cdk8s_plus_27 import k8s as kube
from constructs import Construct

from ultrascale.documents import Json, JsonObject
from ultrascale.parts.etcd import Plan
from ultrascale.plan.names import (
    ETCD_CLIENT_PORT,
    ETCD_CLIENT_SERVICE,
    ETCD_PEER_PORT,
    ETCD_SERVER_SERVICE,
    TRAINING_LABEL,
)
from ultrascale_k8s import _pods
from ultrascale_k8s._platform_chart import PlatformChart, built_chart, define_object
from ultrascale_k8s._pods import REVISIONS, SYSTEM_CLUSTER_CRITICAL, budget
from ultrascale_k8s._typed_pods import (
    keep_apart,
    metadata,
    resources,
    restricted_container,
    restricted_pod,
    selector,
    system_affinity,
    tolerations,
)
from ultrascale_k8s.namespaces import address_peers, ingress_policy, ingress_rule
from ultrascale_k8s.objects import labels

STORAGE_CLASS = "ultrascale-gp3"
_DATA = "data"
_MOUNT = "/var/lib/etcd"
# User `nonroot` of distroless images, as the image has no user of its own.
# Source: https://github.com/etcd-io/etcd/blob/v3.5.33/Dockerfile
_USER = 65532
# Half of etcd's suggested maximum: far more than the data of any job's rendezvous.
# Source: https://etcd.io/docs/v3.5/op-guide/maintenance/#space-quota
_QUOTA_BYTES = 2 * 1024**3
# A member without a leader still answers this path, so a lost quorum restarts no member: the
# remaining members must stay up until the others come back.
# Source: https://etcd.io/docs/v3.5/op-guide/monitoring/#health-check
_ALIVE = "/health?exclude=NOSPACE&serializable=true"
_SERVES = "/health"


def charts(plan: Plan) -> Mapping[str, Sequence[PlatformChart]]:
    """Return etcd's chart, by the layer that applies it."""
    chart = EtcdChart(cdk8s.App(), "etcd", plan=plan, job_ranges=plan.job_ranges)
    return {"platform": [built_chart(chart)]}


class EtcdChart(cdk8s.Chart):
    """Defines an etcd of one or three members and its two Services.

    The data is disposable: a rendezvous lasts minutes, and a job that loses it repeats it. So the
    volumes are deleted with the members, and a change between one and three members starts an empty
    cluster instead of growing the old one. Make that change while no job runs: torchrun asks the
    server for waiting nodes all the time, and an agent without an answer ends its workers, with
    torch's own backends at once, with `etcd-v3` after five minutes. With one member, a drain of its
    node has the same effect. The size of the volumes cannot change in place: Kubernetes refuses it.

    Source: https://etcd.io/docs/v3.5/op-guide/configuration/
    """

    def __init__(
        self, scope: Construct, id: str, *, plan: Plan, job_ranges: Sequence[str] = ()
    ) -> None:
        """Define the members, their Services and their network policy.

        Args:
            scope: The cdk8s app.
            id: Id of the chart, and name of its file.
            plan: The server.
            job_ranges: Address ranges of its clients; empty: the pods of training namespaces.
        """
        super().__init__(scope, id, disable_resource_name_hashes=True)
        _storage_class(self, plan)
        _services(self, plan)
        _stateful_set(self, plan)
        define_object(self, "NetworkPolicy", _network_policy(plan, job_ranges))
        if plan.replicas > 1:
            define_object(self, "DisruptionBudget", budget(ETCD_SERVER_SERVICE, plan.namespace))


def etcd_arguments(plan: Plan) -> list[str]:
    """Return the arguments of every member; the kubelet fills in ``$(POD_NAME)``.

    The data directory is named after the number of members. A member that kept its old data would
    form a second cluster beside the new one, behind the same Service.
    """
    own_host = _member_host(plan, "$(POD_NAME)")
    members = [f"{ETCD_SERVER_SERVICE}-{ordinal}" for ordinal in range(plan.replicas)]
    cluster = ",".join(
        f"{name}=http://{_member_host(plan, name)}:{ETCD_PEER_PORT}" for name in members
    )
    return [
        "--name=$(POD_NAME)",
        # Below the mount point, so that etcd creates the folder, and nobody else may read it.
        f"--data-dir={_MOUNT}/members-{plan.replicas}",
        f"--listen-client-urls=http://0.0.0.0:{ETCD_CLIENT_PORT}",
        f"--advertise-client-urls=http://{own_host}:{ETCD_CLIENT_PORT}",
        f"--listen-peer-urls=http://0.0.0.0:{ETCD_PEER_PORT}",
        f"--initial-advertise-peer-urls=http://{own_host}:{ETCD_PEER_PORT}",
        f"--initial-cluster={cluster}",
        "--initial-cluster-state=new",
        f"--initial-cluster-token={plan.namespace}-{plan.replicas}",
        "--auto-compaction-mode=periodic",
        # Old revisions are compacted early: nobody reads replaced values, and each heartbeat of a
        # job replaces the state of all its nodes: a job of 1,000 nodes writes half a megabyte a
        # second.
        "--auto-compaction-retention=5m",
        f"--quota-backend-bytes={_QUOTA_BYTES}",
        # Removed in etcd 3.6, so the argument is passed only if a job needs it.
        *(["--enable-v2=true"] if plan.v2_api else []),
    ]


def _member_host(plan: Plan, name: str) -> str:
    # With the namespace: clients in other training namespaces use these addresses too.
    return f"{name}.{ETCD_SERVER_SERVICE}.{plan.namespace}.svc"


def _storage_class(chart: cdk8s.Chart, plan: Plan) -> None:
    # EKS makes no StorageClass of gp3. An existing class cannot change.
    kube.KubeStorageClass(
        chart,
        "StorageClass",
        metadata=metadata(STORAGE_CLASS, component=ETCD_SERVER_SERVICE),
        provisioner=plan.volume_provisioner,
        parameters={
            "type": "gp3",
            "encrypted": "true",
            **({} if plan.volume_key is None else {"kmsKeyId": plan.volume_key}),
        },
        reclaim_policy="Delete",
        volume_binding_mode="WaitForFirstConsumer",
        allow_volume_expansion=True,
    )


def _services(chart: cdk8s.Chart, plan: Plan) -> None:
    pods = selector(ETCD_SERVER_SERVICE).match_labels
    client = kube.ServicePort(name="client", port=ETCD_CLIENT_PORT)
    peer = kube.ServicePort(name="peer", port=ETCD_PEER_PORT)
    kube.KubeService(
        chart,
        "ServerService",
        metadata=metadata(ETCD_SERVER_SERVICE, namespace=plan.namespace),
        # Members must find each other before any member is ready.
        spec=kube.ServiceSpec(
            cluster_ip="None",
            publish_not_ready_addresses=True,
            selector=pods,
            ports=[client, peer],
        ),
    )
    kube.KubeService(
        chart,
        "ClientService",
        metadata=metadata(
            ETCD_CLIENT_SERVICE, namespace=plan.namespace, component=ETCD_SERVER_SERVICE
        ),
        spec=kube.ServiceSpec(selector=pods, ports=[client]),
    )


def _stateful_set(chart: cdk8s.Chart, plan: Plan) -> None:
    disposable = kube.StatefulSetPersistentVolumeClaimRetentionPolicy(
        when_deleted="Delete", when_scaled="Delete"
    )
    kube.KubeStatefulSet(
        chart,
        "StatefulSet",
        metadata=metadata(ETCD_SERVER_SERVICE, namespace=plan.namespace),
        spec=kube.StatefulSetSpec(
            revision_history_limit=REVISIONS,
            service_name=ETCD_SERVER_SERVICE,
            replicas=plan.replicas,
            # Started together: a first member alone never becomes ready, as the quorum takes two.
            pod_management_policy="Parallel",
            persistent_volume_claim_retention_policy=disposable,
            selector=selector(ETCD_SERVER_SERVICE),
            template=kube.PodTemplateSpec(
                metadata=kube.ObjectMeta(labels=labels(ETCD_SERVER_SERVICE)), spec=_member_pod(plan)
            ),
            volume_claim_templates=[_claim_template(plan)],
        ),
    )


def _claim_template(plan: Plan) -> kube.KubePersistentVolumeClaimProps:
    return kube.KubePersistentVolumeClaimProps(
        metadata=kube.ObjectMeta(name=_DATA),
        spec=kube.PersistentVolumeClaimSpec(
            access_modes=["ReadWriteOnce"],
            storage_class_name=STORAGE_CLASS,
            resources=kube.ResourceRequirements(
                requests={"storage": kube.Quantity.from_string(f"{plan.volume_gib}Gi")}
            ),
        ),
    )


def _member_pod(plan: Plan) -> kube.PodSpec:
    return kube.PodSpec(
        automount_service_account_token=False,
        # Off: Kubernetes would set ETCD_SERVER_PORT and the like, and etcd reads ETCD_ variables.
        enable_service_links=False,
        priority_class_name=SYSTEM_CLUSTER_CRITICAL,
        termination_grace_period_seconds=30,
        affinity=system_affinity(),
        tolerations=tolerations(),
        topology_spread_constraints=keep_apart(ETCD_SERVER_SERVICE) if plan.replicas > 1 else None,
        security_context=restricted_pod(_USER),
        containers=[_container(plan)],
    )


def _container(plan: Plan) -> kube.Container:
    pod_name = kube.EnvVarSource(field_ref=kube.ObjectFieldSelector(field_path="metadata.name"))
    return kube.Container(
        name="etcd",
        image=plan.image,
        command=["/usr/local/bin/etcd"],
        args=etcd_arguments(plan),
        env=[kube.EnvVar(name="POD_NAME", value_from=pod_name)],
        ports=[
            kube.ContainerPort(name="client", container_port=ETCD_CLIENT_PORT),
            kube.ContainerPort(name="peer", container_port=ETCD_PEER_PORT),
        ],
        startup_probe=_probe(_ALIVE, failures=60),
        readiness_probe=_probe(_SERVES, failures=3),
        liveness_probe=_probe(_ALIVE, failures=8),
        security_context=restricted_container(),
        resources=resources(cpu="100m", memory="256Mi", memory_limit="1Gi"),
        volume_mounts=[kube.VolumeMount(name=_DATA, mount_path=_MOUNT)],
    )


def _probe(path: str, *, failures: int) -> kube.Probe:
    return kube.Probe(
        http_get=kube.HttpGetAction(path=path, port=kube.IntOrString.from_number(ETCD_CLIENT_PORT)),
        period_seconds=10,
        timeout_seconds=5,
        failure_threshold=failures,
    )


def _network_policy(plan: Plan, job_ranges: Sequence[str]) -> JsonObject:
    """Return the policy: training namespaces reach the client port, and only members each other.

    The v2 API has no authentication that TorchElastic can use, so this policy guards it.
    """
    training: Json = {"namespaceSelector": {"matchLabels": {TRAINING_LABEL: "true"}}}
    members = _pods.selector(ETCD_SERVER_SERVICE)
    return ingress_policy(
        ETCD_SERVER_SERVICE,
        plan.namespace,
        [
            ingress_rule([ETCD_CLIENT_PORT], address_peers(job_ranges) or [training]),
            ingress_rule([ETCD_PEER_PORT], [{"podSelector": members}]),
        ],
        pods=members,
    )
