"""Recipes of post-training by TRL: their programs, and the mistakes that would cost nodes.

Source: https://github.com/huggingface/trl/tree/v1.16.0/trl
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType

import msgspec

from ultrascale import config
from ultrascale.catalog import advisories
from ultrascale.catalog.transformers import Transformer
from ultrascale.frozen import Frozen
from ultrascale.parts.recipes import memory
from ultrascale.parts.recipes.memory import FROZEN_BYTES, Division, MemoryPlan
from ultrascale.parts.recipes.options import Option, is_of_kind
from ultrascale.parts.recipes.section import METHOD_OF, Method, model_of, recipe_of
from ultrascale.plan.jobs.command import NEURON_SFT
from ultrascale.plan.jobs.devices import Device, smallest_device
from ultrascale.plan.jobs.nodes import NodeShare
from ultrascale.plan.jobs.output import plan_output
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.jobs.rules import Nodes, Roles, WrongKeys, rule
from ultrascale.plan.model.jobs import ProgramPlan

Mistakes = Iterator[config.Mistake]

ENGINE = "TRL 1.16.0"
NEURON_TRAINER = METHOD_OF["sft"].trainium
PROGRAM = "ultrascale_training.posttrain"
TRAINER, ROLLOUT = "trainer", "rollout"
_SERVER = ("python3", "-m", "trl.scripts.vllm_serve")
EVALUATION = ("python3", "-m", "ultrascale_training.evaluate")
_COMMANDS = ((), _SERVER, EVALUATION)
_PORT = 8000
# The server may still pull its image and read a model when the trainer asks for it.
_PATIENCE_SECONDS = 1800
VLLM = "0.31.0"
"""Release of vLLM in the image: the newest that TRL accepts."""
_GIB = 2**30
# Defaults of TRL and transformers, as of the releases in the image.
_BATCH, _LENGTH, _ANSWER, _GROUP, _SHARE_OF_ANSWERS = 8, 1024, 256, 8, 0.3
_RECORDS = ("trl_options.txt", "neuron_options.txt")
# As in its examples; without packing it fills rows up with tokens that its loss counts.
_NEURON_DEGREE = {"AWS Trainium": 8, "AWS Trainium2": 4}
_ON_NEURON = ("--packing=True", "--bf16=True", "--report_to=none", "--skip_cache_push=True")
MODEL, DATA, TEACHER = "model_name_or_path", "dataset_name", "teacher_model_name_or_path"
_OUTPUT, _DEGREE = "output_dir", "tensor_parallel_size"
# Flag of our own program.
_ACCEPT = "accept_new_data"


class Stated(Frozen, kw_only=False):
    """Options of a job in TRL's words; the last of a name wins."""

    by_name: Mapping[str, Option]

    def text(self, name: str) -> str | None:
        """Return the value of an option; None where it is not stated."""
        option = self.by_name.get(name)
        return None if option is None else option.value

    def number(self, name: str, default: int) -> int:
        """Return an option that is a whole number; the default in place of any other value."""
        text = self.text(name) or ""
        return int(text) if text.isdecimal() else default

    def at(self, name: str) -> str:
        """Return the key of an option's value; the arguments' own where it is not stated."""
        return f"args.{self.by_name[name].at}" if name in self.by_name else "args"


def stated_in(args: Sequence[str]) -> Stated:
    """Return the options in ``args``: `--max_steps=5`, `--max-steps 5` and so on."""
    options: dict[str, Option] = {}
    for at, word in enumerate(args):
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            after = args[at + 1] if at + 1 < len(args) else ""
            value = value if equals else "" if after.startswith("--") else after
            options[name.replace("-", "_")] = Option(at=at, value=value)
    return Stated(options)


@cache
def known_options(script: str) -> Mapping[str, str]:
    """Return the kinds of options by name, by TRL's parser; `neuron` by its own, of 2026-11-30."""
    texts = (Path(__file__).with_name(name).read_text("utf-8") for name in _RECORDS)
    lines = (line.split() for text in texts for line in text.splitlines())
    return MappingProxyType(
        {
            name: kind
            for kind, scripts, *names in lines
            if (scripts == "all" and script != "neuron") or script in scripts.split(",")
            for name in names
        }
    )


