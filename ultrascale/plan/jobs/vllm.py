"""Options of vLLM in the command of a service, and the command that serves its model.

Sources:
    https://github.com/vllm-project/vllm/blob/v0.32.0/vllm/utils/argparse_utils.py
    https://docs.vllm.ai/en/latest/cli/serve.html
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from ultrascale import config
from ultrascale.catalog import image_references, vllm
from ultrascale.documents import mapping

# The module that images started before `vllm serve`; it takes the model by `--model` alone.
_MODULE = "vllm.entrypoints.openai.api_server"
_RELEASE = re.compile(r"(\d+)\.(\d+)")
_WHOLE = re.compile(r"(\d+(?:\.\d+)?)([kKmMgGtT]?)")
# Decimal by a small letter, binary by a capital.
# Source: https://github.com/vllm-project/vllm/blob/v0.32.0/vllm/utils/argparse_utils.py
_STEPS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_AUTO = ("auto", "-1")
Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongOption:
    """An option whose value vLLM refuses.

    Attributes:
        place: Index of its word in the command and arguments.
        option: Its name, such as `--tensor-parallel-size`.
        value: The value that it is given.
        wrong: The mistake, as the end of a sentence about the option.
    """

    place: int
    option: str
    value: str
    wrong: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VllmOptions:
    """Options of vLLM as a service states them; vLLM's default where it states none.

    Attributes:
        model: Path or name of the model; None where the command names none.
        served_model_names: Names by which clients ask for it; its own where none is stated.
        adapters: Names by which clients ask for its LoRA adapters.
        tensor_parallel: Accelerators that share each layer.
        pipeline_parallel: Groups of layers, one after the other.
        data_parallel: Copies of the model inside one replica.
        prefill_context_parallel: Accelerators that share a prompt.
        max_model_len: Most tokens of a prompt and its answer; None: the model's own.
        auto_length: Whether vLLM takes as many tokens as its memory holds.
        max_num_seqs: Most requests of a batch; None: by the accelerator.
        max_num_batched_tokens: Tokens of a step; None: by the accelerator.
        block_size: Tokens of a block of the KV cache; None: by the accelerator.
        kv_blocks: Blocks of the KV cache; None: as many as the memory holds.
        load_format: Way in which weights are read, or `auto`.
        safetensors_load_strategy: Order in which files of weights are read; None: as needed.
        dtype: Type of weights and activations, or `auto`.
        quantization: Method of the weights' compression; None: as the model says.
        kv_cache_dtype: Type of keys and values, or `auto`: that of the model.
        gpu_memory_utilization: Share of the accelerators' memory that vLLM takes.
        host: Address that it listens on; None: all of them.
        port: TCP port; None where the command states none, then 8000.
        nnodes: Nodes of one replica, where the command states them.
        node_rank: The pod's number among them, where the command states it.
        master_addr: Address of the first of them, where the command states it.
        executor: Way in which workers are started, such as `mp` or `ray`; None: chosen by vLLM.
        shutdown_timeout: Seconds in which requests may finish after SIGTERM; 0 aborts them.
        config: File in the image with further options, which nobody outside can read.
        root_path: Path in front of all paths; empty for none.
        ssl_keyfile: Key with which it serves TLS; None: plain HTTP.
        api_keys: Whether it asks for a key that stands in the command.
        headless: Whether it has no HTTP server.
        disable_log_stats: Whether it counts nothing, and so exposes no metrics of requests.
        enable_expert_parallel: Whether copies of the model share their experts.
        no_prefix_caching: Whether it computes prompts anew that begin alike.
        moving: Options by which the memory of a device holds another share of the model, or more.
        wrong: Options whose value vLLM refuses.
    """

    model: str | None = None
    served_model_names: tuple[str, ...] = ()
    adapters: tuple[str, ...] = ()
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    data_parallel: int = 1
    prefill_context_parallel: int = 1
    max_model_len: int | None = None
    auto_length: bool = False
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    block_size: int | None = None
    kv_blocks: int | None = None
    load_format: str = "auto"
    safetensors_load_strategy: str | None = None
    dtype: str = "auto"
    quantization: str | None = None
    kv_cache_dtype: str = "auto"
    gpu_memory_utilization: float = vllm.GPU_MEMORY_UTILIZATION
    host: str | None = None
    port: int | None = None
    nnodes: int | None = None
    node_rank: str | None = None
    master_addr: str | None = None
    executor: str | None = None
    shutdown_timeout: int = 0
    config: str | None = None
    root_path: str = ""
    ssl_keyfile: str | None = None
    api_keys: bool = False
    headless: bool = False
    disable_log_stats: bool = False
    enable_expert_parallel: bool = False
    no_prefix_caching: bool = False
    moving: tuple[str, ...] = ()
    wrong: tuple[WrongOption, ...] = ()

    @property
    def accelerators(self) -> int:
        """Accelerators, or logical NeuronCores, that one replica takes."""
        parts = self.tensor_parallel * self.pipeline_parallel * self.prefill_context_parallel
        return parts * self.data_parallel

    @property
    def names(self) -> tuple[str, ...]:
        """Names by which clients ask for the model and its adapters."""
        own = self.served_model_names or (() if self.model is None else (self.model,))
        return (*own, *self.adapters)


def options_of(job: config.ServiceJob) -> VllmOptions:
    """Return the options of vLLM in the command and arguments of ``job``."""
    if job.command and not starts_vllm(job.command):
        # A program around vLLM, which passes on its arguments.
        return read_options(job.args)
    return read_options((*job.command, *job.args))


def read_options(words: Sequence[str]) -> VllmOptions:
    """Return the options in ``words``: `vllm serve` or its module with arguments, or they alone.

    A shell's line is not read: its options count as not stated.
    """
    given: dict[str, Sequence[tuple[int, str]]] = {}
    flags: set[str] = set()
    for place, name, values in _options(words):
        if name in vllm.FLAGS:
            flags.add(name)
        else:
            # The last of several wins.
            given[name] = [(place, value) for value in values]
    values = _Values(given)
    return VllmOptions(
        model=_first_argument(words) or values.text("model"),
        served_model_names=values.texts("served_model_names"),
        adapters=tuple(filter(None, map(_adapter, values.texts("lora_modules")))),
        tensor_parallel=values.count("tensor_parallel") or 1,
        pipeline_parallel=values.count("pipeline_parallel") or 1,
        data_parallel=values.count("data_parallel") or 1,
        prefill_context_parallel=values.count("prefill_context_parallel") or 1,
        max_model_len=values.tokens("max_model_len"),
        auto_length=values.text("max_model_len") in _AUTO,
        max_num_seqs=values.count("max_num_seqs"),
        max_num_batched_tokens=values.tokens("max_num_batched_tokens"),
        block_size=values.count("block_size"),
        kv_blocks=values.count("kv_blocks"),
        load_format=values.text("load_format") or "auto",
        safetensors_load_strategy=values.text("safetensors_load_strategy"),
        dtype=values.text("dtype") or "auto",
        quantization=values.text("quantization"),
        kv_cache_dtype=values.text("kv_cache_dtype") or "auto",
        gpu_memory_utilization=values.share("gpu_memory_utilization")
        or vllm.GPU_MEMORY_UTILIZATION,
        host=values.text("host"),
        port=values.count("port"),
        nnodes=values.count("nnodes"),
        node_rank=values.text("node_rank"),
        master_addr=values.text("master_addr"),
        executor=values.text("executor"),
        shutdown_timeout=values.seconds("shutdown_timeout") or 0,
        config=values.text("config"),
        root_path=values.text("root_path") or "",
        ssl_keyfile=values.text("ssl_keyfile"),
        api_keys="api_key" in given,
        headless="headless" in flags,
        disable_log_stats="disable_log_stats" in flags,
        enable_expert_parallel="enable_expert_parallel" in flags,
        no_prefix_caching="no_prefix_caching" in flags,
        moving=tuple(each for each in _names(words) if each in _MOVING),
        wrong=tuple(values.wrong),
    )


def unknown_options(job: config.ServiceJob) -> Iterator[tuple[int, str]]:
    """Yield index in command and arguments, and name, of options that vLLM does not know.

    Arguments of another program than vLLM are not read.
    """
    words = (*job.command, *job.args)
    if job.command and not starts_vllm(job.command):
        return
    for place in range(_start(words), len(words)):
        name = _stated_name(words[place])
        if name == "--":
            return
        if name.startswith("--") and _whole_name(name) is None:
            yield place, name


def misread_option(job: config.ServiceJob) -> str | None:
    """Return an option that is likely a misspelt one of those that a plan reads; None for none."""
    for _, option in unknown_options(job):
        if vllm.nearest_option(option) in _EXACT:
            return option
    return None


def serve_command(job: config.ServiceJob) -> tuple[str, ...]:
    """Return the command that serves the model of ``job``, as its own process.

    The entrypoints of AWS's images start vLLM from a shell or from Python without passing on
    signals: as the first process of a container they leave SIGTERM out, and vLLM would end by
    SIGKILL in the middle of its requests. A stated `command` stays as it is.

    Sources:
        https://github.com/aws/deep-learning-containers/blob/e0ecedea6a1c56d6b5914f9cfb2fec5c548e67e0/scripts/docker/vllm/dockerd_entrypoint.sh
        https://github.com/aws-neuron/deep-learning-containers/blob/2be9ed1d5da9d7c8e15d7abac1eb7f550ed3a723/common/vllm_entrypoint.py
    """
    if job.command:
        return (*job.command, *job.args)
    words = job.args
    # The Neuron image's entrypoint takes the whole command as arguments.
    if (start := _start(words)) > 0:
        return words if words[1] == vllm.SERVE[1] else _served(words[start:], job.port)
    return _served(words, job.port)


def neuron_release(job: config.ServiceJob) -> tuple[int, ...] | None:
    """Return the release of vLLM in AWS's image for Neuron; None in another image."""
    reference = image_references.parse(job.image or "")
    if reference is None or vllm.NEURON_IMAGE not in reference.repository:
        return None
    release = _RELEASE.match(reference.tag or "")
    return None if release is None else tuple(map(int, release.groups()))


