"""Jobs as they are sent, and what Volcano and the kubelet make of them."""

from typing import Any

from tests.support.stub_api_server import Object, StubApiServer
from ultrascale.jobs.manifests import JobManifests, Manifest

NAMESPACE = "/api/v1/namespaces/training"
VOLCANO_JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/training/jobs"
INDEXED_JOBS = "/apis/batch/v1/namespaces/training/jobs"
PYTORCH_JOBS = "/apis/kubeflow.org/v1/namespaces/training/pytorchjobs"
HYPERPOD_JOBS = "/apis/sagemaker.amazonaws.com/v1/namespaces/training/hyperpodpytorchjobs"
DEPLOYMENTS = "/apis/apps/v1/namespaces/training/deployments"
JOBSETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/training/jobsets"
RAY_JOBS = "/apis/ray.io/v1/namespaces/training/rayjobs"
WORKLOADS = "/apis/kueue.x-k8s.io/v1beta2/namespaces/training/workloads"
CLUSTER_QUEUES = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues"
LOCAL_QUEUES = "/apis/kueue.x-k8s.io/v1beta2/namespaces/training/localqueues"
SERVICES = f"{NAMESPACE}/services"
PODS = f"{NAMESPACE}/pods"
CLAIMS = f"{NAMESPACE}/persistentvolumeclaims"
QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
POD_GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/training/podgroups"
PRIORITY_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
JOB_LABEL = "ultrascale.dev/job"


def manifests(name: str = "bert", *, pods: int = 2, **changes: Any) -> JobManifests:
    """Return a Volcano job with a headless Service, on a claim and in a queue."""
    fields: dict[str, Any] = {
        "name": name,
        "namespace": "training",
        "kind": "training",
        "objects": (_service(name), volcano_job(name, pods=pods)),
        "pods": pods,
        "container": "worker",
        "claims": ("fsx-claim",),
        "queue": "research",
        "local_queue": None,
        "priority_class": "high",
        "service_account": None,
        "notes": (),
    }
    return JobManifests(**{**fields, **changes})


def volcano_job(name: str = "bert", *, pods: int = 2, tasks: int = 1, **spec: Any) -> Object:
    """Return a Volcano Job of ``pods`` in ``tasks`` of one size, 16 Neuron devices each."""
    resources = {"limits": {"aws.amazon.com/neuron": "16"}, "requests": {"cpu": "100"}}
    template = {"spec": {"containers": [{"name": "worker", "resources": resources}]}}
    own: Object = {
        "minAvailable": pods,
        "maxRetry": 10,
        "queue": "research",
        "tasks": [
            {"name": f"worker{number}", "replicas": pods // tasks, "template": template}
            for number in range(tasks)
        ],
    }
    return _object("batch.volcano.sh/v1alpha1", "Job", name, {**own, **spec})


def indexed_job(name: str = "bert", *, pods: int = 2) -> Object:
    """Return an Indexed Job."""
    spec = {"completions": pods, "parallelism": pods, "completionMode": "Indexed"}
    return _object("batch/v1", "Job", name, spec)


def jobset(
    name: str = "bert",
    *,
    pods: int = 2,
    enough: int | None = None,
    suspend: bool = False,
    **status: Any,
) -> Object:
    """Return a JobSet of one role, in the queue `research`; ``enough`` pods end it by success."""
    job: dict[str, Any] = {"parallelism": pods}
    if enough is not None:
        job["successPolicy"] = {"rules": [{"succeededCount": enough}]}
    role = {"name": "worker", "replicas": 1, "template": {"spec": job}}
    restarts = {"maxRestarts": 10}
    spec = {"suspend": suspend, "failurePolicy": restarts, "replicatedJobs": [role]}
    return _object("jobset.x-k8s.io/v1alpha2", "JobSet", name, spec, status, queue="research")


def jobset_pod(name: str, *, index: int, of: str, job: str = "bert", **changes: Any) -> Object:
    """Return a pod of a JobSet of the UID ``of``."""
    labels = {
        JOB_LABEL: job,
        "jobset.sigs.k8s.io/jobset-name": job,
        "jobset.sigs.k8s.io/jobset-uid": of,
        "jobset.sigs.k8s.io/replicatedjob-name": "worker",
        "batch.kubernetes.io/job-name": f"{job}-worker-0",
        "batch.kubernetes.io/job-completion-index": str(index),
    }
    owners = [{"kind": "Job", "name": f"{job}-worker-0", "uid": "of-the-job"}]
    found = pod(name, job, **changes)
    return {**found, "metadata": {"name": name, "labels": labels, "ownerReferences": owners}}


def workload(*conditions: Object, of: str = "", active: bool = True, **status: Any) -> Object:
    """Return Kueue's Workload of a job of the UID ``of``, in the queue `research`."""
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {
            "name": "jobset-bert",
            "namespace": "training",
            "labels": {"kueue.x-k8s.io/job-uid": of},
            "creationTimestamp": "2026-11-21T12:00:00Z",
        },
        "spec": {
            "queueName": "research",
            "active": active,
            "priority": 100,
            "podSets": [{"name": "worker", "count": 2, "template": {"spec": {"containers": []}}}],
        },
        "status": {**status, "conditions": [*conditions]},
    }


def holding(kind: str, reason: str = "", message: str = "", *, status: bool = True) -> Object:
    """Return a condition."""
    return {
        "type": kind,
        "status": str(status),
        "reason": reason,
        "message": message,
        "lastTransitionTime": "2026-11-21T12:01:00Z",
    }


