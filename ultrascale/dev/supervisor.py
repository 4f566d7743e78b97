"""First process of a person's pod: starts JupyterLab, or waits for shells, and ends unused pods.

The pod is used while a kernel computes, a file is saved, somebody types in a terminal, or its
processes keep a CPU or a GPU busy. After a time without any of these the pod has been announced to
stop, in its log and in its terminals, and then ends with exit code 0, so that its node is free.

It runs in whatever image a pod has: it needs Python 3.9 and Linux, and no file of its own.

Sources:
    https://jupyter-server.readthedocs.io/en/latest/api/rest.html
    https://docs.kernel.org/admin-guide/cgroup-v2.html
    https://docs.nvidia.com/deploy/nvidia-smi/index.html
"""

from __future__ import annotations

import argparse
import http.client
import importlib.util
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import cast

TOLD = "ultrascale dev: "
"""Beginning of each line of the log that is for the person."""
STATE_FOLDER = "/tmp/ultrascale-dev"
STATE = "state.json"
"""File of the state folder that tells the command line of port and token."""
_MISTAKE = 2
_SIGNALLED = 128
# JupyterLab 4.6 that an open tab asks for its kernels takes 0.5 % of a CPU (measured).
_BUSY_CPUS = 0.1
_BUSY_GPU_PERCENT = 5
_ANSWER_SECONDS = 10
_LOOK_SECONDS = 30.0
# The end of the program is noticed so soon.
_TICK_SECONDS = 1.0
# JupyterLab saves an open file that has changed every two minutes. It would ask PyPI for a newer
# release: https://jupyterlab.readthedocs.io/en/stable/user/announcements.html
_CONFIGURATION = """\
import logging
c.EventLogger.handlers = [logging.FileHandler({saves!r})]
c.LabApp.check_for_updates_class = "jupyterlab.NeverCheckForUpdate"
"""


class Jupyter:
    """JupyterLab on this pod, as its REST API and its events tell of it."""

    def __init__(self, port: int, folder: Path) -> None:
        self.port, self.token = port, secrets.token_urlsafe(32)
        self._saves = folder / "saves"
        self._folder = folder

    def environment(self) -> dict[str, str]:
        """Return the variables of its process: the token is on no command line."""
        own = self._folder / "jupyter"
        own.mkdir(exist_ok=True)
        text = _CONFIGURATION.format(saves=str(self._saves))
        (own / "jupyter_server_config.py").write_text(text)
        known = os.environ.get("JUPYTER_CONFIG_PATH")
        path = f"{own}{os.pathsep}{known}" if known else str(own)
        return {"JUPYTER_TOKEN": self.token, "JUPYTER_CONFIG_PATH": path}

    def last_use(self, now: float) -> float:
        """Return the time of the last computation or saved file; 0 where there was none."""
        used = 0.0
        if self._saves.exists() and self._saves.stat().st_size:
            used = self._saves.stat().st_mtime
        for kernel in self._kernels():
            if kernel.get("execution_state") == "busy":
                return now
            try:
                # It ends in Z, which Python 3.9 does not read.
                active = str(kernel.get("last_activity")).replace("Z", "+00:00")
                used = max(used, datetime.fromisoformat(active).timestamp())
            except ValueError:
                continue
        return used

    def _kernels(self) -> list[dict[str, object]]:
        url = f"http://127.0.0.1:{self.port}/api/kernels?no_track_activity=1"
        request = urllib.request.Request(url, headers={"Authorization": f"token {self.token}"})
        # A proxy of the pod's environment does not reach it.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=_ANSWER_SECONDS) as answer:
                found: object = json.load(answer)
        except (OSError, ValueError, http.client.HTTPException):
            return []  # It starts, or has no time to answer: then it keeps a CPU busy.
        # Another program may have taken the port.
        items = cast("list[object]", found) if isinstance(found, list) else []
        return [cast("dict[str, object]", each) for each in items if isinstance(each, dict)]