def starts_vllm(words: Sequence[str]) -> bool:
    """Return whether ``words`` start vLLM themselves, and not by a shell."""
    return _start(words) > 0


def _served(words: Sequence[str], port: int) -> tuple[str, ...]:
    """Return ``words`` behind `vllm serve`, the model as first of them, and the stated port."""
    options = read_options(words)
    rest = tuple(words)
    if not _first_argument(words) and options.model is not None:
        rest = (options.model, *_without_model(words))
    elsewhere = options.port is not None or options.config is not None
    # vLLM's own port is not the one at which a service is reached unless it says so.
    stated = () if elsewhere or port == vllm.PORT else (f"--port={port}",)
    return (*vllm.SERVE, *rest, *stated)


def _without_model(words: Sequence[str]) -> Iterator[str]:
    taken: set[int] = set()
    for place, name, values in _options(words):
        if name == "model":
            taken.add(place)
            if "=" not in words[place]:
                taken.update(range(place + 1, place + 1 + len(values)))
    return (word for place, word in enumerate(words) if place not in taken)


def _start(words: Sequence[str]) -> int:
    """Return the index of the first argument of vLLM; 0 where ``words`` are arguments alone."""
    for index in range(len(words) - 1):
        program = words[index].rsplit("/", 1)[-1]
        if (program, words[index + 1]) == vllm.SERVE or words[index + 1] == _MODULE:
            return index + 2
    return 0


