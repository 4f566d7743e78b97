"""Pod template of a job."""

from collections.abc import Iterator, Mapping

from ultrascale.catalog import object_keys
from ultrascale.documents import Json, JsonObject
from ultrascale.plan import names
from ultrascale.plan.model import (
    JobPlan,
    PodPlan,
    Requirement,
    RolePlan,
    SecurityPlan,
    ServingPlan,
    TolerationPlan,
)

_SHARED_MEMORY = "shared-memory"
_SCRATCH = "scratch"
Spec = dict[str, Json]
# As in the volume that Kubernetes makes by itself, but for the folder, which no client looks into.
# Source: https://kubernetes.io/docs/concepts/storage/projected-volumes/#serviceaccounttoken
_NODE_READER_FILES: tuple[Spec, ...] = (
    {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
    {
        "configMap": {
            "name": "kube-root-ca.crt",
            "items": [{"key": "ca.crt", "path": "ca.crt"}],
        }
    },
)


def labels(plan: JobPlan) -> dict[str, str]:
    """Return the labels of every object and pod of a job."""
    return {
        names.JOB_LABEL: plan.name,
        "app.kubernetes.io/name": plan.name,
        names.COMPONENT_LABEL: plan.kind,
        "app.kubernetes.io/managed-by": "ultrascale",
        **({} if plan.check is None else {names.CHECK_LABEL: plan.check}),
        **({} if plan.serving is None else _serving_labels(plan.serving)),
    }


def _serving_labels(serving: ServingPlan) -> dict[str, str]:
    closed = serving.route is not None and serving.route.closed
    return {names.SERVER_LABEL: serving.server, **({names.ROUTED_LABEL: "true"} if closed else {})}


def metadata(plan: JobPlan, name: str | None = None) -> Spec:
    """Return the metadata of an object of a job, named after the job unless ``name`` is given."""
    return {"name": name or plan.name, "namespace": plan.namespace, "labels": labels(plan)}


def queued_metadata(plan: JobPlan) -> Spec:
    """Return the metadata of an object beside a workload: rights follow its queue."""
    return {**metadata(plan), "labels": {**labels(plan), **_place(plan)}}


def workload_metadata(plan: JobPlan) -> Spec:
    """Return the metadata of a workload, which its queue may suspend."""
    queue = plan.local_queue
    place = _place(plan)
    if queue is not None and queue.priority is not None:
        place[names.QUEUE_PRIORITY_LABEL] = queue.priority
    if queue is not None and queue.most_seconds is not None:
        place[object_keys.MOST_EXECUTION_SECONDS] = str(queue.most_seconds)
    return {**metadata(plan), "labels": {**labels(plan), **place}}


def _place(plan: JobPlan) -> dict[str, str]:
    queue = plan.local_queue
    return {} if queue is None else {names.QUEUE_LABEL: queue.name}


def deadline(plan: JobPlan) -> Spec:
    """Return the field of a workload's wall-clock limit; none without one."""
    seconds = plan.deadline_seconds
    return {} if seconds is None else {"activeDeadlineSeconds": seconds}


def mistake_codes(role: RolePlan, code: int) -> Spec:
    """Return the exit codes of a role's program after which no restart helps."""
    codes: Spec = {"operator": "In", "values": [code]}
    # The rule would hold for the command before the program as well.
    return {"containerName": role.container, **codes} if role.pod.init else codes


def pod_template(
    plan: JobPlan,
    role: RolePlan | None = None,
    *,
    env: Mapping[str, str] | None = None,
    extra_labels: Mapping[str, str] | None = None,
    extra_annotations: Mapping[str, str] | None = None,
    container: JsonObject | None = None,
    spec: JsonObject | None = None,
) -> Spec:
    """Return the pod template of a role of a job.

    Args:
        plan: The job.
        role: One of its roles; None: the first, which is the only one of most jobs.
        env: Variables beside those of the plan.
        extra_labels: Labels beside those of the job.
        extra_annotations: Annotations beside those of the plan.
        container: Fields of the container beside those of the plan.
        spec: Fields of the pod's spec beside those of the plan.
    """
    role = role or plan.roles[0]
    pod = role.pod
    annotations = {
        **pod.annotations,
        **topology_annotations(plan),
        **(extra_annotations or {}),
    }
    return {
        "metadata": {
            "labels": {**labels(plan), **_queue(plan), **plan.owner, **(extra_labels or {})},
            **({"annotations": annotations} if annotations else {}),
        },
        "spec": {
            **_spec(pod),
            **_init(role, env or {}),
            "containers": [{**_container(role, env or {}), **(container or {})}],
            **(spec or {}),
        },
    }


def topology_annotations(plan: JobPlan) -> dict[str, str]:
    """Return the annotation by which Kueue places the pods of a role close to each other."""
    if plan.topology is None or plan.topology.level is None:
        return {}
    key = (
        object_keys.REQUIRED_TOPOLOGY
        if plan.topology.mode == "hard"
        else object_keys.PREFERRED_TOPOLOGY
    )
    return {key: plan.topology.level}


def _spec(pod: PodPlan) -> Spec:
    spec: Spec = {
        # A job has no business with the API server, and ten thousand pods no room for a variable of
        # each Service of their namespace.
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": pod.grace_period_seconds,
        "affinity": {"nodeAffinity": _nodes(pod)},
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
    }
    if pod.scheduler is not None:
        spec["schedulerName"] = pod.scheduler
    if pod.tolerations:
        spec["tolerations"] = [_toleration(toleration) for toleration in pod.tolerations]
    if pod.priority_class is not None:
        spec["priorityClassName"] = pod.priority_class
    if pod.service_account is not None:
        spec["serviceAccountName"] = pod.service_account
    if volumes := [*_volumes(pod)]:
        spec["volumes"] = volumes
    return spec


def _security(plan: SecurityPlan) -> Spec:
    """Return the rights of a container of ours.

    The user is the container's, not the pod's: a container that an operator injects, or that is
    attached to debug, has an image and a user of its own.

    EFA, NCCL and the Neuron runtime need no capability: the nodes' images raise the limit of locked
    memory.

    Source: https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted,
        https://github.com/bottlerocket-os/bottlerocket-core-kit/pull/141,
        https://docs.aws.amazon.com/eks/latest/userguide/node-efa.html
    """
    user = {"runAsUser": plan.user, "runAsGroup": plan.group}
    kept = {"add": list(plan.capabilities)} if plan.capabilities else {}
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"], **kept},
        **({"runAsNonRoot": True} if plan.non_root else {}),
        **{key: number for key, number in user.items() if number is not None},
    }


