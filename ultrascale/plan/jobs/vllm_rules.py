"""Options of vLLM that contradict the service that states them, or that vLLM refuses."""

from collections.abc import Iterator

from ultrascale import config
from ultrascale.catalog import registries, runtime_environment, serving_memory
from ultrascale.catalog import vllm as facts
from ultrascale.plan import names
from ultrascale.plan.jobs import vllm
from ultrascale.plan.jobs.nodes import NodeShare
from ultrascale.plan.jobs.rules import rule
from ultrascale.plan.jobs.vllm import VllmOptions

Mistakes = Iterator[config.Mistake]
_BLOCKS = "--num-gpu-blocks-override"


@rule
def options_suit_the_service(job: config.ServiceJob) -> Mistakes:
    """Yield the mistakes in the options of ``job``, wherever its nodes are."""
    if config.server_of(job) != "vllm":
        return
    options = vllm.options_of(job)
    if options.refused:
        todo = "write it as `vllm serve --help=all` says"
        yield config.refuse(
            options_key(job), f"vLLM would not start: {options.refused}", todo, got=""
        )
        return
    yield from _options_are_words(job, options)
    yield from _address_is_reached(job, options)
    yield from _cache_suits_graphs(job, options)
    if options.model is None and _states_all(job, options):
        problem = "no model: vLLM would load one of its own choice from Hugging Face"
        yield config.refuse(options_key(job), problem, "add --model=PATH", got="")
    if job.nodes > 1 and options.distributed_executor_backend not in (None, "mp"):
        problem = "--distributed-executor-backend: nodes of a replica meet by mp, without Ray"
        got = options.distributed_executor_backend
        yield config.refuse(options_key(job), problem, "leave it out", got=got)


def _cache_suits_graphs(job: config.ServiceJob, options: VllmOptions) -> Mistakes:
    """Yield a KV cache that is not stated as NxD Inference compiles it into its graphs.

    Without prefix caching it holds each sequence as one block, else blocks of a stated size.
    vLLM itself counts the memory of a GPU: its blocks would lie beyond the cache.

    Sources:
        https://awsdocs-neuron.readthedocs-hosted.com/en/latest/libraries/nxd-inference/developer_guides/vllm-user-guide-v1.html#known-issues
        https://github.com/vllm-project/vllm-neuron/blob/0.2.0/vllm_neuron/platform.py
    """
    release = vllm.neuron_release(job)
    if release is None or release >= serving_memory.NEURON_PLUGIN_SINCE:
        return
    if not _states_all(job, options):
        return
    problem = "the KV cache for which NxD Inference compiles graphs is not stated"
    sequences, blocks = options.max_num_seqs, options.num_gpu_blocks_override
    is_uncached = options.enable_prefix_caching is False
    if options.block_size is not None and not is_uncached:
        if blocks is None:
            yield config.refuse(options_key(job), problem, f"add {_BLOCKS}=N", got="")
        return
    count = sequences or blocks or "N"
    missing = [
        *([] if is_uncached else ["--no-enable-prefix-caching"]),
        *([] if sequences else [f"--max-num-seqs={count}"]),
        *([] if blocks else [f"{_BLOCKS}={count}"]),
    ]
    if missing:
        yield config.refuse(options_key(job), problem, f"add {' '.join(missing)}", got="")
    elif blocks != sequences:
        yield config.refuse(
            options_key(job), problem, f"write {_BLOCKS}={sequences}", got=str(blocks)
        )


@rule(severity="warning")
def options_are_known(job: config.ServiceJob) -> Mistakes:
    """Yield options that vLLM does not know; another release may, so they are not refused."""
    if config.server_of(job) != "vllm":
        return
    if job.command and not vllm.starts_vllm(job.command):
        return
    for place, word in vllm.options_of(job).unknown:
        in_args = place - len(job.command)
        at = ("command", place) if in_args < 0 else ("args", in_args)
        option = word.partition("=")[0]
        problem = f"not an option of vLLM {facts.VERSION}: it would not start"
        near = vllm.nearest_option(option)
        meant = "" if near is None else f"did you mean {near}? "
        todo = f"{meant}`vllm serve --help=all` in the image says what another release has"
        yield config.Mistake(at, problem, todo, got=option)


