"""Checks of nodes before a job is sent: each a job of the same shape.

A check takes the pods, the resources, the queue and the topology of the job that waits for it. So
Kueue and task governance admit it where they admit the job, and it needs no quota beyond the job's:
it has ended, and its nodes are free, before the job is sent.
"""

import base64
import json
import math
import zlib
from collections.abc import Iterator, Sequence
from importlib.resources import files

from msgspec.structs import replace

from ultrascale import config
from ultrascale.catalog import prices
from ultrascale.catalog.versions import images
from ultrascale.parts.fabric import facts
from ultrascale.parts.fabric.rounds import most_rounds
from ultrascale.plan import names
from ultrascale.plan.jobs import command, nodes, train
from ultrascale.plan.jobs.controllers import controller_of
from ultrascale.plan.jobs.deadline import with_deadline
from ultrascale.plan.jobs.nodes import NodeShare
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.jobs.rules import Nodes, rule
from ultrascale.plan.model import PoolPlan
from ultrascale.plan.model.jobs import GatePlan, GateStep, JobPlan

Check = config.PreflightCheck

NODE_VARIABLE = "ULTRASCALE_NODE"
SETTINGS_VARIABLE, GROUPS_VARIABLE = "FABRIC_SETTINGS", "FABRIC_GROUPS"

# Longest time that a check holds its nodes: images and meeting of pods take at most a third of it.
MOST_SECONDS = 2700
_LEAST_SECONDS = 600
_JOIN_SHARE = 3
_TEST_SECONDS = 120
# Between the last measurement and the end of the pods.
_END_SECONDS = 60
_DEVICE_SECONDS = 1500
_TRIES = 3
_TTL_SECONDS = 3600
# Keys of a job for its place and resources; a check takes no other.
_KEPT = frozenset(
    {
        "pool",
        "node_selector",
        "prefer",
        "priority",
        "team",
        "tolerations",
        "resources",
        "namespace",
        "kind",
        "nodes",
        "role",
        "queue",
        "topology",
    }
)
_MODULES = ("logs", "remote", "rounds", "agent")
# The modules, from their sources, in place of files in an image.
_BOOT = """\
import base64, json, os, sys, types, zlib
texts = json.loads(zlib.decompress(base64.b64decode(os.environ["FABRIC_PROGRAM"])))
for name, text in texts.items():
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(text, name, "exec"), module.__dict__)
sys.exit(module.main(sys.argv[1:]))
"""


def name_of(job: str, check: Check) -> str:
    """Return the name of the job that runs a check before ``job``."""
    return f"{job}-{check}"


@rule
def checks_can_be_made(
    request: JobRequest, share: NodeShare, pools: Nodes
) -> Iterator[config.Mistake]:
    """Yield checks that cannot be made on the nodes of a job.

    Raises:
        CatalogError: No source states a value of an instance type.
    """
    job = request.job
    if not isinstance(job, config.TrainingJob) or not job.preflight:
        return
    longest = max(len(name_of(request.name, check)) for check in job.preflight)
    if longest > config.LONGEST_JOB_NAME:
        most = config.LONGEST_JOB_NAME - (longest - len(request.name))
        wrong = f"the checks' names would be too long: {longest} characters"
        yield config.refuse("preflight", wrong, f"use a name of at most {most}", got=request.name)
    if share.accelerator is None:
        wrong = "preflight checks accelerators, and these nodes have none"
        yield config.refuse("preflight", wrong, "leave it out, or choose other nodes")
        return
    if not share.whole:
        wrong = "preflight checks whole nodes, but resources takes a part"
        yield config.refuse("preflight", wrong, "leave out preflight or resources")
    if "fabric" in job.preflight and job.nodes == 1:
        wrong = "fabric measures between nodes, and the job has one node"
        yield config.refuse("preflight", wrong, "use device, or leave it out")
    if "fabric" in job.preflight and _is_inferentia(pools):
        wrong = f"nccom-test measures between nodes of Trainium, not of {_types(pools)}"
        yield config.refuse("preflight", wrong, "use device, or leave it out")
    stated = request.cluster.scheduling.preflight.image
    if "fabric" in job.preflight and stated is None and (missing := _without_program(pools)):
        wrong = f"AWS's image of nccl-tests has no program for {', '.join(missing)}"
        todo = "name an image of your own in scheduling.preflight.image"
        yield config.refuse("preflight", wrong, todo)
    yield from _too_little_money(request, job, pools)


