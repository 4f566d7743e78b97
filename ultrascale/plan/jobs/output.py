"""Place of a training job's output: checkpoints, metrics, traces of hangs."""

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from msgspec.structs import replace

from ultrascale import config
from ultrascale.plan import names
from ultrascale.plan.jobs import command
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.jobs.restarts import BUDGET, node_hours_of_a_restart
from ultrascale.plan.jobs.rules import rule
from ultrascale.plan.model.jobs import (
    ConfigKeyPlan,
    MountPlan,
    OutputPlan,
    OutputSource,
    PodPlan,
)

OUTPUT, NODE, POD, BUCKET = (
    "ULTRASCALE_OUTPUT",
    "ULTRASCALE_NODE",
    "ULTRASCALE_POD",
    "ULTRASCALE_BUCKET",
)
TRACES = "TORCH_FR_DUMP_TEMP_FILE"
"""Variable with the prefix of the names of NCCL's flight-recorder dumps; the rank ends them.

Source:
https://github.com/pytorch/pytorch/blob/v2.13.0/torch/csrc/distributed/c10d/FlightRecorder.hpp
"""
OLDER_TRACES = "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"
"""Name of the same variable in older releases, which the newer ones still read."""

_FOLDER = "output"
_TRACES_FOLDER = "flight-recorder"
# A bucket is no file system of the pod: dumps lie on the node's disk there.
_LOCAL_TRACES = f"/tmp/{_TRACES_FOLDER}"
_S3 = "s3://"
# Our programs, and their options for it: another program's options have unknown meanings.
PROGRAMS = frozenset(
    {
        *("ultrascale_bert.pretrain", "ultrascale_training.pretrain"),
        *("ultrascale_training.titan", "ultrascale_training.posttrain"),
    }
)
"""Our programs, which read the place and print a line of progress."""
_OPTIONS = ("--output-dir", "--output_dir")

Place = tuple[str, str]
"""A place, and the key of the job that states it."""


def plan_output(request: JobRequest) -> OutputPlan | None:
    """Return the place of a job's output; None where it keeps none.

    A file system comes before a bucket: it takes checkpoints faster, and any program can write
    there. A mounted bucket comes last: torch can write no checkpoint into one.
    """
    job = request.job
    if not isinstance(job, config.TrainingJob) or request.precompile:
        return None
    stated = _stated_place(job)
    if stated is not None:
        return _output_at(request, stated[0])
    return _default(request) if job.durable else None


@rule
def output_outlives_its_pods(request: JobRequest) -> Iterator[config.Mistake]:
    """Yield output of a job that would end with its pods, or that its pods may not write."""
    job = request.job
    if not isinstance(job, config.TrainingJob) or request.precompile or not request.leads:
        return
    output, stated = plan_output(request), _stated_place(job)
    if output is not None and output.source == "s3":
        yield from _bucket_without_rights(
            request, job, output, "output" if stated is None else stated[1]
        )
    if not job.durable:
        return
    if output is None:
        wrong = (
            "checkpoints would be lost with their pods: the job has no writable volume, and the "
            f"cluster file no bucket {names.CHECKPOINTS_BUCKET}"
        )
        todo = (
            "add a claim of storage.lustre, a volume, or the bucket; to keep nothing, write "
            "durable: false"
        )
        yield config.refuse("durable", wrong, todo, got="", kind="undurable")
    elif output.source == "pod" and stated is not None:
        places = ", ".join(mount.mount_path for mount in _writable(request))
        where = f"put it under {places}" if places else "add a volume"
        wrong = "on no writable volume of the job, so lost with its pod"
        todo = f"{where}, or write durable: false"
        yield config.refuse(stated[1], wrong, todo, got=repr(stated[0]), kind="undurable")


def notes_of(request: JobRequest) -> Iterator[str]:
    """Yield the steps that a job's program has to take for its output."""
    output = plan_output(request)
    if output is None or output.source != "s3":
        return
    job = request.job
    ours = isinstance(job, config.TrainingJob) and job.script in PROGRAMS
    if not ours:
        yield (
            f"Its output belongs into {shown(output)}, which ${OUTPUT} names: the program has to "
            "write there by torch.distributed.checkpoint's S3 writer, as what it writes elsewhere "
            "ends with its pods."
        )


def shown(output: OutputPlan) -> str:
    """Return a place as a user reads it: a bucket of the cluster file by its name there."""
    if output.bucket is None:
        return output.place
    return output.place.replace(f"$({BUCKET})", output.bucket)


def root_of(output: OutputPlan) -> str:
    """Return the bucket or the claim of a place."""
    if output.source == "s3":
        return "/".join(shown(output).split("/")[:3])
    return output.place if output.claim is None else f"claim {output.claim}"


