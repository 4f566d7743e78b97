"""PyTorchJobs of Kubeflow's training operator, for HyperPod's nodes.

Pods are restarted where they are, and made anew where their nodes are gone; HyperPod starts the
whole job anew, from its last checkpoint, when it takes a faulty node away.

Sources:
    https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-run-jobs-kubectl.html
    https://github.com/kubeflow/trainer/tree/v1.8.1/pkg/controller.v1/common
"""

from collections.abc import Iterator

from ultrascale.catalog import kubeflow
from ultrascale.documents import Json
from ultrascale.jobs.pod_template import deadline, meeting_service, pod_template, workload_metadata
from ultrascale.plan import names
from ultrascale.plan.model import JobPlan


def pytorch_objects(plan: JobPlan) -> Iterator[dict[str, Json]]:
    """Yield the Service at which the pods of several nodes meet, and the PyTorchJob.

    It has workers alone. With a master the operator would make them wait by a container of its
    own, whose image it pulls from Docker Hub, and call the job done when that one pod is.
    """
    if plan.service_port is not None:
        # The operator's own Services know no pod before it is ready.
        first = {names.JOB_LABEL: plan.name, kubeflow.REPLICA_INDEX: "0"}
        yield meeting_service(plan, plan.service_port, first)
    yield {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {**workload_metadata(plan), **_annotations(plan)},
        "spec": {
            "runPolicy": {
                # The operator adds up the restarts of all containers.
                "backoffLimit": plan.restarts * plan.pods,
                # Pods of a job that failed would hold their nodes; those that ended keep their log.
                "cleanPodPolicy": "Running",
                "ttlSecondsAfterFinished": plan.ttl_seconds_after_finished,
                **deadline(plan),
            },
            "pytorchReplicaSpecs": {
                "Worker": {
                    "replicas": plan.pods,
                    # The one with which HyperPod resumes jobs.
                    "restartPolicy": "OnFailure",
                    "template": pod_template(plan),
                }
            },
        },
    }


def _annotations(plan: JobPlan) -> dict[str, Json]:
    if not plan.resumed:
        return {}
    resume = {kubeflow.AUTO_RESUME: "true", kubeflow.MOST_RESUMES: str(plan.restarts)}
    return {"annotations": resume}
