"""Compilation of a Trainium job's graphs, once for all of its nodes, before the training.

::

    python -m ultrascale_training.neuron_cache compile --root=D --model=KEY --cores=N -- torchrun …
    python -m ultrascale_training.neuron_cache run --root=D --model=KEY --cores=N -- torchrun …

``compile`` wraps ``neuron_parallel_compile``, and judges it by its summary. ``run`` becomes
torchrun if the cache holds the graphs. Both use a cache directory for each model, version of the
compiler and number of cores: ``D/KEY-VERSION-N``.

Source: https://awsdocs-neuron.readthedocs-hosted.com/en/latest/frameworks/torch/torch-neuronx/programming-guide/training/pytorch-neuron-programming-guide.html
"""

import argparse
import importlib.metadata
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import NoReturn

from ultrascale_training import neuron_markers
from ultrascale_training.errors import TrainingError
from ultrascale_training.neuron_markers import Marker, Output, Run, mistakes

_COMPILER = "neuronx-cc"
_PACKAGES = (_COMPILER, "libneuronxla", "torch-neuronx")
_PARALLEL_COMPILE = "neuron_parallel_compile"
_CACHE_URL = "NEURON_COMPILE_CACHE_URL"
_FLAGS = "NEURON_CC_FLAGS"
_CACHE_DIR = "--cache_dir"

_NOT_COMPILED = 1
_MISTAKE = 2
"""Exit status of a mistake that no restart cures: it ends the job; other statuses restart it."""


class _CompilationError(TrainingError):
    """Error: graphs were not compiled; another attempt may succeed."""


def main(arguments: Sequence[str]) -> int:
    """Run ``compile`` or ``run``, and return the exit status."""
    given, command = _parsed_arguments(arguments)
    try:
        cache = cache_directory(given.root, given.model, given.cores)
        environment = _environment(os.environ, cache)
        run = neuron_markers.read_command(command, environment)
        if given.what == "compile":
            return _compile(cache, run, command, environment, node=given.node)
        _train(cache, run, command, environment, allow_cold=given.allow_cold)
    except TrainingError as error:
        print(f"neuron_cache: {error}", file=sys.stderr)
        return _NOT_COMPILED if isinstance(error, _CompilationError) else _MISTAKE


