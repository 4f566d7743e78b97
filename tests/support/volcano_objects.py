"""Objects of Volcano's kinds: those that Volcano 1.15.1 accepts, and those that it refuses."""

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


def cron_job(**changes: Any) -> dict[str, Any]:
    spec = {"schedule": "0 3 * * *", "jobTemplate": {"spec": JOB_SPEC}, **changes}
    return manifest("CronJob", "batch.volcano.sh/v1alpha1", spec=spec)


def job_flow(**flow: Any) -> dict[str, Any]:
    spec = {"jobRetainPolicy": "retain", "flows": [{"name": "prepare"}, {"name": "train", **flow}]}
    return manifest("JobFlow", "flow.volcano.sh/v1alpha1", spec=spec)


def pod_group(**changes: Any) -> dict[str, Any]:
    spec = {"minMember": 4, "minResources": {"cpu": "8", "nvidia.com/gpu": 32}, **changes}
    return manifest("PodGroup", "scheduling.volcano.sh/v1beta1", spec=spec)


def queue(**spec: Any) -> dict[str, Any]:
    return manifest("Queue", "scheduling.volcano.sh/v1beta1", spec=spec)


def hyper_node(**changes: Any) -> dict[str, Any]:
    members = [{"type": "Node", "selector": SELECTOR}]
    spec = {"tier": 1, "tierName": "layer-3", "members": members, **changes}
    return manifest("HyperNode", "topology.volcano.sh/v1alpha1", spec=spec)


def members(selector: Document) -> list[Document]:
    return [{"type": "Node", "selector": selector}]


GOOD: dict[str, Document] = {
    "job": job(),
    "job without a queue": manifest("Job", "batch.volcano.sh/v1alpha1", spec={"minAvailable": 1}),
    "job with a claim": job(volumes=[{"mountPath": "/x", "volumeClaim": {"accessModes": ["RWX"]}}]),
    "cron job": cron_job(),
    "cron job with everything": cron_job(
        timeZone="Etc/UTC", suspend=True, concurrencyPolicy="Forbid", startingDeadlineSeconds=60
    ),
    "job flow": job_flow(
        dependsOn={
            "targets": ["prepare"],
            "probe": {
                "httpGetList": [{"path": "/ready", "port": 8080, "taskName": "master"}],
                "tcpSocketList": [{"port": 22}],
                "taskStatusList": [{"taskName": "master", "phase": "Running"}],
            },
        },
        patch={"jobSpec": {"minAvailable": 2}},
    ),
    "job template": manifest("JobTemplate", "flow.volcano.sh/v1alpha1", spec=JOB_SPEC),
    "pod group": pod_group(minTaskMember={"worker": 4}),
    "pod group with subgroups": pod_group(
        subGroupPolicy=[
            {
                "name": "replica",
                "labelSelector": {"matchExpressions": [{"key": "role", "operator": "Exists"}]},
                "matchLabelKeys": ["replica"],
                "subGroupSize": 2,
                "networkTopology": {"mode": "hard", "highestTierAllowed": 1},
            }
        ]
    ),
    "queue": queue(
        weight=10,
        reclaimable=True,
        priority=100,
        capability={"aws.amazon.com/neuron": "2048", "cpu": 96},
        deserved={"aws.amazon.com/neuron": "1024"},
        guarantee={"resource": {"aws.amazon.com/neuron": "256"}},
        parent="root",
    ),
    "queue with node groups": queue(
        affinity={"nodeGroupAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": ["gpu"]}},
        extendClusters=[{"name": "other", "weight": 1, "capacity": {"cpu": "4"}}],
    ),
    "hyper node by label": hyper_node(),
    "hyper node by name": hyper_node(members=members({"exactMatch": {"name": "node-1"}})),
    "hyper node by pattern": hyper_node(members=members({"regexMatch": {"pattern": "^n-.*"}})),
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