def _too_little_money(
    request: JobRequest, job: config.TrainingJob, pools: Sequence[PoolPlan]
) -> Iterator[config.Mistake]:
    most = request.cluster.scheduling.preflight.max_usd
    if most is None:
        return
    if (per_hour := _usd_per_hour(request, pools)) is None:
        wrong = f"no price of {_types(pools)} in {request.cluster.region} is known"
        todo = "leave scheduling.preflight.max_usd out: a check ends after 45 minutes by itself"
        yield config.refuse("preflight", wrong, todo)
    elif (seconds := _seconds(request, job, pools)) < _LEAST_SECONDS:
        cost = math.ceil(per_hour * job.nodes * _LEAST_SECONDS / 3600)
        wrong = (
            f"scheduling.preflight.max_usd: {most:g} pays {job.nodes} nodes for "
            f"{seconds // 60} minutes, and a check needs {_LEAST_SECONDS // 60}"
        )
        yield config.refuse("preflight", wrong, f"raise max_usd to {cost}, or leave it out")


def _types(pools: Sequence[PoolPlan]) -> str:
    return ", ".join(sorted({name for pool in pools for name in pool.instance_types}))


def with_checks(request: JobRequest, plan: JobPlan) -> JobPlan:
    """Return the plan of a job that has no mistakes with the checks that it asks for.

    Raises:
        CatalogError: No source states a value of an instance type.
    """
    job = request.job
    if not isinstance(job, config.TrainingJob) or not job.preflight:
        return plan
    # A node with a broken device is excluded before it spoils measurements.
    checks = sorted(job.preflight, key=("device", "fabric").index)
    steps = tuple(_step(request, job, check) for check in checks)
    again = (
        "Nodes that fail a check are cordoned, and the checks run again without them: at most "
        f"{_TRIES} times in all."
    )
    notes = (*plan.notes, *(step.note for step in steps), again)
    return replace(plan, gate=GatePlan(steps=steps, tries=_TRIES), notes=notes)


def _step(request: JobRequest, job: config.TrainingJob, check: Check) -> GateStep:
    pools = request.nodes
    share = nodes.node_share(job, pools)
    rounds, seconds = most_rounds(job.nodes), _seconds(request, job, pools)
    if check == "device":
        rounds, seconds = 1, min(seconds, _DEVICE_SECONDS)
        words, env = _device_words(share), {}
    else:
        settings = _settings(request, job, share, pools, seconds)
        words, env = ("python3", "-c", _BOOT), program() | settings
    stated = {
        "image": check_image(request.cluster, check, share.accelerator),
        "command": words,
        "env": env,
        "volumes": (),
        "durable": False,
        "restarts": config.Restarts(job=0, workers=0),
        "ttl_seconds_after_finished": _TTL_SECONDS,
        "deadline_hours": seconds / 3600,
        "grace_period_seconds": 10,
    }
    left = {
        key: field.get_default(call_default_factory=True)
        for key, field in type(job).model_fields.items()
        if key not in _KEPT
    }
    checking = job.model_copy(update=left | stated)
    as_job = replace(
        request,
        name=name_of(request.name, check),
        template=request.called,
        job=checking,
        precompile=False,
        is_check=True,
    )
    plan = with_deadline(train.plan_train(as_job, checking), checking, controller_of(as_job))
    (role,) = plan.roles
    fields = {**role.pod.fields, NODE_VARIABLE: "spec.nodeName"}
    role = replace(role, pod=replace(role.pod, fields=fields))
    per_hour = _usd_per_hour(request, pools)
    most_usd = None if per_hour is None else per_hour * job.nodes * seconds / 3600
    cost = "" if most_usd is None else f", ${most_usd:,.0f} at On-Demand prices"
    most = f"at most {seconds // 60} minutes of {job.nodes} nodes{cost}"
    judged = _threshold(floor_of(request.cluster, pools), share_of(pools))
    if check == "device":
        note = f"Check of devices: {_diagnosis(share)} on each node; {most}."
    else:
        note = f"Check of the fabric: nodes in pairs, at most {rounds} rounds; {judged}; {most}."
        if stated["image"] != request.image:
            note += f" It runs in {stated['image']}, and says nothing of the job's own image."
    return GateStep(
        check=check,
        job=replace(plan, roles=(role,), notes=(), check=check),
        seconds=seconds,
        rounds=rounds,
        most_usd=most_usd,
        note=note,
    )


def _threshold(floor: float | None, share: float | None) -> str:
    """Return the figure by which a pair fails, in words."""
    if floor is not None:
        return f"pairs below {floor:g} GB/s fail"
    unpublished = "no figure of such nodes is published"
    if share is not None:
        return f"{unpublished}: pairs below {share:.0%} of the best one fail"
    return f"{unpublished}, and they are not of one type: the transport alone is judged"


def _diagnosis(share: NodeShare) -> str:
    if share.accelerator == names.NEURON_DEVICE:
        return "neuron-ls and nccom-test"
    return "DCGM's diagnosis of level 2"


def _is_inferentia(pools: Sequence[PoolPlan]) -> bool:
    # Source: https://awsdocs-neuron.readthedocs-hosted.com/en/latest/tools/neuron-sys-tools/nccom-test.html
    return any(name.startswith("inf") for pool in pools for name in pool.instance_types)