def _first_argument(words: Sequence[str]) -> str | None:
    """Return the model that stands first, without an option; None for none."""
    start = _start(words)
    found = words[start] if len(words) > start else ""
    return None if not found or found.startswith("-") else found


def _options(words: Sequence[str]) -> Iterator[tuple[int, str, tuple[str, ...]]]:
    """Yield index, attribute and values of each option that a plan reads."""
    start = _start(words)
    for place in range(start, len(words)):
        option, equals, value = words[place].partition("=")
        if (name := _name(option)) is None:
            continue
        if name in vllm.FLAGS:
            yield place, name, ()
        elif equals:
            yield place, name, (value,)
        elif name in vllm.LISTS:
            yield place, name, tuple(_values(words[place + 1 :]))
        else:
            yield place, name, tuple(words[place + 1 : place + 2])


def _names(words: Sequence[str]) -> Iterator[str]:
    """Yield the name of each option in ``words``, the long ones as vLLM spells them."""
    for word in words[_start(words) :]:
        name = _stated_name(word)
        if name.startswith("--"):
            yield _whole_name(name) or name
        elif name.startswith("-"):
            yield name


def _stated_name(word: str) -> str:
    """Return the option in ``word``: behind a dot follows a key of its value."""
    return word.partition("=")[0].partition(".")[0]