BAD: dict[str, Document] = {
    "negative minAvailable": job(minAvailable=-1),
    "minSuccess of zero": job(minSuccess=0),
    "no tasks": job(tasks=[]),
    "unknown event": job(policies=[{"event": "PodExploded", "action": "RestartJob"}]),
    "unknown event in a list": job(policies=[{"events": ["PodExploded"], "action": "RestartJob"}]),
    "unknown topology mode": job(networkTopology={"mode": "firm"}),
    "negative tier": job(networkTopology={"highestTierAllowed": -1}),
    "queue name in capitals": job(queue="Research"),
    "plugin arguments as text": job(plugins={"svc": "--port=1"}),
    "text for a number": job(maxRetry="three"),
    "task name with a dot": job(tasks=[{"name": "a.b", "template": POD}]),
    "negative replicas": job(tasks=[{"name": "a", "replicas": -1, "template": POD}]),
    "pod without containers": job(tasks=[{"name": "a", "template": {"spec": {}}}]),
    "unknown NUMA policy": job(tasks=[{"name": "a", "template": POD, "topologyPolicy": "most"}]),
    "half a partition policy": job(
        tasks=[{"name": "a", "template": POD, "partitionPolicy": {"partitionSize": 2}}]
    ),
    "volume without a path": job(volumes=[{"volumeClaimName": "x"}]),
    "volume path with a colon": job(volumes=[{"mountPath": "/a:b"}]),
    "cron job without a schedule": manifest(
        "CronJob", "batch.volcano.sh/v1alpha1", spec={"jobTemplate": {"spec": JOB_SPEC}}
    ),
    "unknown concurrency": cron_job(concurrencyPolicy="Queue"),
    "wrong job in a cron job": cron_job(jobTemplate={"spec": {"minAvailable": -1}}),
    "flow without a name": manifest(
        "JobFlow", "flow.volcano.sh/v1alpha1", spec={"flows": [{"dependsOn": {}}]}
    ),
    "probe port too high": job_flow(dependsOn={"probe": {"tcpSocketList": [{"port": 70000}]}}),
    "probe without a port": job_flow(dependsOn={"probe": {"tcpSocketList": [{}]}}),
    "wrong job in a flow": job_flow(patch={"jobSpec": {"tasks": []}}),
    "negative minMember": pod_group(minMember=-1),
    "subgroup of nobody": pod_group(subGroupPolicy=[{"subGroupSize": 0}]),
    "no quantity": pod_group(minResources={"cpu": "eight"}),
    "half a label requirement": pod_group(
        subGroupPolicy=[{"labelSelector": {"matchExpressions": [{"key": "role"}]}}]
    ),
    "queue weight of zero": queue(weight=0),
    "queue weight too high": queue(weight=65536),
    "negative queue priority": queue(priority=-1),
    "unknown dequeue strategy": queue(dequeueStrategy="lifo"),
    "capability of no quantity": queue(capability={"cpu": "lots"}),
    "hyper node without a tier": manifest(
        "HyperNode", "topology.volcano.sh/v1alpha1", spec={"members": members(SELECTOR)}
    ),
    "hyper node without members": hyper_node(members=[]),
    "hyper node with two selectors": hyper_node(
        members=members({**SELECTOR, "exactMatch": {"name": "node-1"}})
    ),
    "hyper node with an empty selector": hyper_node(members=members({})),
    "hyper node member of no kind": hyper_node(members=[{"selector": SELECTOR}]),
    "hyper node member of another kind": hyper_node(members=[{"type": "Rack"}]),
    "hyper node name in capitals": hyper_node(members=members({"exactMatch": {"name": "Node"}})),
    "command at nobody": manifest("Command", "bus.volcano.sh/v1alpha1", target={"kind": "Job"}),
    "shard without a spec": manifest("NodeShard", "shard.volcano.sh/v1alpha1"),
    "memory ratio above all": manifest(
        "ColocationConfiguration",
        "config.volcano.sh/v1alpha1",
        spec={"memoryQos": {"highRatio": 101}},
    ),
}