class Processors:
    """Use of CPUs and GPUs by everything that runs in the pod."""

    def __init__(self, cgroup: Path) -> None:
        self._cgroup = cgroup
        self._gpus = shutil.which("nvidia-smi")
        self._before = (time.monotonic(), self._seconds())

    def are_busy(self) -> bool:
        """Return whether CPUs were busy since the last call, or GPUs are now."""
        now, used = time.monotonic(), self._seconds()
        (then, before), self._before = self._before, (now, used)
        return used - before > _BUSY_CPUS * (now - then) or self._gpu_percent() > _BUSY_GPU_PERCENT

    def _seconds(self) -> float:
        """Return the CPU time of all processes of the container, by either version of cgroups."""
        try:
            lines = (self._cgroup / "cpu.stat").read_text().splitlines()
            found = [line.split() for line in lines if line.startswith("usage_usec")]
            if found:
                return int(found[0][1]) / 1e6
            return int((self._cgroup / "cpuacct" / "cpuacct.usage").read_text()) / 1e9
        except OSError:
            return 0.0

    def _gpu_percent(self) -> int:
        if self._gpus is None:
            return 0
        query = ["--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"]
        try:
            told = subprocess.run(
                [self._gpus, *query],
                capture_output=True,
                text=True,
                timeout=_ANSWER_SECONDS,
                check=False,
            ).stdout
        except (OSError, subprocess.TimeoutExpired):
            return 0
        # MIG devices tell "[N/A]".
        return max((int(line) for line in told.split() if line.isdigit()), default=0)


class Terminals:
    """Terminals of the pod: those of JupyterLab and those of `kubectl exec --tty`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def last_use(self) -> float:
        """Return when somebody last typed in one; 0 where there is none.

        The kernel sets a terminal's access time when its program reads, to 8 seconds. Its output
        is no use: `watch` and `top` print for as long as they are left open.
        """
        return max((found.st_atime for _, found in self._open()), default=0.0)

    def tell(self, line: str) -> None:
        """Print ``line`` in every terminal."""
        for path, _ in self._open():
            try:
                # A terminal that is held by Ctrl-S must not hold this process.
                terminal = os.open(path, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
            except OSError:
                continue
            try:
                os.write(terminal, f"\r\n\a{line}\r\n".encode())
            except OSError:
                pass
            finally:
                os.close(terminal)

    def _open(self) -> list[tuple[Path, os.stat_result]]:
        found: list[tuple[Path, os.stat_result]] = []
        for path in self._folder.glob("[0-9]*"):
            try:
                found.append((path, path.stat()))
            except OSError:
                continue
        return found


class Supervisor:
    """Runs the program of the pod, and watches whether anybody uses the pod."""

    def __init__(self, chosen: argparse.Namespace) -> None:
        self._chosen = chosen
        self._folder = Path(chosen.state)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._terminals = Terminals(Path(chosen.terminals))
        self._jupyter: Jupyter | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._signalled = False
        self._warnings: list[float] = []

    def run(self) -> int:
        """Return the exit code of the pod: 0 once it was idle or its program has ended well."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._take)
        try:
            self._start()
        except OSError as error:
            program = self._chosen.program or ["JupyterLab"]
            self._say(f"{program[0]} cannot be started: {error}")
            return _MISTAKE
        processors = Processors(Path(self._chosen.cgroup))
        used = time.time()
        looked = time.monotonic()
        while True:
            time.sleep(min(_TICK_SECONDS, self._chosen.look_seconds))
            status = self._reaped()
            if status is not None:
                self._say(f"its program has ended with exit code {status}")
                return status
            if self._signalled:
                self._stop()
                return _SIGNALLED + signal.SIGTERM
            if time.monotonic() - looked < self._chosen.look_seconds:
                continue
            looked, now = time.monotonic(), time.time()
            seen = max(used, self._last_use(now), now if processors.are_busy() else 0.0)
            if seen > used and self._warnings:
                self._say("it is used again and stays")
                self._warnings = []
            used = min(seen, now)
            if now - used >= self._chosen.idle_seconds:
                told = f"stopped after {_span(self._chosen.idle_seconds)} without use"
                self._say(told)
                self._leave_message(told)
                self._stop()
                return 0
            self._warn(now, used)

    def _take(self, number: int, frame: FrameType | None) -> None:
        # An event has a lock, which the interrupted line may hold.
        self._signalled = True

    def _start(self) -> None:
        program = self._chosen.program
        environment = dict(os.environ)
        home = Path(environment.get("HOME") or "/")
        if not os.access(home, os.W_OK):
            environment["HOME"] = str(self._folder)
        if not program and (lab := _jupyter_lab()):
            self._jupyter = Jupyter(self._chosen.port, self._folder)
            environment.update(self._jupyter.environment())
            program = [*lab, *_options(self._chosen)]
        self._write_state()
        if not program:
            self._say("no JupyterLab in this image: the pod only waits for shells")
            return
        self._child = subprocess.Popen(
            program, env=environment, cwd=self._chosen.folder, start_new_session=True
        )

    def _write_state(self) -> None:
        state = {
            "notebook": self._jupyter is not None,
            "port": self._chosen.port if self._jupyter or self._chosen.program else None,
            "token": self._jupyter.token if self._jupyter else "",
        }
        path = self._folder / f"{STATE}.new"
        path.touch(mode=0o600)
        path.write_text(json.dumps(state))
        path.rename(self._folder / STATE)

    def _last_use(self, now: float) -> float:
        of_jupyter = self._jupyter.last_use(now) if self._jupyter is not None else 0.0
        return max(of_jupyter, self._terminals.last_use())

    def _warn(self, now: float, used: float) -> None:
        """Tell once, at each of some times before the end, when the pod stops."""
        end = used + self._chosen.idle_seconds
        due = [before for before in self._chosen.warn_seconds if now >= end - before]
        if set(due) <= set(self._warnings):
            return
        self._warnings = due
        self._say(
            f"not used since {_clock(used)}; it stops at {_clock(end)} unless it is used: run a "
            "cell, save a file or type in a terminal"
        )

    def _say(self, line: str) -> None:
        print(f"{TOLD}{line}", flush=True)
        self._terminals.tell(f"{TOLD}{line}")

    def _leave_message(self, line: str) -> None:
        try:
            Path(self._chosen.message).write_text(line)
        except OSError:
            return  # Its log says the same.

    def _reaped(self) -> int | None:
        """Return the exit code of the program; None while it runs.

        As the first process of the container it is the parent of processes that others leave.
        """
        while True:
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return None
            if not process:
                return None
            if self._child is not None and process == self._child.pid:
                code = os.waitstatus_to_exitcode(status)
                self._child.returncode = code
                self._child = None
                return code if code >= 0 else _SIGNALLED - code

    def _stop(self) -> None:
        if self._child is None:
            return
        child, self._child = self._child, None
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(child.pid, number)
                child.wait(self._chosen.grace_seconds)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue
            return