def cache_directory(root: Path, model: str, cores: int) -> Path:
    """Return the cache directory of ``model`` on ``cores`` for the installed compiler.

    Raises:
        TrainingError: ``model`` is no valid name, or no compiler is installed.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", model):
        raise TrainingError(f"--model: use letters, digits, '.', '_' and '-', got {model!r}")
    try:
        version = importlib.metadata.version(_COMPILER)
    except importlib.metadata.PackageNotFoundError as error:
        raise TrainingError(
            f"{_COMPILER} is not installed, so its graphs can be neither compiled nor found; use "
            "a Neuron image, or leave compile_cache out of the job"
        ) from error
    return root / f"{model}-{version}-{cores}"


def _environment(environment: os._Environ[str], cache: Path) -> dict[str, str]:
    made = {**environment, _CACHE_URL: str(cache)}
    flags = shlex.split(environment.get(_FLAGS, ""))
    kept: list[str] = []
    while flags:
        flag = flags.pop(0)
        if flag == _CACHE_DIR:
            flag = f"{flag}={flags.pop(0) if flags else ''}"
        if flag.startswith(f"{_CACHE_DIR}="):
            _say(f"{flag} taken out of {_FLAGS}: it would win over the shared cache {cache}")
        else:
            kept.append(flag)
    if _FLAGS in made:
        made[_FLAGS] = shlex.join(kept)
    return made


def _train(
    cache: Path, run: Run, command: list[str], environment: dict[str, str], *, allow_cold: bool
) -> NoReturn:
    missing = neuron_markers.whats_missing(cache, run)
    if missing is not None and not allow_cold:
        raise TrainingError(
            f"{missing}; submit the job with --precompile first, or let it start cold with "
            "compile_cache.allow_cold (--allow-cold here)"
        )
    if shutil.which(command[0]) is None:
        raise TrainingError(f"{command[0]} is not on PATH: use an image with PyTorch")
    if missing is not None:
        _say(f"{missing}; graphs are compiled as they are met, while all other nodes wait")
    # torchrun replaces this process, so that it receives the pod's SIGTERM.
    os.execvpe(command[0], command, environment)


def _compile(
    cache: Path, run: Run, command: list[str], environment: dict[str, str], *, node: str
) -> int:
    if run.nodes > 1 and not run.id:
        raise TrainingError("command: several nodes need --rdzv-id, which tells their runs apart")
    if shutil.which(_PARALLEL_COMPILE) is None:
        raise TrainingError(f"{_PARALLEL_COMPILE} is not on PATH: use a Neuron image")
    cache.mkdir(parents=True, exist_ok=True)
    neuron_markers.remove(cache, run, node)
    _say(f"compiling into {cache}")
    output = Output()
    status, stopped = _stream([_PARALLEL_COMPILE, *command], environment, output)
    if stopped is not None:
        _say(f"stopped by signal {stopped} before the graphs were compiled")
        return 128 + stopped
    wrong = mistakes(output, status=status)
    total = 0 if output.summary is None else output.summary.total
    # Another node may still be compiling all graphs; a single node has nobody to wait for.
    if not wrong and not total and run.nodes == 1 and not neuron_markers.compiled_graphs(cache):
        wrong = ["the script gave no graph to compile; check that it runs on the Neuron device"]
    if wrong:
        raise _CompilationError(
            f"the graphs were not compiled: {'; '.join(wrong)}; a graph that failed stays so in "
            f"the cache: add --retry_failed_compilation to {_FLAGS} to try it again"
        )
    marker = Marker(
        node=node,
        nodes=run.nodes,
        total=total,
        arguments=run.arguments,
        versions=_versions(),
        date=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    path = neuron_markers.write(cache, run, marker)
    _say(f"{total} graphs compiled by this node of {run.nodes}, none failed: {path}")
    return 0


def _stream(
    command: list[str], environment: dict[str, str], output: Output
) -> tuple[int, int | None]:
    """Run ``command``, pass its output on, and return its status and any received signal."""
    stopped: list[int] = []
    children: list[subprocess.Popen[bytes]] = []

    def stop(number: int, _: FrameType | None) -> None:
        stopped.append(number)
        for child in children:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    # The command passes no signal on to its torchrun, so the signal goes to their process group.
    with subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as child:
        children.append(child)
        if stopped:
            stop(stopped[0], None)
        assert child.stdout is not None
        # The compiler prints dots without a line end for minutes, so this reads without waiting for
        # it.
        while data := os.read(child.stdout.fileno(), 65536):
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
            output.feed(data)
    output.end()
    return child.returncode, stopped[0] if stopped else None


def _versions() -> dict[str, str]:
    installed = {each.metadata["Name"]: each.version for each in importlib.metadata.distributions()}
    return {name: installed[name] for name in _PACKAGES if name in installed}


def _say(text: str) -> None:
    print(f"neuron_cache: {text}", flush=True)


def _parsed_arguments(arguments: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """Return the options before ``--``, and the command after it."""
    parser = argparse.ArgumentParser(
        prog="neuron_cache", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("what", choices=("compile", "run"))
    parser.add_argument("--root", type=Path, required=True, help="folder of all cache directories")
    parser.add_argument(
        "--model", required=True, help="name of the model whose graphs are compiled"
    )
    parser.add_argument("--cores", type=int, required=True, help="NeuronCores of the whole job")
    node = socket.gethostname()
    parser.add_argument("--node", default=node, help=f"name of this node (default {node})")
    parser.add_argument(
        "--allow-cold", action="store_true", help="start even without compiled graphs"
    )
    if "--" not in arguments:
        parser.error("no command; write it after --")
    end = list(arguments).index("--")
    return parser.parse_args(list(arguments[:end])), list(arguments[end + 1 :])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
