"""Level `nodes`: the nodes of each pool, against the plan."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

from ultrascale.accept import jobs
from ultrascale.accept.model import Check, Cost, Run
from ultrascale.catalog import quantities, versions
from ultrascale.cluster_api.objects import Object, label
from ultrascale.documents import Json, mapping, objects, text
from ultrascale.errors import QuestionError
from ultrascale.operate.node_pools import nodes_of, unfit
from ultrascale.plan import names
from ultrascale.plan.jobs.nodes import allocatable
from ultrascale.plan.model import ClusterPlan, PoolPlan
from ultrascale.plan.needs.pools import shards_of
from ultrascale.preflight.versions import pinned_images

_GROW_MINUTES = 20
# Firmware and kernel take a share of EC2's memory that differs by type and release.
_TOLERANCE = 0.03
_GROWN_BY = ("provisioner", "cluster-autoscaler")
_OF_CAPACITY = (names.CAPACITY_LABEL, names.CAPACITY_TYPE_LABEL)
_DRIVER = "nvidia.com/cuda.driver-version.full"


def checks(plan: ClusterPlan) -> Iterator[Check]:
    """Yield the check of each pool."""
    title = "nodes have the size, labels and software of the plan"
    for pool, shards in shards_of(plan.all_pools).items():
        grown = shards[0].sized_by in _GROWN_BY and not shards[0].min_nodes
        held = (Cost(pool=pool, nodes=1, minutes=_GROW_MINUTES),) if grown else ()
        act = partial(_nodes, shards)
        yield jobs.check("nodes", "nodes", pool, title, ("planned",), act, pool=pool, held=held)


def _nodes(shards: Sequence[PoolPlan], run: Run) -> Iterator[jobs.Step]:
    pool, grown = shards[0], None
    if not (nodes := _ready(run, shards)):
        if pool.sized_by not in _GROWN_BY:
            raise QuestionError(["no node takes work, and the file sets their number"])
        if not run.grows:
            raise QuestionError(["no node takes work; --grow adds one"])
        keys: dict[str, Json] = {
            "name": f"grow-{run.id}",
            # It need not be pulled: the node is launched before.
            "image": versions.images()["nccl-tests"].reference,
            "command": ["sleep", str(_GROW_MINUTES * 60)],
            "volumes": [],
        }
        grown = jobs.Trial(run, jobs.small_job(run, pool, keys, _GROW_MINUTES), _GROW_MINUTES)
        begun = run.clock.now()
        grown.send()
        grown.wait(lambda _status, _log: bool(_ready(run, shards)))
        nodes, took = _ready(run, shards), run.clock.now() - begun
        _keep(run, "start-time", pool.pool, int(took.total_seconds()))
    if _has_type_alone(run, pool):
        smallest = min(nodes, key=lambda node: _has(node, "memory"))
        millicpu, memory_mib = (int(_has(smallest, "cpu") * 1000), _memory_mib(smallest))
        value = {"millicpu": millicpu, "memory_mib": memory_mib}
        _keep(run, "allocatable", pool.instance_types[0], value)
    whys = Counter(why for node in nodes for why in _differences(pool, node))
    differing = [f"{count} of {len(nodes)} nodes: {why}" for why, count in whys.most_common(5)]
    image, planned = _images(run, pool, nodes[0])
    if image != planned:
        differing.append(f"the first node has image {image}, planned {planned}")
    info = mapping(nodes[0], "status", "nodeInfo")
    same = (
        f"{len(nodes)} nodes, within {_TOLERANCE:.0%} of the planned size; kubelet "
        f"{info.get('kubeletVersion')}, kernel {info.get('kernelVersion')}, image "
        f"{image or 'not compared'}, driver {label(nodes[0], _DRIVER) or 'in no label'}"
    )
    yield ("differs" if differing else "pass"), "; ".join(differing) or same
    if grown is not None:
        grown.stop()


def _keep(run: Run, kind: str, of: str, value: object) -> None:
    """Keep a measured value in the form of the cluster file's key `facts`."""
    run.kept.facts.append({"fact": kind, "of": of, "value": value, "seen": f"{run.at:%Y-%m-%d}"})