@rule
def options_suit_the_nodes(job: config.ServiceJob, share: NodeShare) -> Mistakes:
    """Yield an image for other nodes, and parallel sizes that do not divide a replica's devices.

    Source: https://docs.vllm.ai/en/latest/serving/parallelism_scaling.html
    """
    yield from _image_suits_nodes(job, share)
    if (options := _sizing_options(job, share)) is None:
        return
    taken, devices = options.accelerators, share.processes * job.nodes
    if devices % taken or taken % job.nodes:
        problem = f"{_sizes(options)} takes {taken} {_noun(share)}, where a replica has {devices}"
        yield config.refuse(options_key(job), problem, _all_devices(job, share), got="")


def _image_suits_nodes(job: config.ServiceJob, share: NodeShare) -> Mistakes:
    """Yield an image whose vLLM finds no device of its own on the nodes."""
    reference = registries.parse_reference(job.image or "")
    if reference is None or config.server_of(job) != "vllm":
        return
    on_neuron = share.accelerator == names.NEURON_DEVICE
    if facts.NEURON_IMAGE in reference.repository and not on_neuron:
        problem = "vLLM for Neuron, on nodes without NeuronCores"
        todo = "name a pool of Trainium or Inferentia, or an image for its nodes"
        yield config.refuse("image", problem, todo)
    if reference.repository.endswith(facts.GPU_IMAGES) and on_neuron:
        problem = "vLLM for NVIDIA GPUs, on nodes with NeuronCores"
        todo = f"name a pool of GPUs, or an image of {facts.NEURON_IMAGE}"
        yield config.refuse("image", problem, todo)


def notes_of(job: config.ServiceJob, share: NodeShare) -> Iterator[str]:
    """Yield devices of a replica that stay idle, and graphs that each start compiles."""
    if config.server_of(job) == "vllm" and share.accelerator == names.NEURON_DEVICE:
        yield from _compiles(job)
    yield from _reads_s3(job)
    if job.env.get(facts.LOADS_ADAPTERS, "0") not in ("", "0") and job.most_replicas > 1:
        yield (
            f"{facts.LOADS_ADAPTERS}: an adapter that a client loads is on one of up to "
            f"{job.most_replicas:,} replicas, and on none after its restart; the others answer "
            "404. --lora-modules loads it everywhere."
        )
    for mistake in options_are_known(job):
        yield f"{mistake.got} is {mistake.wrong}; {mistake.todo}."
    if (options := _sizing_options(job, share)) is None:
        return
    taken, devices = options.accelerators, share.processes * job.nodes
    if devices % taken == 0 and taken < devices:
        yield (
            f"vLLM takes {taken} of the {devices} {_noun(share)} of a replica, by "
            f"{_sizes(options)}: {_all_devices(job, share)}{_smaller_request(job, taken, share)}."
        )


def _compiles(job: config.ServiceJob) -> Iterator[str]:
    """Yield that each start compiles, where the job names no folder of compiled graphs.

    Source: https://awsdocs-neuron.readthedocs-hosted.com/en/latest/libraries/nxd-inference/developer_guides/vllm-user-guide-v1.html
    """
    if runtime_environment.COMPILED_GRAPHS not in job.env:
        yield (
            "Each start compiles graphs for Neuron, for a quarter of an hour and more: env "
            f"{runtime_environment.COMPILED_GRAPHS} names a folder that holds compiled ones."
        )


def _reads_s3(job: config.ServiceJob) -> Iterator[str]:
    """Yield that vLLM cannot read its model from S3: pods have no permissions of their nodes."""
    model = vllm.options_of(job).model if config.server_of(job) == "vllm" else None
    own = (*job.env, *job.secrets)
    stated = job.service_account is not None or any(name.startswith("AWS_") for name in own)
    if model is not None and model.startswith("s3://") and not stated:
        yield (
            f"Pods have no permissions in AWS to read {model}: service_account names an account "
            "that has them by EKS Pod Identity, or a claim of the bucket mounts it."
        )


