"""Rules for a job's objects: schemas, webhooks and limits of the kernel.

Sources:
    https://github.com/volcano-sh/volcano/blob/v1.15.1/pkg/webhooks/admission/jobs/validate/admit_job.go
    https://github.com/kubernetes/kubernetes/blob/v1.35.0/pkg/apis/core/validation/validation.go
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from tests.support.crd_schemas import CRD_FOLDERS, CrdSet
from tests.support.kubernetes_schemas import MINORS, validate_core
from ultrascale.catalog import leaderworkerset
from ultrascale.jobs import JobManifests
from ultrascale_k8s.volcano.chart import crds

Document = Mapping[str, Any]

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_OBJECT_BYTES = 1024 * 1024
_VARIABLE_BYTES = 128 * 1024
_PLUGINS = {"env", "svc", "ssh", "pytorch", "tensorflow", "mpi", "ray", "hcclrank"}
_ACTIONS = {
    *("AbortJob", "RestartJob", "RestartTask", "RestartPod", "RestartPartition"),
    *("TerminateJob", "CompleteJob", "ResumeJob"),
}


def _structural(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


_INTEGER: Document = {"type": "integer"}
_REPLICA = _structural(
    replicas={"type": "integer", "minimum": 1},
    restartPolicy={"enum": ["Always", "OnFailure", "Never", "ExitCode"]},
    template={"type": "object", "x-kubernetes-preserve-unknown-fields": True},
)
# The CRD of the training operator 1.8 as far as pod templates, which Kubernetes' own schemas judge.
# Source: https://github.com/kubeflow/trainer/blob/v1.8.1/manifests/base/crds/kubeflow.org_pytorchjobs.yaml
_PYTORCH_JOB = CrdSet(
    {
        ("kubeflow.org/v1", "PyTorchJob"): _structural(
            spec={
                **_structural(
                    nprocPerNode={"type": "string"},
                    pytorchReplicaSpecs=_structural(Master=_REPLICA, Worker=_REPLICA),
                    runPolicy=_structural(
                        activeDeadlineSeconds=_INTEGER,
                        backoffLimit=_INTEGER,
                        cleanPodPolicy={"enum": ["All", "Running", "None"]},
                        suspend={"type": "boolean"},
                        ttlSecondsAfterFinished=_INTEGER,
                    ),
                ),
                "required": ["pytorchReplicaSpecs"],
            }
        )
    }
)


# The fields that AWS's own client knows, as far as pod templates; the operator's CRD is not public.
# Source: https://github.com/aws/sagemaker-hyperpod-cli/blob/main/src/sagemaker/hyperpod/training/config/hyperpod_pytorch_job_unified_config.py
_HYPERPOD_JOB = CrdSet(
    {
        ("sagemaker.amazonaws.com/v1", "HyperPodPyTorchJob"): _structural(
            spec=_structural(
                nprocPerNode={"type": "string"},
                elasticPolicy=_structural(
                    **dict.fromkeys(
                        (
                            "minReplicas",
                            "maxReplicas",
                            "replicaIncrementStep",
                            "gracefulShutdownTimeoutInSeconds",
                            "scalingTimeoutInSeconds",
                            "faultyScaleDownTimeoutInSeconds",
                        ),
                        _INTEGER,
                    )
                ),
                replicaSpecs={
                    "type": "array",
                    "items": {
                        **_structural(
                            name={"type": "string"},
                            replicas=_INTEGER,
                            maxReplicas=_INTEGER,
                            spares=_INTEGER,
                            template=_REPLICA["properties"]["template"],
                        ),
                        "required": ["name"],
                    },
                },
                runPolicy=_structural(
                    activeDeadlineSeconds=_INTEGER,
                    cleanPodPolicy={"enum": ["All", "OnlyComplete", "None"]},
                    jobMaxRetryCount=_INTEGER,
                    logMonitoringConfiguration={
                        "type": "array",
                        "items": _structural(
                            name={"type": "string"},
                            logPattern={"type": "string"},
                            stopPattern={"type": "string"},
                            expectedStartCutOffInSeconds=_INTEGER,
                            expectedRecurringFrequencyInSeconds=_INTEGER,
                            operator={"enum": ["gt", "lt", "eq", "gteq", "lteq"]},
                            metricThreshold=_INTEGER,
                            metricEvaluationDataPoints=_INTEGER,
                        ),
                    },
                    restartPolicy={
                        **_structural(
                            evalPeriodSeconds=_INTEGER,
                            maxFullJobRestarts=_INTEGER,
                            numRestartBeforeFullJobRestart=_INTEGER,
                        ),
                        "required": ["evalPeriodSeconds"],
                    },
                    suspend={"type": "boolean"},
                    ttlSecondsAfterFinished=_INTEGER,
                ),
            )
        )
    }
)


@cache
def _upstream(folder: str) -> CrdSet | None:
    """Return upstream's CRDs, where they are at hand."""
    path = CRD_FOLDERS / folder
    return CrdSet.from_folder(path) if path.is_dir() else None