def pytorch_job(name: str = "bert", *, pods: int = 2, queue: str = "", **status: Any) -> Object:
    """Return a PyTorchJob, held back by ``queue`` where that is named."""
    spec = {"pytorchReplicaSpecs": {"Worker": {"replicas": pods}}}
    return _object("kubeflow.org/v1", "PyTorchJob", name, spec, status, queue=queue)


def hyperpod_job(name: str = "bert", *, pods: int = 2, least: int = 0, **status: Any) -> Object:
    """Return a HyperPodPyTorchJob, which goes on with ``least`` pods where that is not 0."""
    elastic = {"elasticPolicy": {"minReplicas": least, "maxReplicas": pods}} if least else {}
    replicas = [{"name": "worker", "replicas": pods}]
    spec = {"replicaSpecs": replicas, "runPolicy": {"jobMaxRetryCount": 43}, **elastic}
    return _object("sagemaker.amazonaws.com/v1", "HyperPodPyTorchJob", name, spec, status)


def hyperpod_pod(index: int, *, job: str = "bert", **changes: Any) -> Object:
    """Return a pod of a HyperPodPyTorchJob, whose index is in its name alone."""
    pod_name = f"{job}-worker-{index}"
    labels = {JOB_LABEL: job, "HPJob": job}
    return {**pod(pod_name, job, **changes), "metadata": {"name": pod_name, "labels": labels}}


def pytorch_pod(name: str, *, index: int, job: str = "bert", **changes: Any) -> Object:
    """Return a pod of a PyTorchJob."""
    labels = {
        JOB_LABEL: job,
        "training.kubeflow.org/job-name": job,
        "training.kubeflow.org/replica-type": "worker",
        "training.kubeflow.org/replica-index": str(index),
    }
    found = pod(name, job, **changes)
    return {**found, "metadata": {"name": name, "labels": labels}}


def deployment(name: str = "chat", *, pods: int = 2) -> Object:
    """Return a Deployment."""
    return _object("apps/v1", "Deployment", name, {"replicas": pods})


def without_replicas(found: Manifest) -> Manifest:
    """Return a Deployment whose number of replicas is somebody else's, others as they are."""
    return {**found, "spec": {}} if found["kind"] == "Deployment" else found


def service(name: str = "chat", *, pods: int = 2) -> JobManifests:
    """Return a job of kind service: a Deployment, its Service and its disruption budget."""
    budget = _object("policy/v1", "PodDisruptionBudget", name, {"maxUnavailable": 1})
    objects = (_service(name), deployment(name, pods=pods), budget)
    none = {"claims": (), "queue": None, "priority_class": None, "service_account": None}
    return manifests(name, pods=pods, kind="service", objects=objects, **none)


def furnish(stub: StubApiServer) -> None:
    """Give the cluster what `manifests` asks for."""
    stub.put(f"{CLAIMS}/fsx-claim", {"kind": "PersistentVolumeClaim", "status": {"phase": "Bound"}})
    stub.put(f"{QUEUES}/research", {"kind": "Queue", "status": {"state": "Open"}})
    stub.put(f"{PRIORITY_CLASSES}/high", {"kind": "PriorityClass", "value": 100})


def pod(name: str, job: str = "bert", *, index: int = 0, **changes: Any) -> Object:
    """Return a pending pod of a Volcano job's first task."""
    owner = changes.pop("owner", job)
    task = changes.pop("task", "worker0")
    labels = {
        JOB_LABEL: job,
        "volcano.sh/job-name": owner,
        "volcano.sh/task-spec": task,
        "volcano.sh/task-index": str(index),
    }
    return {
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels},
        "status": {"phase": "Pending"},
        **changes,
        "spec": {"containers": [{"name": "worker"}], **changes.get("spec", {})},
    }


def running(node: str = "node-1", *, restarts: int = 0) -> Object:
    """Return what a kubelet writes into a pod that runs."""
    container: Object = {"name": "worker", "restartCount": restarts, "state": {"running": {}}}
    return {
        "spec": {"nodeName": node},
        "status": {"phase": "Running", "containerStatuses": [container]},
    }


def waiting(reason: str, message: str = "", node: str = "node-1") -> Object:
    """Return what a kubelet writes into a pod whose container waits."""
    state = {"waiting": {"reason": reason, "message": message}}
    return {
        "spec": {"nodeName": node},
        "status": {
            "phase": "Pending",
            "conditions": [{"type": "PodReadyToStartContainers", "status": "True"}],
            "containerStatuses": [{"name": "worker", "restartCount": 0, "state": state}],
        },
    }


def unschedulable(message: str) -> Object:
    """Return what a scheduler writes into a pod that fits nowhere."""
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": message,
    }
    return {"status": {"phase": "Pending", "conditions": [condition]}}


def _service(name: str) -> Object:
    return _object("v1", "Service", name, {"clusterIP": "None"})


def _object(
    api: str, kind: str, name: str, spec: Object, status: Object | None = None, *, queue: str = ""
) -> Object:
    labels = {JOB_LABEL: name} | ({"kueue.x-k8s.io/queue-name": queue} if queue else {})
    metadata = {"name": name, "namespace": "training", "labels": labels}
    found: Object = {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec}
    return found if status is None else {**found, "status": status}