def _values(words: Sequence[str]) -> Iterator[str]:
    for word in words:
        if word.startswith("-"):
            return
        yield word


def _name(option: str) -> str | None:
    """Return the attribute of ``option``, which may be shortened and have underscores."""
    name = _whole_name(option) if option.startswith("--") else option
    return None if name is None else _EXACT.get(name)


def _whole_name(option: str) -> str | None:
    """Return the name of a long option; None where vLLM has none, or several, that begin so."""
    spelt, known = option.replace("_", "-"), vllm.long_options()
    if spelt in known:
        return spelt
    found = [name for name in known if name.startswith(spelt)]
    return found[0] if len(found) == 1 else None


_EXACT = {
    **{option: name for name, options in vllm.OPTIONS.items() for option in options},
    **{option: name for name, options in vllm.FLAGS.items() for option in options},
}
_MOVING = frozenset({*vllm.UNCOUNTED, *vllm.BESIDE_MODEL})


@dataclass(frozen=True, slots=True)
class _Values:
    """Values of options, and those of them that vLLM refuses."""

    given: Mapping[str, Sequence[tuple[int, str]]]
    wrong: list[WrongOption] = field(default_factory=list[WrongOption])

    def texts(self, name: str) -> tuple[str, ...]:
        return tuple(value for _, value in self.given.get(name, ()))

    def text(self, name: str) -> str | None:
        return next(iter(self.texts(name)), None)

    def count(self, name: str) -> int | None:
        return self._number(name, _count, "no whole number above 0")

    def seconds(self, name: str) -> int | None:
        return self._number(name, _seconds, "no whole number of seconds")

    def share(self, name: str) -> float | None:
        return self._number(name, _share, "no share above 0 and up to 1")

    def tokens(self, name: str) -> int | None:
        """Return a number of tokens, such as `32768`, `32K` or `32k`; None for `auto` too."""
        if self.text(name) in _AUTO:
            return None
        return self._number(name, _tokens, "no number of tokens, such as 32768, 32K or auto")

    def _number(self, name: str, read: Callable[[str], Number | None], wrong: str) -> Number | None:
        for place, value in self.given.get(name, ()):
            if (found := read(value)) is not None:
                return found
            option = vllm.OPTIONS[name][0]
            self.wrong.append(WrongOption(place=place, option=option, value=value, wrong=wrong))
        return None


def _adapter(value: str) -> str:
    """Return the name of an adapter, stated as `NAME=PATH` or in JSON; empty for none.

    Source: https://github.com/vllm-project/vllm/blob/v0.32.0/vllm/entrypoints/launchers/cli_args.py
    """
    if "=" in value and "," not in value:
        return value.partition("=")[0]
    try:
        name = mapping(json.loads(value)).get("name")
    except json.JSONDecodeError:
        return ""
    return name if isinstance(name, str) else ""


def _seconds(value: str) -> int | None:
    return int(value) if value.isascii() and value.isdigit() else None


def _count(value: str) -> int | None:
    return _seconds(value) or None


def _share(value: str) -> float | None:
    try:
        found = float(value)
    except ValueError:
        return None
    return found if 0 < found <= 1 else None


def _tokens(value: str) -> int | None:
    if (match := _WHOLE.fullmatch(value.strip())) is None:
        return None
    number, unit = match.groups()
    if unit.isupper() and "." in number:
        return None
    step = 1024 if unit.isupper() else 1000
    return int(float(number) * step ** _STEPS[unit.lower()]) or None