def with_output(pod: PodPlan, job: config.TrainingJob, output: OutputPlan | None) -> PodPlan:
    """Return pods with the place of their output, and their budget of restarts, as variables."""
    env = {BUDGET: f"{node_hours_of_a_restart(job):g}"}
    settings: dict[str, ConfigKeyPlan] = {}
    if output is not None:
        env |= {OUTPUT: output.place, **dict.fromkeys((TRACES, OLDER_TRACES), _traces(output))}
        if output.bucket is not None:
            settings[BUCKET] = ConfigKeyPlan(
                name=names.bucket_config(output.bucket), key=names.BUCKET_NAME_KEY
            )
    account = pod.service_account
    if output is not None and output.bucket is not None:
        account = account or names.OUTPUT_ACCOUNT
    return replace(
        pod,
        env={**env, **pod.env},
        settings={**pod.settings, **settings},
        service_account=account,
    )


def fields() -> Mapping[str, str]:
    """Return variables of a training pod with its name and its node, as fields of the pod."""
    return {NODE: "spec.nodeName", POD: "metadata.name"}


def folder_of_traces(output: OutputPlan) -> str:
    """Return the folder of flight-recorder dumps, which torch does not make by itself."""
    if output.source == "s3":
        return _LOCAL_TRACES
    return f"{output.place}/{_TRACES_FOLDER}"


def _traces(output: OutputPlan) -> str:
    return f"{folder_of_traces(output)}/rank_"


def _stated_place(job: config.TrainingJob) -> Place | None:
    """Return the place that a job states, first by an argument of a program of ours."""
    if job.script in (*PROGRAMS, command.NEURON_SFT):
        for number, word in enumerate(job.args):
            name, equals, value = word.partition("=")
            if name not in _OPTIONS:
                continue
            if equals:
                return value, f"args.{number}"
            if number + 1 < len(job.args):
                return job.args[number + 1], f"args.{number + 1}"
    return (job.output, "output") if job.output is not None else None


def _output_at(request: JobRequest, place: str) -> OutputPlan:
    if place.startswith(_S3):
        bucket, slash, prefix = place.removeprefix(_S3).partition("/")
        if bucket not in request.cluster.storage.bucket_names:
            return OutputPlan(place=command.literal(place.rstrip("/")), source="s3")
        return _in_bucket(bucket, prefix if slash and prefix else _prefix(request))
    path = PurePosixPath(place)
    for mount in _writable(request):
        if path.is_relative_to(mount.mount_path):
            source = _source(request, mount)
            return OutputPlan(place=command.literal(place), source=source, claim=mount.claim)
    return OutputPlan(place=command.literal(place), source="pod")


def _default(request: JobRequest) -> OutputPlan | None:
    mounts: dict[MountPlan, OutputSource] = {
        mount: _source(request, mount) for mount in _writable(request)
    }
    on_disk = next((mount for mount, source in mounts.items() if source != "bucket"), None)
    has_bucket = names.CHECKPOINTS_BUCKET in request.cluster.storage.bucket_names
    if on_disk is None and has_bucket:
        return _in_bucket(names.CHECKPOINTS_BUCKET, _prefix(request))
    mount = on_disk or next(iter(mounts), None)
    if mount is None:
        return None
    place = f"{mount.mount_path}/{_FOLDER}/{request.name}"
    return OutputPlan(place=place, source=mounts[mount], claim=mount.claim)


def _in_bucket(bucket: str, prefix: str) -> OutputPlan:
    place = f"{_S3}$({BUCKET})/{command.literal(prefix.rstrip('/'))}"
    return OutputPlan(place=place, source="s3", bucket=bucket)


def _prefix(request: JobRequest) -> str:
    return f"{request.namespace}/{request.name}"


def _writable(request: JobRequest) -> tuple[MountPlan, ...]:
    return tuple(mount for mount in request.mounts if not mount.read_only)


def _source(request: JobRequest, mount: MountPlan) -> OutputSource:
    """Return the storage behind a mount; ``claim`` where the cluster file does not make it."""
    for claim in request.mounted_claims:
        if claim.name == mount.claim:
            return claim.source
    return "claim"


def _bucket_without_rights(
    request: JobRequest, job: config.TrainingJob, output: OutputPlan, key: str
) -> Iterator[config.Mistake]:
    if job.service_account is not None or output.bucket == names.CHECKPOINTS_BUCKET:
        return
    known = names.CHECKPOINTS_BUCKET in request.cluster.storage.bucket_names
    instead = f"use s3://{names.CHECKPOINTS_BUCKET}, or name" if known else "name"
    wrong = "pods of jobs have no rights on this bucket"
    todo = f"{instead} a service_account of yours with EKS Pod Identity for it"
    yield config.refuse(key, wrong, todo, got=repr(shown(output)))


def traces_of(request: JobRequest) -> str | None:
    """Return the folder of a job's flight-recorder dumps; None where there is none."""
    place = plan_output(request)
    return None if place is None else folder_of_traces(place)