def _sizing_options(job: config.ServiceJob, share: NodeShare) -> VllmOptions | None:
    """Return the options that decide on the devices of ``job``; None where others may."""
    if config.server_of(job) != "vllm" or not share.accelerators:
        return None
    options = vllm.options_of(job)
    return options if _states_all(job, options) else None


def _states_all(job: config.ServiceJob, options: VllmOptions) -> bool:
    """Return whether ``options`` are all: a file in the image, or a program, may state others."""
    return options.config is None and (not job.command or vllm.starts_vllm(job.command))


def _noun(share: NodeShare) -> str:
    return "logical NeuronCores" if share.accelerator == names.NEURON_DEVICE else "GPUs"


def _sizes(options: VllmOptions) -> str:
    """Return the parallel sizes in words; those that few services have, where they are stated."""
    sizes = f"tensor {options.tensor_parallel_size} x pipeline {options.pipeline_parallel_size}"
    if options.data_parallel_size > 1:
        sizes += f" x data {options.data_parallel_size}"
    if options.prefill_context_parallel_size > 1:
        sizes += f" x prefill context {options.prefill_context_parallel_size}"
    return sizes


def _all_devices(job: config.ServiceJob, share: NodeShare) -> str:
    """Return the remedy that uses all devices of a replica."""
    spans = f" and --pipeline-parallel-size={job.nodes}" if job.nodes > 1 else ""
    return f"write --tensor-parallel-size={share.processes}{spans}"


def _smaller_request(job: config.ServiceJob, taken: int, share: NodeShare) -> str:
    """Return the remedy for pods that ask for more devices than their options use."""
    key = "neuron" if share.accelerator == names.NEURON_DEVICE else "gpu"
    devices, rest = divmod(taken, share.processes // share.accelerators)
    return "" if rest or job.nodes > 1 else f", or resources: {{{key}: {devices}}}"


def _options_are_words(job: config.ServiceJob, options: VllmOptions) -> Mistakes:
    """Yield options with their value in one word, which vLLM does not know."""
    if not _states_all(job, options):
        return
    for place, word in options.unknown:
        if " " in word.partition("=")[0]:
            key = "command" if place < len(job.command) else "args"
            todo = "write " + "=".join(word.split(maxsplit=1))
            yield config.refuse(key, "an option and its value in one word", todo, got=word)


def _address_is_reached(job: config.ServiceJob, options: VllmOptions) -> Mistakes:
    """Yield an address at which neither probes nor clients reach the server."""
    if options.port is not None and options.port != job.port:
        todo = f"write port: {options.port}, or leave --port out"
        yield config.refuse("port", f"not the port that --port states, {options.port}", todo)
    words = vllm.serve_command(job)
    stated = vllm.read_options(words).port is not None or options.config is not None
    if vllm.starts_vllm(words) and not stated and job.port != facts.PORT:
        problem = f"not the default port of vLLM, {facts.PORT}"
        todo = f"write port: {facts.PORT}, or add --port={job.port} to {options_key(job)}"
        yield config.refuse("port", problem, todo)
    if options.host in facts.LOCAL_HOSTS or (options.host or "").startswith("127."):
        problem = "--host is an address that nobody outside of the pod reaches"
        yield config.refuse(options_key(job), problem, "write --host=0.0.0.0", got=options.host)
    for name in options.unreached:
        problem = f"--{name.replace('_', '-')}: {facts.UNREACHED[name]}"
        todo = "leave it out"
        if name.startswith("ssl"):
            todo += ": serving.front ends TLS at the address of the cluster"
        yield config.refuse(options_key(job), problem, todo, got="")
    local, spans = options.data_parallel_size_local, options.nnodes or 1
    if local not in (None, options.data_parallel_size):
        problem = "not all engines of --data-parallel-size, and it waits for the others"
        yield config.refuse(options_key(job), problem, "leave it out", got=str(local))
    if job.nodes == 1 and spans > 1:
        problem = "--nnodes: it waits for pods that the service does not have"
        yield config.refuse(options_key(job), problem, f"write nodes: {spans} instead", got="")


def options_key(job: config.ServiceJob) -> str:
    """Return the key that holds the options of ``job``."""
    return "args" if job.args else "command"