def _init(role: RolePlan, env: Mapping[str, str]) -> Spec:
    """Return the container that runs before the program.

    It asks for the program's resources: a pod counts the larger of both, and the kubelet gives the
    program the devices that the other had.

    Source:
    https://kubernetes.io/docs/concepts/workloads/pods/init-containers/#resource-sharing-within-containers
    """
    if not role.pod.init:
        return {}
    container = {
        **_container(role, env),
        "name": names.BEFORE_PROGRAM,
        "command": list(role.pod.init),
    }
    return {"initContainers": [container]}


def _container(role: RolePlan, env: Mapping[str, str]) -> Spec:
    pod = role.pod
    container: Spec = {
        "name": role.container,
        "image": pod.image,
        "imagePullPolicy": "IfNotPresent",
        # The end of the log shows why a program failed that writes no message of its own.
        # Source: https://kubernetes.io/docs/tasks/debug/debug-application/determine-reason-pod-failure/
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "env": [
            *(
                {
                    "name": name,
                    "valueFrom": {"configMapKeyRef": {"name": key.name, "key": key.key}},
                }
                for name, key in pod.settings.items()
            ),
            *({"name": name, "value": value} for name, value in {**pod.env, **env}.items()),
            *(
                {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
                for name, path in pod.fields.items()
            ),
            *(
                {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": name}}}
                for name, secret in pod.secrets.items()
            ),
        ],
        "resources": {"requests": dict(pod.requests), "limits": dict(pod.limits)},
        "securityContext": _security(pod.security),
    }
    if pod.command:
        container["command"] = list(pod.command)
    if pod.args:
        container["args"] = list(pod.args)
    if mounts := [*_mounts(pod)]:
        container["volumeMounts"] = mounts
    return container


def _queue(plan: JobPlan) -> dict[str, str]:
    queue = plan.local_queue
    return {names.QUEUE_LABEL: queue.name} if queue is not None and queue.on_pods else {}


def _nodes(pod: PodPlan) -> Spec:
    terms = [{"matchExpressions": [_expression(requirement) for requirement in pod.nodes]}]
    nodes: Spec = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    if pod.preferred:
        nodes["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {
                "weight": preference.weight,
                "preference": {"matchExpressions": [_expression(preference.nodes)]},
            }
            for preference in pod.preferred
        ]
    return nodes


def _expression(requirement: Requirement) -> Spec:
    return {"key": requirement.key, "operator": "In", "values": list(requirement.values)}


def _toleration(plan: TolerationPlan) -> Spec:
    fields = {"key": plan.key, "operator": plan.operator, "value": plan.value}
    return {k: v for k, v in {**fields, "effect": plan.effect}.items() if v is not None}


def _volumes(pod: PodPlan) -> Iterator[Spec]:
    for claim, name in _names(pod).items():
        yield {"name": name, "persistentVolumeClaim": {"claimName": claim}}
    if pod.shared_memory is not None:
        memory = {"medium": "Memory", "sizeLimit": pod.shared_memory}
        yield {"name": _SHARED_MEMORY, "emptyDir": memory}
    if pod.scratch is not None:
        yield {"name": _SCRATCH, "emptyDir": {}}
    if pod.reads_node:
        yield {"name": names.NODE_READER, "projected": {"sources": [*_NODE_READER_FILES]}}


def _mounts(pod: PodPlan) -> Iterator[Spec]:
    volumes = _names(pod)
    for mount in pod.mounts:
        volume_mount: Spec = {"name": volumes[mount.claim], "mountPath": mount.mount_path}
        yield {**volume_mount, "readOnly": True} if mount.read_only else volume_mount
    if pod.shared_memory is not None:
        yield {"name": _SHARED_MEMORY, "mountPath": "/dev/shm"}
    if pod.scratch is not None:
        yield {"name": _SCRATCH, "mountPath": pod.scratch.mount_path}
    if pod.reads_node:
        place = names.NODE_READER_FOLDER
        yield {"name": names.NODE_READER, "mountPath": place, "readOnly": True}


def _names(pod: PodPlan) -> Mapping[str, str]:
    """Return the volume of each claim. A claim's name may be no valid name of a volume."""
    claims = dict.fromkeys(mount.claim for mount in pod.mounts)
    return {claim: f"claim-{number}" for number, claim in enumerate(claims)}


def meeting_service(plan: JobPlan, port: int, selector: Mapping[str, Json]) -> dict[str, Json]:
    """Return the Service by which a job's pods reach that of index 0 before it is ready.

    Args:
        plan: The job, whose name the Service gets.
        port: TCP port at which the pods meet.
        selector: Labels of the pods that get a name, or of the first one alone.
    """
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(plan),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": dict(selector),
            "ports": [{"name": "rendezvous", "port": port}],
        },
    }
