"""Level `nodes`: the nodes of each pool, against the plan."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from ultrascale import catalog
from ultrascale.accept import trial
from ultrascale.accept.model import Check, Cost, Run
from ultrascale.catalog import eks, kubernetes, quantities, versions
from ultrascale.catalog.versions import images
from ultrascale.cluster_api.objects import Object, label, name
from ultrascale.documents import Json, objects, text
from ultrascale.errors import ClusterError, ConfigError
from ultrascale.findings import Finding, Issue, finding
from ultrascale.operate.node_pools import nodes_of, unfit
from ultrascale.plan import names
from ultrascale.plan.model import ClusterPlan, PoolPlan
from ultrascale.preflight.versions import pinned_images

GROW_MINUTES = 20
"""Most minutes for which a node is held that a pool is grown by."""

# Firmware and kernel take a share of EC2's memory that differs by type and release; two nodes of a
# type differ by less than 1 %.
_TOLERANCE = 0.03
_MOST_SHOWN = 3
_DRIVER = "nvidia.com/cuda.driver-version.full"
_GROWN_BY = ("provisioner", "cluster-autoscaler")
_KINDS = ("size", "labels", "software")


def checks(plan: ClusterPlan) -> Iterator[Check]:
    """Yield the check of each pool."""
    shards: dict[str, list[PoolPlan]] = {}
    for pool in plan.all_pools:
        shards.setdefault(pool.pool, []).append(pool)
    for pool, own in shards.items():
        grown = own[0].sized_by in _GROWN_BY and not own[0].min_nodes
        yield Check(
            level="nodes",
            name="nodes",
            subject=pool,
            title="nodes have the size, labels and software of the plan",
            pool=pool,
            run=partial(_nodes, own),
            costs=(Cost(pool=pool, nodes=1, minutes=GROW_MINUTES),) if grown else (),
            leaves="a job with a deadline, and its node until its provisioner takes it",
        )


def _nodes(shards: Sequence[PoolPlan], run: Run) -> Iterator[Finding]:
    pool, grown = shards[0], None
    nodes = _ready(run, shards)
    if not nodes and run.grows:
        try:
            grown = trial.Trial(run, _growing_job(run, pool), GROW_MINUTES)
            grown.send()
            grown.wait(lambda _status, _log: bool(_ready(run, shards)))
        except (ConfigError, ClusterError) as error:
            yield from _none(pool, f"it has no node, and got none: {error}")
            return
        nodes = _ready(run, shards)
    if not nodes:
        told = "; --grow adds one" if pool.sized_by in _GROWN_BY else ", and the file sets its size"
        yield from _none(pool, f"it has no node that takes work{told}")
        return
    release = _image_of_release(run, pool)
    for kind, differences in (
        ("size", partial(_size, run, pool)),
        ("labels", partial(_labels, pool)),
        ("software", partial(_software, pool, _images(run, nodes), release)),
    ):
        told = Counter(why for node in nodes for why in differences(node))
        issues = [
            Issue(state="differs", evidence=f"{count} of {len(nodes)} nodes: {why}", fix=_FIX)
            for why, count in told.most_common(_MOST_SHOWN)
        ]
        yield finding(
            f"nodes-{kind}", pool.pool, issues, fine=_fine(kind, nodes, release, run.account)
        )
    if grown is not None:
        grown.stop()


_FIX = "find out who changed them, or have them replaced: `ultrascale roll`"


def _none(pool: PoolPlan, why: str) -> Iterator[Finding]:
    for kind in _KINDS:
        yield Finding(check=f"nodes-{kind}", subject=pool.pool, state="not run", evidence=why)


def _ready(run: Run, shards: Sequence[PoolPlan]) -> Sequence[Object]:
    return [
        node for pool in shards for node in nodes_of(run.cluster, pool) if not unfit(node, pool)
    ]


def _growing_job(run: Run, pool: PoolPlan) -> trial.JobManifests:
    """Return a job for which the provisioner launches a node; its image need not be pulled."""
    stated: dict[str, Json] = {
        "name": f"grow-{run.id}",
        "image": images()["nccl-tests"].reference,
        "command": ["sleep", str(GROW_MINUTES * 60)],
        "volumes": [],
        "deadline_hours": GROW_MINUTES / 60,
        "ttl_seconds_after_finished": trial.KEPT_SECONDS,
    }
    return trial.small_job(run, pool, stated)


def _size(run: Run, pool: PoolPlan, node: Object) -> Iterator[str]:
    """Yield resources of a node that differ from the plan; keep the measured ones."""
    own_type = label(node, names.INSTANCE_TYPE_LABEL)
    types = dict(zip(pool.node_types, pool.instance_types, strict=True))
    if own_type not in types:
        yield f"instance type {own_type}, of {', '.join(types)}"
        return
    given = {
        resource: quantities.amount(text(node, "status", "allocatable", resource) or "0")
        for resource in ("cpu", "memory", names.EFA_INTERFACE, pool.accelerator or "cpu")
    }
    spec = catalog.lookup(types[own_type])
    aside = spec.accelerator is not None and pool.facts.sets_huge_pages_aside
    planned = {
        "cpu": kubernetes.allocatable_millicpu(spec.vcpus),
        "memory": kubernetes.allocatable_mib(
            spec.memory_mib,
            max_pods=eks.advised_max_pods(spec.vcpus),
            huge_pages_mib=eks.HUGE_PAGES_MIB if aside and not pool.is_auto_mode else 0,
        ),
    }
    seen = {"cpu": int(given["cpu"] * 1000), "memory": int(given["memory"] / 2**20)}
    fact = {"fact": "allocatable", "of": types[own_type], "seen": f"{run.at:%Y-%m-%d}"}
    value = {"millicpu": seen["cpu"], "memory_mib": seen["memory"]}
    if {**fact, "value": value} not in run.kept.facts:
        run.kept.facts.append({**fact, "value": value})
    for resource, unit in (("cpu", "m"), ("memory", "Mi")):
        if seen[resource] < planned[resource] * (1 - _TOLERANCE):
            yield f"{seen[resource]}{unit} {resource}, of {planned[resource]}{unit} planned"
    devices = {names.EFA_INTERFACE: pool.efa_interfaces}
    if pool.accelerator is not None and spec.accelerator is not None:
        devices[pool.accelerator] = spec.accelerator.count
    for resource, count in devices.items():
        if int(given[resource]) != count:
            yield f"{int(given[resource])} {resource}, of {count} planned"


def _labels(pool: PoolPlan, node: Object) -> Iterator[str]:
    for key, value in pool.labels.items():
        if (own := label(node, key)) != value and not (
            pool.fallback_nodes and key in (names.CAPACITY_LABEL, names.CAPACITY_TYPE_LABEL)
        ):
            yield f"label {key} is {own or 'missing'}, planned {value}"
    has = {
        (text(taint, "key"), text(taint, "value"), text(taint, "effect"))
        for taint in objects(node, "spec", "taints")
    }
    for taint in pool.taints:
        if (taint.key, taint.value, taint.effect) not in has:
            yield f"taint {taint.key}={taint.value}:{taint.effect} is missing"


def _software(
    pool: PoolPlan, image_ids: Mapping[str, str], release: str, node: Object
) -> Iterator[str]:
    kubelet = _info(node, "kubeletVersion")
    if not kubelet.startswith(f"v{pool.kubernetes_version}."):
        yield f"kubelet {kubelet}, planned {pool.kubernetes_version}"
    own = image_ids.get(name(node), "")
    if release and own != release:
        yield f"image {own or 'unknown'}, planned {release} ({pool.ami_release})"
    planned = versions.ami_releases().get(pool.kubernetes_version)
    kernel = _info(node, "kernelVersion")
    if pinned_images([pool]) and planned and not kernel.startswith(f"{planned.kernel}."):
        yield f"kernel {kernel}, planned {planned.kernel}"


def _info(node: Object, key: str) -> str:
    return text(node, "status", "nodeInfo", key)


def _fine(kind: str, nodes: Sequence[Object], release: str, account: object) -> str:
    node = nodes[0]
    if kind == "size":
        offered = (
            f"{text(node, 'status', 'allocatable', key)} {key}"
            for key in ("cpu", "memory", names.NVIDIA_GPU, names.NEURON_DEVICE, names.EFA_INTERFACE)
            if text(node, "status", "allocatable", key)
        )
        return f"{len(nodes)} nodes, within {_TOLERANCE:.0%} of the plan: {', '.join(offered)}"
    if kind == "labels":
        return f"{len(nodes)} nodes have all planned labels and taints"
    driver = label(node, _DRIVER) or "not told by a label"
    image = release or ("the plan has no image of EKS" if account else "AWS was not asked")
    return (
        f"kubelet {_info(node, 'kubeletVersion')}, kernel {_info(node, 'kernelVersion')}, "
        f"image {image}, driver {driver}"
    )


def _image_of_release(run: Run, pool: PoolPlan) -> str:
    """Return the id of the planned image; empty where AWS is not asked, or names none.

    Raises:
        UnansweredError: AWS does not answer.
    """
    if run.account is None or not (pinned := [*pinned_images([pool])]):
        return ""
    answer = run.account.ask(run.account.client("ssm").get_parameters, Names=pinned)
    return next((text(found, "Value") for found in objects(answer, "Parameters")), "")


def _images(run: Run, nodes: Sequence[Object]) -> Mapping[str, str]:
    """Return the image of each node's instance, by the node's name.

    Raises:
        UnansweredError: AWS does not answer.
    """
    instances = {text(node, "spec", "providerID").rpartition("/")[2]: name(node) for node in nodes}
    ids = [instance for instance in instances if instance.startswith("i-")]
    if run.account is None or not ids:
        return {}
    found: dict[str, str] = {}
    ask = run.account.client("ec2").describe_instances
    for start in range(0, len(ids), 100):
        answer = run.account.ask(ask, InstanceIds=ids[start : start + 100])
        for reservation in objects(answer, "Reservations"):
            for instance in objects(reservation, "Instances"):
                found[instances[text(instance, "InstanceId")]] = text(instance, "ImageId")
    return found
