"""KubeRay's own samples of RayJobs beside ours: each difference has a reason.

`ray_samples.yaml` has the fields of each sample of one RayJob, without values and pods, whose own
are held against a JobSet's in `test_ray`:
https://github.com/ray-project/kuberay/tree/v1.7.0/ray-operator/config/samples
"""

from collections.abc import Iterator
from typing import Any

import yaml

from tests.jobs.test_ray import sent
from tests.support.folders import DATA

SAMPLES: dict[str, str] = yaml.safe_load((DATA / "ray_samples.yaml").read_text())
# Fields that ours state beside a sample (+), and that a sample states and ours do not (-).
REASONS = {
    "+submissionMode": "no pod beside the head has to be placed, and the head has the output",
    "+shutdownAfterJobFinishes": "an ended job would hold its nodes, and Kueue refuses it",
    "+ttlSecondsAfterFinished": "nodes go at once",
    "+backoffLimit": "restarts.job, 0 where it is not stated",
    "+preRunningDeadlineSeconds": "two jobs that wait for each other's nodes would hold them",
    "+authOptions": "whoever reaches port 8265 without a token runs code",
    "+entrypoint": "a job that waits for a person holds nodes",
    "+rayClusterSpec": "a job on a cluster that is there is counted by no queue",
    "+rayVersion": "it decides whether there are tokens",
    "+headGroupSpec": "a job on a cluster that is there has none",
    "+workerGroupSpecs": "one node, or a cluster that is there: ours may have none too",
    "+workerGroupSpecs.minReplicas": "refused without, where nothing scales",
    "+workerGroupSpecs.maxReplicas": "refused without, where nothing scales",
    "-clusterSelector": "a job on a cluster that is there is counted by no queue",
    "-deletionStrategy": "nodes go at the end",
    "-submitterPodTemplate": "refused beside SidecarMode",
    "-runtimeEnvYAML": "packages are in the image: a closed network has no index",
    "-jobId": "KubeRay's own",
    "-entrypointNumCpus": "the head's pod bounds it",
    "-entrypointNumGpus": "the head's pod bounds it",
    "-entrypointResources": "the head's pod bounds it",
    "-headGroupSpec.headService": "it decides who reaches the dashboard",
    "-headGroupSpec.rayStartParams": "KubeRay reads devices, CPU, memory and host from the pod",
    "-workerGroupSpecs.rayStartParams": "resources of TPUs",
    "-workerGroupSpecs.numOfHosts": "hosts of TPUs; the API server adds 1",
}


def fields(spec: dict[str, Any]) -> Iterator[str]:
    """Yield the fields of a RayJob, of its cluster, and of its groups, where they say something."""
    cluster: Any = spec.get("rayClusterSpec", {})
    yield from spec.keys() | cluster.keys()
    heads = [cluster["headGroupSpec"]] if "headGroupSpec" in cluster else []
    workers = cluster.get("workerGroupSpecs", [])
    for name, groups in (("headGroupSpec", heads), ("workerGroupSpecs", workers)):
        for group in groups:
            yield from (f"{name}.{key}" for key, value in group.items() if value != {})


def test_ours_differ_from_upstream_samples_for_reasons_alone() -> None:
    ours, differing = {*fields(sent("none")[-1]["spec"])}, set[str]()
    for theirs in (set(sample.split()) for sample in SAMPLES.values()):
        differing |= {f"-{key}" for key in theirs - ours}
        differing |= {
            f"+{key}" for key in ours - theirs if key.partition(".")[0] in theirs or "." not in key
        }
    assert differing == REASONS.keys()
