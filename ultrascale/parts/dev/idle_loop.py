"""First process of a person's pod: starts JupyterLab, or waits for shells, and ends unused pods.

It runs in whatever image a pod has: it needs Python 3.9 and Linux, and no file of its own.

Sources:
    https://jupyter-server.readthedocs.io/en/latest/api/rest.html
    https://docs.kernel.org/admin-guide/cgroup-v2.html
    https://docs.nvidia.com/deploy/nvidia-smi/index.html
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace

PREFIX = "ultrascale dev: "
"""Beginning of each line of the log that is for the person."""
STATE = "tmp/ultrascale-dev/state.json"
"""File below the root that holds the port and the token for the command line."""
# A virtual environment need not be on PATH.
_SEARCH_PATH = f"{os.environ.get('PATH', os.defpath)}:{sys.prefix}/bin"
# JupyterLab 4.6 that an open tab asks for its kernels takes 0.5 % of a CPU (measured).
_BUSY_CPUS = 0.1
_BUSY_GPU_PERCENT = 5
_LOOK_SECONDS = 30.0
# The pod warns so long before its end, but at no more than half of the idle time.
_WARNING_SECONDS = (1800, 300)
# JupyterLab saves an open file that has changed every two minutes. It would ask PyPI for a newer
# release: https://jupyterlab.readthedocs.io/en/stable/user/announcements.html
_CONFIGURATION = """\
import logging
c.EventLogger.handlers = [logging.FileHandler({!r})]
c.LabApp.check_for_updates_class = "jupyterlab.NeverCheckForUpdate"
"""


def jupyter_environment(token: str, folder: Path) -> dict[str, str]:
    """Return the variables of JupyterLab: the token is on no command line."""
    configuration = _CONFIGURATION.format(str(folder / "saves"))
    (folder / "jupyter_server_config.py").write_text(configuration)
    known = os.environ.get("JUPYTER_CONFIG_PATH")
    path = f"{folder}{os.pathsep}{known}" if known else str(folder)
    return {"JUPYTER_TOKEN": token, "JUPYTER_CONFIG_PATH": path}


def last_jupyter_use(port: int, token: str, folder: Path, now: float) -> float:
    """Return the time of the last computation or saved file; 0 where there was none."""
    saves = folder / "saves"
    used = saves.stat().st_mtime if saves.exists() and saves.stat().st_size else 0.0
    url = f"http://127.0.0.1:{port}/api/kernels?no_track_activity=1"
    request = urllib.request.Request(url, headers={"Authorization": f"token {token}"})
    # A proxy of the pod's environment does not reach it.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    # JupyterLab starts, or has no time to answer: then it keeps a CPU busy. Another program may
    # have taken the port and answer anything.
    with suppress(Exception), opener.open(request, timeout=10) as answer:
        for kernel in json.load(answer):
            if kernel["execution_state"] == "busy":
                return now
            # It ends in Z, which Python 3.9 does not read.
            active = datetime.fromisoformat(kernel["last_activity"].replace("Z", "+00:00"))
            used = max(used, active.timestamp())
    return used


def last_typing(root: Path) -> float:
    """Return when somebody last typed in a terminal; 0 where there is none.

    The kernel sets a terminal's access time when its program reads, to 8 seconds. Its output is no
    use: `watch` and `top` print for as long as they are left open.
    """
    with suppress(OSError):  # One was closed; the next look comes soon.
        return max((path.stat().st_atime for path in root.glob("dev/pts/[0-9]*")), default=0.0)
    return 0.0


def cpu_seconds(root: Path) -> float:
    """Return the CPU time of all processes of the container; 0 where its node does not tell."""
    with suppress(OSError):
        return int((root / "sys/fs/cgroup/cpu.stat").read_text().split()[1]) / 1e6  # usage_usec
    return 0.0


def gpu_is_busy() -> bool:
    """Return whether a GPU of the pod computes; MIG devices say "[N/A]"."""
    query = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"]
    with suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(query, capture_output=True, text=True, timeout=10, check=False)
        words = done.stdout.split()
        return any(word.isdigit() and int(word) > _BUSY_GPU_PERCENT for word in words)
    return False


def _say(line: str, root: Path) -> None:
    print(f"{PREFIX}{line}", flush=True)
    for path in root.glob("dev/pts/[0-9]*"):
        with suppress(OSError):
            # A terminal that is held by Ctrl-S must not hold this process.
            terminal = os.open(path, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
            with os.fdopen(terminal, "wb", buffering=0) as stream:
                stream.write(f"\r\n\a{PREFIX}{line}\r\n".encode())


def _start(options: SimpleNamespace, token: str, root: Path) -> subprocess.Popen[bytes]:
    """Start the program, once the command line can read its port."""
    state = root / STATE
    state.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    environment, program, lab = dict(os.environ), options.command, None
    if not os.access(environment.get("HOME") or "/", os.W_OK):
        environment["HOME"] = str(state.parent)
    if not program and (lab := shutil.which("jupyter-lab", path=_SEARCH_PATH)):
        environment.update(jupyter_environment(token, state.parent))
        program = [lab, *options.jupyter]
    port = options.port if program else None
    new = state.with_suffix(".new")
    new.touch(mode=0o600)
    new.write_text(json.dumps({"notebook": bool(lab), "port": port, "token": token}))
    new.rename(state)
    if not program:
        _say("no JupyterLab in this image: the pod only waits for shells", root)
        program = [sys.executable, "-c", "import signal; signal.pause()"]
    cwd = options.folder
    return subprocess.Popen(program, env=environment, cwd=cwd, start_new_session=True)


def _exit_code(child: subprocess.Popen[bytes]) -> int | None:
    """Return the exit code of the program, None while it runs, and reap processes of others."""
    while (ended := os.waitpid(-1, os.WNOHANG))[0]:
        if ended[0] == child.pid:
            code = child.returncode = os.waitstatus_to_exitcode(ended[1])
            return code if code >= 0 else 128 - code
    return None


def _watch(options: SimpleNamespace, token: str, root: Path, child: subprocess.Popen[bytes]) -> int:
    """Return the exit code of the pod, once its program has ended or nobody has used it."""
    idle = options.idle_seconds
    look_seconds = min(_LOOK_SECONDS, idle / 20)
    cpu, used, looked, warned = cpu_seconds(root), time.time(), time.monotonic(), 0
    while True:
        time.sleep(min(1.0, look_seconds))  # The program's end is noticed within a second.
        if (code := _exit_code(child)) is not None:
            _say(f"its program has ended with exit code {code}", root)
            return code
        if (seconds := time.monotonic() - looked) < look_seconds:
            continue
        before, cpu, looked, now = cpu, cpu_seconds(root), time.monotonic(), time.time()
        busy = cpu - before > _BUSY_CPUS * seconds or gpu_is_busy()
        used = now if busy else max(used, last_typing(root))
        if not options.command:
            used = max(used, last_jupyter_use(options.port, token, (root / STATE).parent, now))
        end = min(now, used) + idle
        if now >= end:
            message = f"stopped after {idle / 3600:.3g} hours without use"
            _say(message, root)
            with suppress(OSError):  # Its log says the same.
                (root / "dev/termination-log").write_text(message)
            return 0
        due = sum(now >= end - min(ahead, idle / 2) for ahead in _WARNING_SECONDS)
        if due > warned:
            since, until = (time.strftime("%H:%M UTC", time.gmtime(at)) for at in (used, end))
            line = f"not used since {since}; it stops at {until} unless it is used"
            _say(f"{line}: run a cell, save a file or type in a terminal", root)
        elif due < warned:
            _say("it is used again and stays", root)
        warned = due


def main(words: list[str]) -> int:
    """Run the program that the JSON in ``words`` describes, below ``/`` or another root."""
    options, root = SimpleNamespace(**json.loads(words[0])), Path((*words, "/")[1])
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _frame: sys.exit(128 + number))
    token = secrets.token_urlsafe(32)
    try:
        child = _start(options, token, root)
    except OSError as error:
        _say(f"{(options.command or ['JupyterLab'])[0]} cannot be started: {error}", root)
        return 2
    try:
        return _watch(options, token, root, child)
    finally:  # What is left then ends with this process.
        with suppress(ProcessLookupError, subprocess.TimeoutExpired):
            os.killpg(child.pid, signal.SIGTERM)
            child.wait(options.grace_seconds)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