def plan_posttraining(request: JobRequest, share: NodeShare | None) -> ProgramPlan | None:
    """Return the program of a job of post-training; None where it has none."""
    job, method = request.job, method_of(request)
    if method is None or not isinstance(job, config.TrainingJob):
        return None
    images = [build.repository for build in request.builds if build.dockerfile == "posttrain"]
    image = job.image or (images[0] if len(images) == 1 else None)
    if request.role == ROLLOUT:
        model = trained_model(request)
        words = [f"--port={_PORT}"]
        if model is not None and "model" not in stated_in(job.args).by_name:
            words.append(f"--model={model}")
        device = None if share is None else smallest_device(share, request.nodes)
        if device is not None and _DEGREE not in stated_in(job.args).by_name:
            words.append(f"--{_DEGREE}={device.count}")
        return ProgramPlan(
            script=None, image=image, command=_SERVER, args=() if share is None else tuple(words)
        )
    if not method.script:
        return ProgramPlan(script=None, image=image, command=EVALUATION, args=("--engine=vllm",))
    device = None if share is None else smallest_device(share, request.nodes)
    if device is None:
        return ProgramPlan(script=PROGRAM, image=image)
    if device.is_neuron:
        return _on_trainium(method, job, device)
    stated = stated_in(job.args)
    args = [method.script, *method.options]
    if method.name == "grpo":
        args += ["--use_vllm=True", *_generation(request)]
    devices = job.nodes * (job.processes_per_node or device.count)
    if devices > 1 and "fsdp" not in stated.by_name:
        args.append("--fsdp")
    model, adapters = model_of(job), bool(method.options)
    size = 0 if model is None else memory.checkpoint_bytes(model, adapters=adapters)
    return ProgramPlan(
        script=PROGRAM,
        image=image,
        args=tuple(args),
        model="" if model is None else model.name,
        steps=stated.number("max_steps", 0),
        interval_option="--save_steps",
        checkpoint_bytes=size,
        kept=stated.number("save_total_limit", 3),
        notes=tuple(_notes(method, job, device)),
    )


def _on_trainium(method: Method, job: config.TrainingJob, device: Device) -> ProgramPlan:
    note = (
        f"Recipe {method.name} ({NEURON_TRAINER}) {method.does}: not run by us, memory not known. "
        "Restarts begin at the first step. `optimum-cli neuron consolidate` makes shards a model."
    )
    tensor = min(device.count, _NEURON_DEGREE.get(device.name, 1))
    args = (*method.options, *_ON_NEURON, f"--{_DEGREE}={tensor}")
    return ProgramPlan(script=NEURON_SFT, image=job.image, args=args, notes=(note,))


def method_of(request: JobRequest) -> Method | None:
    """Return the method of a job, or of its roles that train and generate."""
    job = request.job
    if request.role not in (None, TRAINER, ROLLOUT) or job.command not in _COMMANDS:
        return None
    return METHOD_OF.get(recipe_of(job) or "")


def trained_model(request: JobRequest) -> str | None:
    """Return the model of the trainer beside a role; None where none is stated."""
    whole = request.whole
    args = whole.roles[TRAINER].args if whole is not None and TRAINER in whole.roles else ()
    return stated_in(args).text(MODEL)


def _generation(request: JobRequest) -> Iterator[str]:
    if request.role is None:
        yield "--vllm_mode=colocate"
        return
    yield "--vllm_mode=server"
    yield f"--vllm_server_port={_PORT}"
    yield f"--vllm_server_timeout={_PATIENCE_SECONDS}"


def _notes(method: Method, job: config.TrainingJob, device: Device) -> Iterator[str]:
    model = model_of(job)
    if model is None:
        yield (
            f"Recipe {method.name} ({ENGINE}) {method.does}; its memory is checked where `submit` "
            "can read the folder of its model, else name the model by `model`."
        )
    else:
        plan = memory_of(method, model, job, device)
        yield (
            f"Recipe {method.name} ({ENGINE}) {method.does}: {model.name}, "
            f"{plan.total / _GIB:,.0f} of {plan.device / _GIB:,.0f} GiB of each device."
        )
    yield (
        f"A row of its data has {method.rows}. It saves every"
        f" {stated_in(job.args).text('save_steps') or 500} steps (--save_steps)."
    )
    if method.name == "grpo":
        known = ", ".join(item.id for item in advisories.advisories_of("vllm", VLLM, {*()}))
        yield (
            f"vLLM {VLLM}, the newest that {ENGINE} accepts, is under {known}; its server asks for "
            "no key: let no other pods reach the job's."
        )