def _has_type_alone(run: Run, pool: PoolPlan) -> bool:
    """Return whether a pool has one type, and no earlier pool or other provisioner has it too."""
    of_type = [own for own in run.plan.all_pools if {*own.instance_types} & {*pool.instance_types}]
    return (
        len(pool.instance_types) == 1
        and of_type[0].pool == pool.pool
        and all(own.provisioner == pool.provisioner for own in of_type)
    )


def _ready(run: Run, shards: Sequence[PoolPlan]) -> Sequence[Object]:
    return [
        node for pool in shards for node in nodes_of(run.cluster, pool) if not unfit(node, pool)
    ]


def _differences(pool: PoolPlan, node: Object) -> Iterator[str]:
    yield from _labels(pool, node)
    yield from _software(pool, mapping(node, "status", "nodeInfo"))
    own = label(node, names.INSTANCE_TYPE_LABEL)
    if own in pool.node_types:
        yield from _size(pool, pool.instance_types[pool.node_types.index(own)], node)
    else:
        yield f"instance type {own}, of {', '.join(pool.node_types)}"


def _labels(pool: PoolPlan, node: Object) -> Iterator[str]:
    for key, value in pool.labels.items():
        falls_back = pool.fallback_nodes and key in _OF_CAPACITY
        if not falls_back and label(node, key) != value:
            yield f"label {key} is {label(node, key) or 'missing'}, planned {value}"
    has = [(text(own, "key"), text(own, "effect")) for own in objects(node, "spec", "taints")]
    for taint in pool.taints:
        if (taint.key, taint.effect) not in has:
            yield f"taint {taint.key}:{taint.effect} is missing"


def _software(pool: PoolPlan, info: Object) -> Iterator[str]:
    release, kubelet = pool.kubernetes_version, text(info, "kubeletVersion")
    if not kubelet.startswith(f"v{release}."):
        yield f"kubelet {kubelet}, planned {release}"
    planned = versions.ami_release(release).kernel if pinned_images([pool]) else ""
    if not (kernel := text(info, "kernelVersion")).startswith(planned):
        yield f"kernel {kernel}, planned {planned}"


def _size(pool: PoolPlan, instance_type: str, node: Object) -> Iterator[str]:
    millicpu, memory_mib = allocatable(pool, instance_type)
    spec = pool.recorded.spec(instance_type)
    for resource, count, unit in (("cpu", millicpu, 0.001), ("memory", memory_mib, 2**20)):
        if (offered := _has(node, resource) / unit) < count * (1 - _TOLERANCE):
            words = "thousandths" if resource == "cpu" else "MiB"
            yield f"{offered:.0f} {words} of {resource}, planned {count}"
    devices = {names.EFA_INTERFACE: pool.efa_interfaces}
    if pool.accelerator is not None and spec.accelerator is not None:
        devices[pool.accelerator] = spec.accelerator.count
    for resource, count in devices.items():
        if (offered := int(_has(node, resource))) != count:
            yield f"{offered} {resource}, planned {count}"


def _memory_mib(node: Object) -> int:
    return int(_has(node, "memory")) >> 20


def _has(node: Object, resource: str) -> float:
    return float(quantities.amount(text(node, "status", "allocatable", resource) or "0"))


def _images(run: Run, pool: PoolPlan, node: Object) -> tuple[str, str]:
    """Return the image of a node and the planned one; empty where AWS is not asked, or has none."""
    instance = text(node, "spec", "providerID").rpartition("/")[2]
    pinned = [*pinned_images([pool])]
    if run.account is None or not pinned or not instance.startswith("i-"):
        return "", ""
    ask, client = run.account.ask, run.account.client
    parameters = ask(client("ssm").get_parameters, Names=pinned).get("Parameters", ())
    found = ask(client("ec2").describe_instances, InstanceIds=[instance])
    own = [each.get("ImageId", "") for one in found["Reservations"] for each in one["Instances"]]
    return next(iter(own), ""), next((each["Value"] for each in parameters), "")
