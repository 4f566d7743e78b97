"""Objects of Volcano's kinds that Volcano 1.15.1 accepts, one of each kind, and what it refuses."""

import copy
from collections.abc import Mapping
from typing import Any

Document = Mapping[str, Any]

POD: Document = {
    "metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}, "labels": {"app": "llm"}},
    "spec": {
        "restartPolicy": "OnFailure",
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "containers": [
            {
                "name": "train",
                "image": "registry.example/train:1",
                "command": ["torchrun"],
                "resources": {"limits": {"nvidia.com/gpu": 8, "hugepages-2Mi": "5120Mi"}},
                "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],
            }
        ],
        "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "512Gi"}}],
    },
}
JOB_SPEC: Document = {
    "schedulerName": "volcano",
    "queue": "research",
    "priorityClassName": "high-priority",
    "minAvailable": 64,
    "maxRetry": 10,
    "ttlSecondsAfterFinished": 86400,
    "plugins": {"svc": ["--disable-network-policy=true"], "env": [], "pytorch": ["--port=23456"]},
    "networkTopology": {"mode": "soft"},
    "policies": [
        {"event": "PodEvicted", "action": "RestartJob"},
        {"events": ["PodFailed", "Unknown"], "action": "RestartJob", "timeout": "10m"},
        {"exitCode": 137, "action": "RestartTask"},
        {"event": "TaskCompleted", "action": "CompleteJob"},
    ],
    "volumes": [{"mountPath": "/data", "volumeClaimName": "fsx-claim"}],
    "tasks": [
        {"name": "master", "replicas": 1, "template": POD},
        {
            "name": "worker",
            "replicas": 63,
            "minAvailable": 32,
            "template": POD,
            "dependsOn": {"name": ["master"], "iteration": "any"},
            "topologyPolicy": "best-effort",
            "partitionPolicy": {"totalPartitions": 8, "partitionSize": 8},
        },
    ],
}
SELECTOR: Document = {
    "labelMatch": {"matchLabels": {"topology.k8s.aws/network-node-layer-3": "nn"}}
}


def manifest(kind: str, api: str, **fields: Any) -> dict[str, Any]:
    whole = {"apiVersion": f"{api}", "kind": kind, "metadata": {"name": "example"}, **fields}
    return copy.deepcopy(whole)


def job(**changes: Any) -> dict[str, Any]:
    return manifest("Job", "batch.volcano.sh/v1alpha1", spec={**JOB_SPEC, **changes})


def hyper_node(*selectors: Document) -> dict[str, Any]:
    members = [{"type": "Node", "selector": each} for each in selectors]
    spec = {"tier": 1, "tierName": "layer-3", "members": members}
    return manifest("HyperNode", "topology.volcano.sh/v1alpha1", spec=spec)


EXACT = {"exactMatch": {"name": "node-1"}}
SUBGROUP: Document = {
    "name": "replica",
    "labelSelector": {"matchExpressions": [{"key": "role", "operator": "Exists"}]},
    "matchLabelKeys": ["replica"],
    "subGroupSize": 2,
    "networkTopology": {"mode": "hard", "highestTierAllowed": 1},
}
GOOD: dict[str, Document] = {
    "job": job(),
    "job without a queue": manifest("Job", "batch.volcano.sh/v1alpha1", spec={"minAvailable": 1}),
    "job with a claim": job(volumes=[{"mountPath": "/x", "volumeClaim": {"accessModes": ["RWX"]}}]),
    "cron job": manifest(
        "CronJob",
        "batch.volcano.sh/v1alpha1",
        spec={
            "schedule": "0 3 * * *",
            "jobTemplate": {"spec": JOB_SPEC},
            "timeZone": "Etc/UTC",
            "suspend": True,
            "concurrencyPolicy": "Forbid",
            "startingDeadlineSeconds": 60,
        },
    ),
    "job flow": manifest(
        "JobFlow",
        "flow.volcano.sh/v1alpha1",
        spec={
            "jobRetainPolicy": "retain",
            "flows": [
                {"name": "prepare"},
                {
                    "name": "train",
                    "dependsOn": {
                        "targets": ["prepare"],
                        "probe": {
                            "httpGetList": [{"path": "/ready", "port": 8080, "taskName": "master"}],
                            "tcpSocketList": [{"port": 22}],
                            "taskStatusList": [{"taskName": "master", "phase": "Running"}],
                        },
                    },
                    "patch": {"jobSpec": {"minAvailable": 2}},
                },
            ],
        },
    ),
    "job template": manifest("JobTemplate", "flow.volcano.sh/v1alpha1", spec=JOB_SPEC),
    "pod group": manifest(
        "PodGroup",
        "scheduling.volcano.sh/v1beta1",
        spec={
            "minMember": 4,
            "minResources": {"cpu": "8", "nvidia.com/gpu": 32},
            "minTaskMember": {"worker": 4},
            "subGroupPolicy": [SUBGROUP],
        },
    ),
    "queue": manifest(
        "Queue",
        "scheduling.volcano.sh/v1beta1",
        spec={
            "weight": 10,
            "reclaimable": True,
            "priority": 100,
            "capability": {"aws.amazon.com/neuron": "2048", "cpu": 96},
            "deserved": {"aws.amazon.com/neuron": "1024"},
            "guarantee": {"resource": {"aws.amazon.com/neuron": "256"}},
            "parent": "root",
            "affinity": {
                "nodeGroupAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": ["gpu"]}
            },
            "extendClusters": [{"name": "other", "weight": 1, "capacity": {"cpu": "4"}}],
        },
    ),
    "hyper node": hyper_node(SELECTOR, EXACT, {"regexMatch": {"pattern": "^n-.*"}}),
    "command": manifest(
        "Command",
        "bus.volcano.sh/v1alpha1",
        action="AbortJob",
        target={"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "x", "uid": "1"},
    ),
    "numatopology": manifest(
        "Numatopology",
        "nodeinfo.volcano.sh/v1alpha1",
        spec={
            "policies": {"topologyPolicy": "restricted"},
            "numares": {"cpu": {"allocatable": "0-95", "capacity": 96}},
            "cpuDetail": {"0": {"numa": 0, "socket": 0, "core": 0}},
            "resReserved": {"cpu": "1"},
        },
    ),
    "node shard": manifest(
        "NodeShard", "shard.volcano.sh/v1alpha1", spec={"nodesDesired": ["node-1"]}
    ),
    "colocation configuration": manifest(
        "ColocationConfiguration",
        "config.volcano.sh/v1alpha1",
        spec={"selector": {"matchLabels": {"app": "x"}}, "memoryQos": {"highRatio": 90}},
    ),
}

# What is not a bound of one field, which is compared with upstream's.
BAD: dict[str, Document] = {
    "pod without containers": job(tasks=[{"name": "a", "template": {"spec": {}}}]),
    "no quantity": manifest(
        "Queue", "scheduling.volcano.sh/v1beta1", spec={"capability": {"cpu": "lots"}}
    ),
    "hyper node with two selectors": hyper_node({**SELECTOR, **EXACT}),
    "hyper node with an empty selector": hyper_node({}),
}
