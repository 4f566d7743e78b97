"""Stand-ins for what a Neuron image has and this machine lacks, and what they print."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.folders import ROOT

VERSION = "2.24.5133.0+58f8de22"
_LOG = "2026-11-21 10:14:50.000983:  97  INFO ||NEURON_PARALLEL_COMPILE||: "
GRAPHS = ("MODULE_5274156739761925271+d41d8cd9", "MODULE_2599822411245392803+d41d8cd9")


def summary(total: int, succeeded: int, failed: int, *, prefix: str = _LOG) -> str:
    return (
        f"{prefix}Total graphs: {total}\n"
        f"{prefix}Total successful compilations: {succeeded}\n"
        f"{prefix}Total failed compilations: {failed}\n"
    )


def report(**status: bool) -> str:
    """Return the report that precedes the summary, with the graphs at these places."""
    graphs = {f"/c/neuronxcc-2.24/{name}/model.hlo_module.pb": s for name, s in status.items()}
    counts = {"true": sum(status.values())}
    body = {
        "compilation_summary": counts,
        "compilation_report": {
            path: {"status": s, "retry": 0, "compile_time": 12.5} for path, s in graphs.items()
        },
    }
    return f"{_LOG}{json.dumps(body, indent=4)}\n"


NOTHING_LEFT = (
    f"{_LOG}New graph list from script 0: \n"
    f"{_LOG}No todo hlos found in cache or hlo_tasklist, parallel_compile return before spawning "
    "workers....\n"
)
LOST_WORKER = f"{_LOG}sub-process 3 got exception: A process in the process pool was terminated\n"
SCRIPT_ERROR = f"{_LOG}There was an error in the training script.\n"
CACHED_FAILURE = (
    "2026-11-21 10:14:50.000983:  97  INFO ||NCC_WRAPPER||: Got a cached failed neff at "
    f"/c/neuronxcc-2.24/{GRAPHS[0]}/model.neff. Will skip compilation, please set "
    "--retry_failed_compilation for recompilation.\n"
)

# Its files are those of a real cache: a graph that failed has a neff of a few bytes and a log.
_PARALLEL_COMPILE = f"""#!{sys.executable}
import json, os, pathlib, subprocess, sys
folder = pathlib.Path(__file__).parent
said = json.loads((folder / "compiler.json").read_text())
seen = {{"argv": sys.argv[1:], "cache": os.environ["NEURON_COMPILE_CACHE_URL"],
        "flags": os.environ.get("NEURON_CC_FLAGS")}}
(folder / "seen.json").write_text(json.dumps(seen))
sys.stdout.write("....")
sys.stdout.flush()
if said["runs"]:
    subprocess.run(sys.argv[1:], check=False)
cache = pathlib.Path(os.environ["NEURON_COMPILE_CACHE_URL"]) / "neuronxcc-2.24"
for number in range(said["graphs"]):
    graph = cache / f"MODULE_{{number}}+d41d8cd9"
    graph.mkdir(parents=True, exist_ok=True)
    (graph / "model.neff").write_bytes(b"neff" * 1000)
    (graph / "model.done").touch()
for number in range(said["failed"]):
    graph = cache / f"MODULE_9{{number}}+d41d8cd9"
    graph.mkdir(parents=True, exist_ok=True)
    (graph / "model.neff").write_bytes(b"error")
    (graph / "model.log").write_text("Internal tensorizer error")
sys.stderr.write(said["prints"])
sys.exit(said["status"])
"""
_TORCHRUN = f"""#!{sys.executable}
import json, os, pathlib, signal, sys, time
folder = pathlib.Path(__file__).parent
def stop(*_):
    (folder / "torchrun-stopped").touch()
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
seen = {{"argv": sys.argv[1:], "pid": os.getpid(),
        "cache": os.environ["NEURON_COMPILE_CACHE_URL"],
        "flags": os.environ.get("NEURON_CC_FLAGS")}}
(folder / "torchrun.part").write_text(json.dumps(seen))
(folder / "torchrun.part").rename(folder / "torchrun.json")
if "--wait" in sys.argv:
    time.sleep(30)
"""


class NeuronImage:
    """A folder with the executables and the package data of a Neuron image."""

    def __init__(self, folder: Path, *, version: str | None = VERSION) -> None:
        self.bin = folder / "bin"
        self.root = folder / "neuron-cache"
        self._site = folder / "site"
        self.bin.mkdir(parents=True)
        for name, text in (("neuron_parallel_compile", _PARALLEL_COMPILE), ("torchrun", _TORCHRUN)):
            (self.bin / name).write_text(text)
            (self.bin / name).chmod(0o755)
        if version is not None:
            information = self._site / f"neuronx_cc-{version}.dist-info"
            information.mkdir(parents=True)
            metadata = f"Metadata-Version: 2.1\nName: neuronx-cc\nVersion: {version}\n"
            (information / "METADATA").write_text(metadata)
        self.compiler_prints("")

    def compiler_prints(
        self, text: str, *, status: int = 0, graphs: int = 0, failed: int = 0, runs: bool = False
    ) -> None:
        """Set what the compiler prints, exits with and caches, and if it runs the script first."""
        said = {"prints": text, "status": status, "graphs": graphs, "failed": failed, "runs": runs}
        (self.bin / "compiler.json").write_text(json.dumps(said))

    def arguments(self, what: str, command: Sequence[str], *options: str) -> list[str]:
        program = [sys.executable, "-m", "ultrascale_training.neuron_cache", what]
        key = [f"--root={self.root}", "--model=bert-large", "--cores=64"]
        return [*program, *key, *options, "--", *command]

    def environment(self, **variables: str) -> dict[str, str]:
        path = f"{self.bin}{os.pathsep}{os.environ['PATH']}"
        return {"PATH": path, "PYTHONPATH": f"{ROOT / 'training'}:{self._site}", **variables}

    def run(
        self, what: str, command: Sequence[str], *options: str, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.arguments(what, command, *options),
            env=self.environment(**variables),
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )

    def seen(self, by: str = "seen") -> dict[str, Any]:
        """Return what the compiler (``seen``) or ``torchrun`` was started with."""
        return json.loads((self.bin / f"{by}.json").read_text())

    def trained(self) -> bool:
        return (self.bin / "torchrun.json").exists()

    def markers(self) -> list[Mapping[str, Any]]:
        found = sorted(self.root.glob("*/precompiled/*/*/*"))
        assert all(path.suffix == ".json" for path in found)
        return [json.loads(path.read_text()) for path in found]