def memory_of(
    method: Method, model: Transformer, job: config.TrainingJob, device: Device
) -> MemoryPlan:
    """Return the memory of a device; answers count as long as their prompts."""
    stated = stated_in(job.args)
    answers = method.name in ("grpo", "distill")
    length = stated.number("max_length", _LENGTH)
    if answers:
        length = 2 * stated.number("max_completion_length", _ANSWER)
    shard = job.nodes * (job.processes_per_node or device.count)
    recomputed = (stated.text("gradient_checkpointing") or "True").lower() not in ("false", "0")
    division = Division(
        adapters=bool(method.options),
        tensor=1,
        pipeline=1,
        context=1,
        expert=1,
        shard=shard,
        replicate=1,
        sequence=length,
        local_batch=method.sequences * stated.number("per_device_train_batch_size", _BATCH),
        recomputation="full" if recomputed else "none",
        loss_chunks=1,
    )
    plan = memory.memory_of(model, division, device_bytes=device.memory_bytes)
    frozen = method.frozen_models * FROZEN_BYTES * model.parameters // shard
    left = 1 - _SHARE_OF_ANSWERS if method.name == "grpo" and job.role != TRAINER else 1
    return msgspec.structs.replace(
        plan, states=plan.states + frozen, device=int(plan.device * left)
    )


@rule
def posttraining_suits_its_nodes(
    request: JobRequest, share: NodeShare, pools: Nodes, wrong_keys: WrongKeys
) -> Mistakes:
    """Yield nodes, options and memory with which a method would fail."""
    method, job = method_of(request), request.job
    if method is None or not isinstance(job, config.TrainingJob) or "args" in wrong_keys:
        return
    device, stated = smallest_device(share, pools), stated_in(job.args)
    if device is None:
        yield config.refuse("recipe", "a recipe for GPUs, and its nodes have none", "choose a pool")
    elif device.is_neuron and (not method.trainium or device.name not in _NEURON_DEGREE):
        problem = f"no library that we know has {method.name} for {device.name}"
        yield config.refuse("recipe", problem, "use GPUs; sft and sft-lora train on Trn1 and Trn2")
    elif not method.script:
        yield from _evaluation(job, stated)
    elif request.role == ROLLOUT:
        yield from _rollout(job, device, stated)
    else:
        yield from _options("neuron" if device.is_neuron else method.script, job.args)
        yield from _needs(method, stated)
        yield from _places(request, stated)
        yield from _batches(method, job, device, stated)
        if device.is_neuron:
            yield from _neuron_layout(job, device, stated)
        if (model := model_of(job)) is not None:
            yield from memory_mistakes(method, model, job, device)


def memory_mistakes(
    method: Method, model: Transformer, job: config.TrainingJob, device: Device
) -> Mistakes:
    """Yield a model that does not fit its devices, or that the library of them lacks."""
    plan = memory_of(method, model, job, device)
    if device.is_neuron:
        if model.model_type not in ("llama", "qwen3"):
            lack = f"{NEURON_TRAINER} has no parallel {model.name}"
            yield config.refuse("recipe", lack, "use GPUs")
    elif not plan.fits:
        problem = (
            f"{model.name} takes {plan.total / _GIB:,.1f} of {plan.device / _GIB:,.1f} usable "
            f"GiB on an {device.name}"
        )
        todo = "write more nodes, or --per_device_train_batch_size=1 with accumulation"
        yield config.refuse("recipe", problem, todo)


@rule
def roles_train_and_generate(request: JobRequest, roles: Roles) -> Mistakes:
    """Yield a job of `grpo` with roles, of which none trains or none generates."""
    if recipe_of(request.job) == "grpo":
        for name in {TRAINER, ROLLOUT} - {role.role for role in roles}:
            yield config.refuse("roles", f"grpo has no role {name}", f"add {name}", got="")


def _options(script: str, args: Sequence[str]) -> Mistakes:
    known, own = known_options(script), NEURON_TRAINER if script == "neuron" else ENGINE
    for name, option in stated_in(args).by_name.items():
        kind = known.get(name, "FLAG" if (name, own) == (_ACCEPT, ENGINE) else "")
        place, value = f"args.{option.at}", option.value
        if not kind:
            problem = f"not an option of {own} for {script}"
            yield config.refuse(place, problem, config.near(f"--{name}", {f"--{n}" for n in known}))
        elif kind != "FLAG" and "$(" not in value:
            optional = kind[-1] == "?" or kind == "BOOL"
            kinds = kind.rstrip("*?").split("|")
            if not (optional and not value) and not any(is_of_kind(value, one) for one in kinds):
                yield config.refuse(place, f"not a value of --{name}", f"write {kind}")


