"""Options of vLLM in the command of a service, and the command that serves its model.

Sources:
    https://github.com/vllm-project/vllm/blob/v0.32.0/vllm/utils/argparse_utils.py
    https://docs.vllm.ai/en/latest/cli/serve.html
"""

import argparse
import difflib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import NoReturn

from ultrascale import config
from ultrascale.catalog import registries, vllm
from ultrascale.documents import mapping, parse_json

# The module that images started before `vllm serve`; it takes the model by `--model` alone.
_MODULE = "vllm.entrypoints.openai.api_server"
_RELEASE = re.compile(r"(\d+)\.(\d+)")
_TOKENS = re.compile(r"(\d{1,15}(?:\.\d+(?=[kmgt]))?)([kKmMgGtT]?)")
_OPTION = re.compile(r"(--?[A-Za-z][^=.]*)[^=]*(=.*)?", re.DOTALL)
_UNITS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


@dataclass(kw_only=True)
class VllmOptions:
    """Options of vLLM that a plan reads, by their names in its own parser; which fills them.

    A service that does not state one has vLLM's default; None where that follows from the model or
    the accelerator.
    """

    model: str | None = None
    served_model_name: Sequence[str] = ()
    lora_modules: Sequence[str] = ()
    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    data_parallel_size: int = 1
    data_parallel_size_local: int | None = None
    api_server_count: int | None = None
    prefill_context_parallel_size: int = 1
    enable_expert_parallel: bool = False
    max_model_len: int | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    block_size: int | None = None
    num_gpu_blocks_override: int | None = None
    enable_prefix_caching: bool | None = None
    disable_hybrid_kv_cache_manager: bool | None = None
    load_format: str = "auto"
    safetensors_load_strategy: str | None = None
    hf_overrides: str | None = None
    dtype: str = "auto"
    quantization: str | None = None
    kv_cache_dtype: str = "auto"
    gpu_memory_utilization: float = vllm.GPU_MEMORY_UTILIZATION
    host: str | None = None
    port: int | None = None
    api_key: Sequence[str] = ()
    disable_log_stats: bool = False
    nnodes: int | None = None
    distributed_executor_backend: str | None = None
    config: str | None = None

    uncounted: tuple[str, ...] = ()
    """Those of `vllm.UNCOUNTED` and `vllm.BESIDE_MODEL` that are stated."""
    unreached: tuple[str, ...] = ()
    """Those of `vllm.UNREACHED` that are stated."""
    unknown: tuple[tuple[int, str], ...] = ()
    """Index and text of words that are options of another release, or of none."""
    refused: str = ""
    """Reason that vLLM would not start with them, in argparse's words; empty for none."""

    @property
    def accelerators(self) -> int:
        """Accelerators, or logical NeuronCores, that one replica takes."""
        parts = self.tensor_parallel_size * self.pipeline_parallel_size
        return parts * self.prefill_context_parallel_size * self.data_parallel_size

    @property
    def names(self) -> tuple[str, ...]:
        """Names by which clients ask for the model and its adapters."""
        own = self.served_model_name or (() if self.model is None else (self.model,))
        return (*own, *filter(None, map(_adapter, self.lora_modules)))


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
    start = _start(words)
    end = words.index("--") if "--" in words else len(words)
    plain = [_plain(word) for word in words[start:end]]
    options = VllmOptions()
    try:
        _, rest = _parser().parse_known_args(plain, options)
    except _RefusedError as error:
        options.refused, rest = str(error), []
    options.model = _first_argument(words) or options.model
    options.uncounted = tuple(name for name in _COUNTS_MORE if getattr(options, name, "0") != "0")
    options.unreached = tuple(name for name in vllm.UNREACHED if hasattr(options, name))
    options.unknown = tuple(
        (start + place, words[start + place])
        for place, word in enumerate(plain)
        if word in rest and word.startswith("--") and word.partition("=")[0] not in _long_names()
    )
    return options


def nearest_option(option: str) -> str | None:
    """Return the option that is spelt most alike; None where none is."""
    return next(iter(difflib.get_close_matches(option, _long_names(), n=1)), None)