def _jupyter_lab() -> list[str]:
    """Return the words that start JupyterLab; none where the image has none."""
    if found := shutil.which("jupyter-lab"):
        return [found]
    if importlib.util.find_spec("jupyterlab") is not None:
        return [sys.executable, "-m", "jupyterlab"]
    return []


def _options(chosen: argparse.Namespace) -> list[str]:
    root = ["--allow-root"] if os.geteuid() == 0 else []
    return [
        "--no-browser",
        # A port is forwarded to the pod's own loopback; no other pod reaches it.
        "--ServerApp.ip=127.0.0.1",
        f"--ServerApp.port={chosen.port}",
        "--ServerApp.port_retries=0",
        f"--ServerApp.root_dir={chosen.folder}",
        *root,
        *chosen.option,
    ]


def _clock(seconds: float) -> str:
    return time.strftime("%H:%M UTC", time.gmtime(seconds))


def _span(seconds: float) -> str:
    return f"{seconds / 3600:.3g} hours" if seconds != 3600 else "1 hour"


def main(arguments: list[str]) -> int:
    """Run the pod's program until it ends or nobody has used the pod for a time."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--idle-seconds", type=float, required=True)
    parser.add_argument("--warn-seconds", type=float, action="append", default=[])
    parser.add_argument("--look-seconds", type=float, default=None)
    parser.add_argument("--grace-seconds", type=float, default=20.0)
    parser.add_argument("--port", type=int, default=8888)
    parser.add_argument("--folder", default=None)
    parser.add_argument("--option", action="append", default=[])
    parser.add_argument("--state", default=STATE_FOLDER)
    parser.add_argument("--cgroup", default="/sys/fs/cgroup")
    parser.add_argument("--terminals", default="/dev/pts")
    parser.add_argument("--message", default="/dev/termination-log")
    parser.add_argument("program", nargs="*")
    chosen = parser.parse_args(arguments)
    chosen.folder = chosen.folder or str(Path.cwd())
    if chosen.look_seconds is None:
        chosen.look_seconds = min(_LOOK_SECONDS, chosen.idle_seconds / 20)
    return Supervisor(chosen).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