@cache
def _own_volcano() -> CrdSet:
    return CrdSet.from_documents(crds())


def _schema_findings(document: Document, *schemas: CrdSet | None) -> Iterator[str]:
    for each in schemas:
        if each is not None:
            yield from each.validate(document)


def findings(manifests: JobManifests, *minors: str) -> list[str]:
    """Return all that a cluster of ``minors`` would have against a job's objects."""
    return [line for each in manifests.objects for line in _findings(dict(each), minors or MINORS)]


def pod_templates(manifests: JobManifests) -> Iterator[Any]:
    """Yield the template of each kind of pod of a job."""
    for each in manifests.objects:
        spec: Any = each["spec"]
        if each["kind"] in ("Job", "Deployment"):
            tasks = spec.get("tasks") or [spec]
            yield from (task["template"] for task in tasks)
        if each["kind"] == "JobSet":
            yield from (role["template"]["spec"]["template"] for role in spec["replicatedJobs"])
        if each["kind"] == "LeaderWorkerSet":
            yield from _templates_of_replica(spec)
        if each["kind"] == "PyTorchJob":
            yield spec["pytorchReplicaSpecs"]["Worker"]["template"]
        if each["kind"] == "HyperPodPyTorchJob":
            yield from (replicas["template"] for replicas in spec["replicaSpecs"])


def _templates_of_replica(spec: Document) -> list[Any]:
    """Return the templates of a LeaderWorkerSet; one of a single pod has no leader's."""
    found = spec["leaderWorkerTemplate"]
    return [found[kind] for kind in ("leaderTemplate", "workerTemplate") if kind in found]


def volcano_jobs(manifests: JobManifests) -> list[Any]:
    """Return the Volcano Jobs of a job."""
    api = "batch.volcano.sh/v1alpha1"
    return [dict(each) for each in manifests.objects if each["apiVersion"] == api]


def pod_names(job: Document) -> Iterator[str]:
    """Yield the last pod's name of each task of a Volcano Job: the longest."""
    for task in job["spec"]["tasks"]:
        yield f"{job['metadata']['name']}-{task['name']}-{task['replicas'] - 1}"


def _findings(document: Document, minors: tuple[str, ...]) -> Iterator[str]:
    name = document["metadata"]["name"]
    if not _LABEL.fullmatch(name):
        yield f"{name}: not a name of a Service"
    if len(json.dumps(document).encode()) > _OBJECT_BYTES:
        yield f"{name}: more than an object may have"
    for value in document["metadata"]["labels"].values():
        if not _LABEL.fullmatch(value):
            yield f"{name}: label {value}"
    judges = {
        "batch.volcano.sh/v1alpha1": _volcano_findings,
        "jobset.x-k8s.io/v1alpha2": _jobset_findings,
        "leaderworkerset.x-k8s.io/v1": _leader_worker_set_findings,
        "kubeflow.org/v1": _pytorch_findings,
        "sagemaker.amazonaws.com/v1": _hyperpod_findings,
    }
    if judge := judges.get(document["apiVersion"]):
        yield from judge(document, minors)
        return
    for minor in minors:
        yield from validate_core(document, minor)
    if "template" in document["spec"]:
        yield from _pod_findings(document["spec"]["template"])


