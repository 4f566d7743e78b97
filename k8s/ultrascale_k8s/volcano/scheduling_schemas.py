"""Schemas of the kinds for scheduling and for nodes.

Source: https://github.com/volcano-sh/volcano/tree/v1.15.1/config/crd
"""

from ultrascale_k8s.volcano.schema import (
    DNS_NAME_PATTERN,
    Schema,
    array,
    boolean,
    integer,
    label_selector,
    mapping,
    obj,
    quantity,
    resource,
    string,
)


def network_topology() -> Schema:
    """Return how far apart in the network the pods of a gang may be."""
    return obj(
        {
            "mode": string(default="hard", enum=["hard", "soft"]),
            "highestTierAllowed": integer(minimum=0, bits=None),
            "highestTierName": string(max_length=253),
        }
    )


def queue_name() -> Schema:
    """Return the schema of the name of the queue that a gang waits in."""
    return string(default="default", max_length=253, pattern=DNS_NAME_PATTERN)


def pod_group() -> Schema:
    """Return the schema of a PodGroup: pods that start together or not at all."""
    sub_group = obj(
        {
            "name": string(max_length=253),
            "labelSelector": label_selector(),
            "matchLabelKeys": array(string(), atomic=True),
            "subGroupSize": integer(minimum=1, default=1),
            "minSubGroups": integer(minimum=0, default=0),
            "networkTopology": network_topology(),
        }
    )
    return resource(
        obj(
            {
                "minMember": integer(minimum=0),
                "minTaskMember": mapping(integer()),
                "minResources": mapping(quantity()),
                "queue": queue_name(),
                "priorityClassName": string(max_length=253),
                "networkTopology": network_topology(),
                "subGroupPolicy": array(sub_group),
            }
        )
    )


def queue() -> Schema:
    """Return the schema of a Queue: a share of the cluster."""
    groups = array(string())
    affinity = obj(
        {
            "requiredDuringSchedulingIgnoredDuringExecution": groups,
            "preferredDuringSchedulingIgnoredDuringExecution": groups,
        }
    )
    extend_cluster = obj(
        {"name": string(), "weight": integer(), "capacity": mapping(quantity())},
    )
    return resource(
        obj(
            {
                "weight": integer(minimum=1, maximum=65535, default=1),
                "capability": mapping(quantity()),
                "deserved": mapping(quantity()),
                "guarantee": obj({"resource": mapping(quantity())}),
                "reclaimable": boolean(),
                "priority": integer(minimum=0),
                "parent": string(max_length=253, pattern=DNS_NAME_PATTERN),
                "dequeueStrategy": string(default="traverse", enum=["fifo", "traverse"]),
                "type": string(max_length=253),
                "affinity": obj({"nodeGroupAffinity": affinity, "nodeGroupAntiAffinity": affinity}),
                "extendClusters": array(extend_cluster),
            }
        )
    )


def hyper_node() -> Schema:
    """Return the schema of a HyperNode: nodes, or HyperNodes, that are close in the network."""
    exact = string(min_length=1, max_length=253, pattern=DNS_NAME_PATTERN)
    selector = obj(
        {
            "exactMatch": obj({"name": exact}, required=["name"]),
            "regexMatch": obj({"pattern": string(min_length=1)}, required=["pattern"]),
            "labelMatch": label_selector(),
        },
        rules={
            "a member's selector is exactly one of exactMatch, regexMatch and labelMatch": (
                "(has(self.exactMatch) ? 1 : 0) + (has(self.regexMatch) ? 1 : 0)"
                " + (has(self.labelMatch) ? 1 : 0) == 1"
            )
        },
    )
    member = obj(
        {"type": string(enum=["Node", "HyperNode"]), "selector": selector}, required=["type"]
    )
    return resource(
        obj(
            {
                "tier": integer(minimum=0, bits=None),
                "tierName": string(max_length=253),
                "members": array(member, min_items=1),
            },
            required=["tier"],
        )
    )


def command() -> Schema:
    """Return the schema of a Command: an action asked of a Job or a Queue."""
    target = obj(
        {
            "apiVersion": string(),
            "kind": string(),
            "name": string(),
            "uid": string(),
            "controller": boolean(),
            "blockOwnerDeletion": boolean(),
        },
        required=["apiVersion", "kind", "name", "uid"],
        atomic=True,
    )
    return obj({"action": string(), "message": string(), "reason": string(), "target": target})


def numatopology() -> Schema:
    """Return the schema of a Numatopology: the NUMA layout of one node."""
    count = integer(minimum=0, bits=None)
    numa_resource = obj({"allocatable": string(), "capacity": integer(bits=None)})
    return obj(
        {
            "spec": obj(
                {
                    "policies": mapping(string()),
                    "resReserved": mapping(string()),
                    "numares": mapping(numa_resource),
                    "cpuDetail": mapping(obj({"numa": count, "socket": count, "core": count})),
                }
            )
        }
    )


def node_shard() -> Schema:
    """Return the schema of a NodeShard: the nodes that one scheduler looks after."""
    spec = obj({"nodesDesired": array(string())}, required=["nodesDesired"])
    return resource(spec, required=True)


def colocation_configuration() -> Schema:
    """Return the schema of a ColocationConfiguration: memory quality of service of pods."""
    memory_qos = {
        "lowRatio": integer(minimum=0, maximum=100, default=0, bits=None),
        "highRatio": integer(minimum=0, maximum=100, default=100, bits=None),
        "minRatio": integer(minimum=0, maximum=100, default=0, bits=None),
    }
    spec = obj({"selector": label_selector(), "memoryQos": obj(memory_qos)})
    return resource(spec, required=True)