def _without_program(pools: Sequence[PoolPlan]) -> list[str]:
    """Return the GPUs of ``pools`` for which the default image has no program."""
    accelerators = {spec.accelerator for pool in pools for spec in pool.specs}
    gpus = {
        accelerator.name
        for accelerator in accelerators
        if accelerator is not None and accelerator.kind == "nvidia"
    }
    return sorted(gpus - facts.GPUS)


def _usd_per_hour(request: JobRequest, pools: Sequence[PoolPlan]) -> float | None:
    """Return the On-Demand price of the dearest node that the job may get."""
    types = {name for pool in pools for name in pool.instance_types}
    return prices.on_demand(request.cluster.region, types)


def _seconds(request: JobRequest, job: config.TrainingJob, pools: Sequence[PoolPlan]) -> int:
    """Return the most seconds for which a check holds its nodes."""
    most, per_hour = request.cluster.scheduling.preflight.max_usd, _usd_per_hour(request, pools)
    if most is None or per_hour is None:
        return MOST_SECONDS
    return min(MOST_SECONDS, int(most / (per_hour * job.nodes) * 3600))


def check_image(cluster: config.Cluster, check: Check, accelerator: str | None) -> str:
    """Return the image of a check, by its publisher's name.

    Args:
        cluster: The cluster file.
        check: The check.
        accelerator: Extended resource of the nodes' accelerators; None without any.
    """
    settings = cluster.scheduling.preflight
    chosen = settings.image if check == "fabric" else settings.device_image
    if chosen is not None:
        return chosen
    if accelerator == names.NEURON_DEVICE:
        return images()["pytorch-neuronx"].reference
    return images()["nccl-tests" if check == "fabric" else "dcgm"].reference


def floor_of(cluster: config.Cluster, pools: Sequence[PoolPlan]) -> float | None:
    """Return the least bus bandwidth in GB/s of a pair of nodes of ``pools``; None: any."""
    stated = cluster.scheduling.preflight.floors
    types = {name for pool in pools for name in pool.instance_types}
    floors = [stated.get(name, facts.floor(name)) for name in types]
    return None if None in floors else min(filter(None, floors), default=None)


def share_of(pools: Sequence[PoolPlan]) -> float | None:
    """Return the least share of the best pair's bandwidth; None where types of nodes differ."""
    types = {name for pool in pools for name in pool.instance_types}
    return facts.SHARE_OF_BEST if len(types) == 1 else None


def _settings(
    request: JobRequest,
    job: config.TrainingJob,
    share: NodeShare,
    pools: Sequence[PoolPlan],
    seconds: int,
) -> dict[str, str]:
    neuron = share.accelerator == names.NEURON_DEVICE
    index = controller_of(request).index
    floor = floor_of(request.cluster, pools)
    said = {
        "pods": job.nodes,
        "index": index.split("+"),
        "port": command.RENDEZVOUS_PORT,
        "command": facts.NCCOM_COMMAND if neuron else facts.NCCL_COMMAND,
        "slots": share.processes,
        "floor": floor,
        "share": share_of(pools) if floor is None else None,
        "efa": share.efa_interfaces > 0,
        "join_seconds": seconds // _JOIN_SHARE,
        "test_seconds": _TEST_SECONDS,
        "seconds": seconds - seconds // _JOIN_SHARE - _END_SECONDS,
    }
    return {SETTINGS_VARIABLE: json.dumps(said)}


def program() -> dict[str, str]:
    """Return the variables that hold the program of a fabric check's pods."""
    package = "ultrascale.parts.fabric"
    folder = files(package)
    texts = {"ultrascale": "", "ultrascale.parts": "", package: ""} | {
        f"{package}.{module}": (folder / f"{module}.py").read_text("utf-8") for module in _MODULES
    }
    packed = base64.b64encode(zlib.compress(json.dumps(texts).encode(), 9)).decode()
    return {"FABRIC_BOOT": _BOOT, "FABRIC_PROGRAM": packed}


def _device_words(share: NodeShare) -> tuple[str, ...]:
    test = facts.DCGM_COMMAND
    if share.accelerator == names.NEURON_DEVICE:
        test = facts.NEURON_COMMAND.format(devices=share.accelerators, ranks=share.processes)
    return ("bash", "-c", _DIAGNOSE.format(test=test, line=facts.DEVICE_LINE, node=NODE_VARIABLE))


# The verdict is the pod's message, which its status carries; the API server takes UTF-8 alone.
_DIAGNOSE = """\
told=$(mktemp)
({test}) > "$told" 2>&1 &
tail -n +1 -f --pid=$! "$told"
wait $!; status=$?
printf '{line}{{"node": "%s", "status": %d}}\\n' "${node}" "$status" | tee /dev/termination-log
last=$( (grep -aiE 'fail|error' "$told" || cat "$told") | tail -n 1 | LC_ALL=C tr -cd ' -~')
printf '%.200s' "$last" >> /dev/termination-log
"""