def _neuron_layout(job: config.TrainingJob, device: Device, stated: Stated) -> Mistakes:
    devices = job.nodes * (job.processes_per_node or device.count)
    group = stated.number(_DEGREE, min(device.count, _NEURON_DEGREE[device.name])) or 1
    group *= stated.number("pipeline_parallel_size", 1) or 1
    if devices % group:
        problem = f"tensor x pipeline = {group} does not divide the {devices} NeuronCores"
        yield config.refuse(stated.at(_DEGREE), problem, "write a divisor")
    yield from heads_mistakes(model_of(job), stated)


def _needs(method: Method, stated: Stated) -> Mistakes:
    for name in (MODEL, DATA, *method.needs):
        if name not in stated.by_name and "config" not in stated.by_name:
            yield config.refuse("args", f"{method.name} without --{name}", f"add --{name}", got="")
    rewards = {"reward_funcs", "reward_model_name_or_path", "config"}
    if method.name == "grpo" and rewards.isdisjoint(stated.by_name):
        todo = "add --reward_funcs=MODULE.FUNCTION of a package in the image or on a volume"
        yield config.refuse("args", "grpo without a reward", todo, got="")


def _places(request: JobRequest, stated: Stated) -> Mistakes:
    output = plan_output(request.with_program(plan_posttraining(request, None)))
    if output is not None and output.source == "s3":
        problem = "TRL writes to folders, and this output would be in S3"
        yield config.refuse("recipe", problem, f"add a volume, and --{_OUTPUT}=FOLDER on it")
    if request.cluster.network.egress != "none":
        return
    reports = stated.text("report_to") or "none"
    if reports not in ("none", "tensorboard"):
        problem = "reports to a service outside, and the network is closed"
        yield config.refuse(stated.at("report_to"), problem, "write none, or tensorboard")
    pushes = stated.text("push_to_hub")
    if pushes is not None and pushes.lower() not in ("false", "0", "no"):
        problem = "pushes to a hub outside, and the network is closed"
        yield config.refuse(stated.at("push_to_hub"), problem, "leave it out")


def _batches(method: Method, job: config.TrainingJob, device: Device, stated: Stated) -> Mistakes:
    if job.min_nodes is not None:
        problem = "order of the data and batch follow from the number of workers"
        yield config.refuse("min_nodes", problem, "leave it out")
    if method.name != "grpo" or "generation_batch_size" in stated.by_name:
        return
    batch, group = stated.number("per_device_train_batch_size", _BATCH), "num_generations"
    passes = stated.number("steps_per_generation", stated.number("gradient_accumulation_steps", 1))
    answers = batch * passes * job.nodes * (job.processes_per_node or device.count)
    of_a_prompt = stated.number(group, _GROUP)
    if answers % of_a_prompt:
        problem = f"{of_a_prompt} answers of a prompt do not divide the {answers} of a step"
        yield config.refuse(stated.at(group), problem, f"write --{group} that divides {answers}")


def _evaluation(job: config.TrainingJob, stated: Stated) -> Mistakes:
    for name in ("model", "tasks"):
        if name not in stated.by_name:
            yield config.refuse("args", f"evaluate without --{name}", f"add --{name}", got="")
    if job.nodes > 1:
        yield config.refuse("nodes", "one program evaluates on one node", "write 1")


def _rollout(job: config.TrainingJob, device: Device, stated: Stated) -> Mistakes:
    if job.nodes > 1:
        problem = "the trainer asks the server on the first node alone: the others would idle"
        yield config.refuse("nodes", problem, "write 1")
    used = stated.number(_DEGREE, device.count) * stated.number("data_parallel_size", 1)
    if used != device.count:
        problem = f"tensor x data parallelism takes {used} GPUs, and the node has {device.count}"
        todo = f"write --{_DEGREE}={device.count}, or fewer in resources.gpu"
        yield config.refuse(stated.at(_DEGREE), problem, todo)
    else:
        yield from heads_mistakes(model_of(job), stated)


def heads_mistakes(model: Transformer | None, stated: Stated) -> Mistakes:
    """Yield a tensor parallelism of the server that does not divide a model's heads."""
    degree = max(1, stated.number(_DEGREE, 1))
    if model is not None and model.heads % degree:
        problem = f"{degree} devices cannot share the {model.heads} heads of {model.name}"
        yield config.refuse(stated.at(_DEGREE), problem, "write a divisor")