def _policy_findings(policies: list[dict[str, Any]]) -> Iterator[str]:
    """Yield what Volcano's webhook refuses, and what no policy before leaves over for another."""
    codes = [policy["exitCode"] for policy in policies if "exitCode" in policy]
    met = Counter([*codes, *(event for each in policies for event in each.get("events", ()))])
    one_each = all(("exitCode" in policy) != ("events" in policy) for policy in policies)
    if not one_each or 0 in codes or max(met.values()) > 1:
        yield f"policies: {policies}"
    if {policy["action"] for policy in policies} - _ACTIONS:
        yield f"policies: {policies}"
    if any("exitCode" not in policy for policy in policies[: len(codes)]):
        yield f"an event that comes with every exit code is met first: {policies}"


def _volcano_findings(job: Document, minors: tuple[str, ...]) -> Iterator[str]:
    yield from _schema_findings(job, _own_volcano(), _upstream("volcano-v1.15.1"))
    spec = job["spec"]
    pods = sum(task["replicas"] for task in spec["tasks"])
    if not 1 <= spec["minAvailable"] <= pods:
        yield f"minAvailable {spec['minAvailable']} of {pods} pods"
    if spec["maxRetry"] < 1:
        yield "maxRetry: 0 stands for a default of 3"
    if set(spec["plugins"]) - _PLUGINS:
        yield f"no such plugin: {spec['plugins']}"
    yield from _policy_findings(spec["policies"])
    yield from _task_findings(job)
    for task in spec["tasks"]:
        yield from _template_findings(task["template"], minors)


def _leader_worker_set_findings(document: Document, minors: tuple[str, ...]) -> Iterator[str]:
    """Yield what the CRD and its webhook have against a LeaderWorkerSet.

    Source: https://github.com/kubernetes-sigs/lws/blob/v0.10.0/pkg/webhooks/leaderworkerset_webhook.go
    """
    yield from _schema_findings(document, _upstream(f"lws-v{leaderworkerset.VERSION}"))
    spec = document["spec"]
    rolling = spec["rolloutStrategy"]["rollingUpdateConfiguration"]
    if not rolling["maxSurge"] and not rolling["maxUnavailable"]:
        yield "maxSurge and maxUnavailable are 0"
    for template in _templates_of_replica(spec):
        yield from _template_findings(template, minors)


def _pytorch_findings(job: Document, minors: tuple[str, ...]) -> Iterator[str]:
    """Yield what the CRD and the operator's own validation have against a PyTorchJob."""
    yield from _PYTORCH_JOB.validate(job)
    name, worker = job["metadata"]["name"], job["spec"]["pytorchReplicaSpecs"]["Worker"]
    longest = f"{name}-worker-{worker['replicas'] - 1}"
    if len(longest) > 63:
        yield f"{longest}: a Service's name of more than 63 characters"
    template = worker["template"]
    if [each["name"] for each in template["spec"]["containers"]] != ["pytorch"]:
        yield "no container named pytorch"
    if "restartPolicy" in template["spec"]:
        yield "the operator writes over the restart policy of the template"
    yield from _template_findings(template, minors)


def _jobset_findings(jobset: Document, minors: tuple[str, ...]) -> Iterator[str]:
    """Yield what the CRD, its webhook and Kubernetes' Jobs have against a JobSet.

    Source: https://github.com/kubernetes-sigs/jobset/blob/v0.12.0/pkg/webhooks/jobset_webhook.go
    """
    yield from _schema_findings(jobset, _upstream("jobset-v0.12.0"))
    name, spec = jobset["metadata"]["name"], jobset["spec"]
    roles = [role["name"] for role in spec["replicatedJobs"]]
    if len(set(roles)) < len(roles) or len(roles) > 18:
        yield f"roles: {roles}"
    for rule in spec["failurePolicy"]["rules"]:
        if set(rule.get("targetReplicatedJobs", ())) - set(roles):
            yield f"a rule for a role that is not there: {rule}"
    for role in spec["replicatedJobs"]:
        job = role["template"]["spec"]
        longest = f"{name}-{role['name']}-{role['replicas'] - 1}-{job['completions'] - 1}-abcde"
        if len(longest) > 63:
            yield f"{longest}: a pod's name of more than 63 characters"
        document = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}}
        for minor in minors:
            yield from validate_core({**document, "spec": job}, minor)
        yield from _pod_findings(job["template"])