def misread_option(options: VllmOptions) -> str | None:
    """Return an option that is likely a misspelt one of those that a plan reads; None for none."""
    known = {f"--{name.replace('_', '-')}" for name in _READ}
    words = (word.partition("=")[0] for _, word in options.unknown)
    return next((word for word in words if nearest_option(word) in known), None)


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
    reference = registries.parse_reference(job.image or "")
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
    rest = iter(words)
    for word in rest:
        if word == "--model":
            next(rest, None)
        elif not word.startswith("--model="):
            yield word


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
    first = words[start] if len(words) > start else ""
    return None if not first or first.startswith("-") else first


class _RefusedError(Exception):
    """The reason that argparse ends."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _RefusedError(message)


@cache
def _parser() -> argparse.ArgumentParser:
    """Return a parser that reads a plan's options as vLLM's own does.

    It takes whatever value of options that another release may have changed.
    """
    parser = _Parser(add_help=False, allow_abbrev=False, argument_default=argparse.SUPPRESS)
    for option in vllm.options():
        if option.attribute not in _READ:
            # A short option, too, that argparse would take for the beginning of another.
            if option.attribute in _BESIDE_PLAN or option.is_short:
                parser.add_argument(*option.names, nargs="?", const="stated")
        elif option.opposites:
            parser.add_argument(*option.names, action=argparse.BooleanOptionalAction)
        elif option.nargs == "0":
            parser.add_argument(*option.names, action="store_true")
        else:
            reader = _READERS.get(option.type, str)
            parser.add_argument(*option.names, nargs=option.nargs or None, type=reader)
    return parser


@cache
def _long_names() -> Sequence[str]:
    names = (name for option in vllm.options() for name in (*option.names, *option.opposites))
    return sorted(name for name in names if name.startswith("--"))


def _plain(word: str) -> str:
    """Return a word as argparse reads it: vLLM has underscores, beginnings, and keys of values."""
    match = _OPTION.fullmatch(word)
    if match is None:
        return word
    name, value = match.group(1), match.group(2) or ""
    if not name.startswith("--"):
        return name + value
    name = name.replace("_", "-")
    whole = [known for known in _long_names() if known.startswith(name)]
    return (whole[0] if len(whole) == 1 else name) + value


def _adapter(value: str) -> str:
    """Return the name of an adapter, stated as `NAME=PATH` or in JSON; empty for none.

    Source: https://github.com/vllm-project/vllm/blob/v0.32.0/vllm/entrypoints/launchers/cli_args.py
    """
    if "=" in value and "," not in value:
        return value.partition("=")[0]
    try:
        name = mapping(parse_json(value)).get("name")
    except json.JSONDecodeError:
        return ""
    return name if isinstance(name, str) else ""


def _count(value: str) -> int:
    if not value.isdecimal() or int(value) < 1:
        raise argparse.ArgumentTypeError(f"{value!r} is no whole number above 0")
    return int(value)


def _share(value: str) -> float:
    try:
        share = float(value)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise argparse.ArgumentTypeError(f"{value!r} is no share above 0 and up to 1")
    return share


def _tokens(value: str) -> int:
    """Return a number such as `32768`, `32K` (binary) or `25.6k` (decimal)."""
    match = _TOKENS.fullmatch(value.strip())
    number, unit = match.groups() if match else ("0", "")
    tokens = int(float(number) * (1024 if unit.isupper() else 1000) ** _UNITS[unit.lower()])
    if tokens < 1:
        raise argparse.ArgumentTypeError(f"{value!r} is no number of tokens, such as 32768 or 32K")
    return tokens


def _tokens_or_auto(value: str) -> int:
    return vllm.AUTO_LENGTH if value.strip().lower() in ("auto", "-1") else _tokens(value)


_READ = frozenset(field.name for field in fields(VllmOptions))
_COUNTS_MORE = (*vllm.UNCOUNTED, *vllm.BESIDE_MODEL)
_BESIDE_PLAN = (*_COUNTS_MORE, *vllm.UNREACHED)
# vLLM's configuration refuses numbers below 1, of which its parser knows nothing.
_READERS: Mapping[str, Callable[[str], int | float]] = {
    "int": _count,
    "float": _share,
    "human_readable_int": _tokens,
    "human_readable_int_or_auto": _tokens_or_auto,
}