def _hyperpod_findings(job: Document, minors: tuple[str, ...]) -> Iterator[str]:
    """Yield what AWS's client and Kubernetes have against a HyperPodPyTorchJob."""
    yield from _HYPERPOD_JOB.validate(job)
    spec = job["spec"]
    (replicas,) = spec["replicaSpecs"]
    longest = f"{job['metadata']['name']}-{replicas['name']}-{replicas['replicas'] - 1}"
    if len(longest) > 63:
        yield f"{longest}: a pod's host name of more than 63 characters"
    elastic = spec.get("elasticPolicy")
    if elastic is not None and elastic["maxReplicas"] != replicas["maxReplicas"]:
        yield "maxReplicas of the replicas and of the policy differ"
    yield from _template_findings(replicas["template"], minors)


def _task_findings(job: Document) -> Iterator[str]:
    spec = job["spec"]
    names = [task["name"] for task in spec["tasks"]]
    if len(set(names)) < len(names) or not all(re.fullmatch(r"[a-z0-9]+", each) for each in names):
        yield f"tasks: {names}"
    for task, longest in zip(spec["tasks"], pod_names(job), strict=True):
        if len(longest) > 63:
            yield f"{longest}: a host name of more than 63 characters"
        if task["replicas"] > 2500:
            yield f"{task['name']}: {task['replicas']} pods in one task"
        hosts = task["replicas"] * len(f"{longest}.{job['metadata']['name']},")
        if "svc" in spec["plugins"] and hosts + len(f"VC_{task['name']}_HOSTS=") > _VARIABLE_BYTES:
            yield f"{task['name']}: {hosts} bytes of host names in one variable"


def _template_findings(template: Document, minors: tuple[str, ...]) -> Iterator[str]:
    """Yield what an API server and the kubelet have against a template of pods."""
    holder = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "x"}}
    for minor in minors:
        yield from validate_core({**holder, "template": template}, minor)
    yield from _pod_findings(template)


def _pod_findings(template: Document) -> Iterator[str]:
    spec = template["spec"]
    (container,) = spec["containers"]
    volumes = [volume["name"] for volume in spec.get("volumes", [])]
    mounts = container.get("volumeMounts", [])
    paths = [mount["mountPath"] for mount in mounts]
    if len(set(volumes)) < len(volumes) or not all(_LABEL.fullmatch(name) for name in volumes):
        yield f"volumes: {volumes}"
    if len(set(paths)) < len(paths) or {mount["name"] for mount in mounts} != set(volumes):
        yield f"mounts: {mounts}"
    variables = [each["name"] for each in container.get("env", [])]
    if len(set(variables)) < len(variables):
        yield f"variables that stand twice: {Counter(variables).most_common(1)}"
    requests, limits = container["resources"]["requests"], container["resources"]["limits"]
    for name, value in requests.items():
        if not re.fullmatch(r"[1-9]\d*(m|Mi|Gi)?|\d*\.\d+(Gi|Mi)?", value):
            yield f"{name}: {value}"
        whole = "/" in name or name.startswith("hugepages")
        if whole and limits.get(name) != value:
            yield f"{name}: a limit of {limits.get(name)} is not its request"
    if set(limits) - set(requests):
        yield f"limits without requests: {set(limits) - set(requests)}"
    grace = spec["terminationGracePeriodSeconds"]
    sleep = container.get("lifecycle", {}).get("preStop", {}).get("sleep", {}).get("seconds", 1)
    if not 0 < sleep <= grace:
        yield f"preStop of {sleep} in a grace period of {grace} seconds"
