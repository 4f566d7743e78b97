"""People's pods, as a kubelet runs them, and `kubectl`, which reaches them."""

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from tests.support import job_manifests as given
from tests.support.stub_api_server import Object, StubApiServer

# Answers as JupyterLab's server does. Its kernel computes while the file `busy` is there.
LAB = """#!{python} -SE
import json, os, signal, sys, time
from http.server import BaseHTTPRequestHandler, HTTPServer
chosen = dict(word.lstrip("-").split("=", 1) for word in sys.argv[1:] if "=" in word)
started = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        allowed = self.headers["Authorization"] == "token " + os.environ["JUPYTER_TOKEN"]
        state = "busy" if os.path.exists("busy") else "idle"
        kernels = [{{"last_activity": started, "execution_state": state}}]
        self.send_response(200 if allowed else 403)
        self.end_headers()
        self.wfile.write(json.dumps(kernels if allowed else []).encode())
    def log_message(self, *told): pass
def stop(*_):
    open("stopped", "w").close()
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
json.dump(sys.argv[1:], open("words.new", "w"))
os.rename("words.new", "words")
HTTPServer((chosen["ServerApp.ip"], int(chosen["ServerApp.port"])), Handler).serve_forever()
"""

# Forwards a port of this machine to another one, and runs commands here.
KUBECTL = """#!{python} -SE
import os, socket, subprocess, sys, threading
words = [word for word in sys.argv[1:] if not word.startswith("--kubeconfig")]
print(*sys.argv[1:], file=open("kubectl.log", "a"))
if words[0] == "exec":
    inner = words[words.index("--") + 1:]
    inner = [word.replace("/tmp/ultrascale-dev", "tmp/ultrascale-dev") for word in inner]
    sys.exit(subprocess.run(inner).returncode)
local, _, inside = words[2].partition(":")
def pump(one, other):
    while chunk := one.recv(65536):
        other.sendall(chunk)
    other.shutdown(socket.SHUT_WR)
with socket.create_server(("127.0.0.1", int(local))) as server:
    while True:
        near, _ = server.accept()
        far = socket.create_connection(("127.0.0.1", int(inside)))
        for pair in ((near, far), (far, near)):
            threading.Thread(target=pump, args=pair, daemon=True).start()
"""


def install(folder: Path, name: str, script: str) -> None:
    """Write a program of Python, which names its interpreter as ``python``."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(script.format(python=sys.executable))
    (folder / name).chmod(0o755)


class Kubelet:
    """Runs the container of each Job that is sent, in a folder, and tells of it.

    Attributes:
        folder: Working directory of its containers.
        ended: Set once a container has ended.
    """

    def __init__(self, stub: StubApiServer, folder: Path) -> None:
        self.folder, self.ended = folder, threading.Event()
        self._stub = stub
        self._running: list[subprocess.Popen[str]] = []
        self._threads: list[threading.Thread] = []
        stub.on_create = self._take
        (folder / "dev").mkdir()

    def stop(self) -> None:
        """Stop what still runs."""
        for process in self._running:
            process.terminate()
        for thread in self._threads:
            # One that is stopped while it starts its program may leave it, its output open.
            thread.join(timeout=10)

    def _take(self, path: str, found: Object) -> None:
        if path.startswith(given.INDEXED_JOBS):
            thread = threading.Thread(target=self._run, args=(path, found), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _run(self, path: str, job: Object) -> None:
        name, uid = job["metadata"]["name"], job["metadata"]["uid"]
        pod = f"{given.PODS}/{name}-0-abcde"
        (container,) = job["spec"]["template"]["spec"]["containers"]
        labels = {"batch.kubernetes.io/job-name": name, "ultrascale.dev/job": name}
        labels["batch.kubernetes.io/job-completion-index"] = "0"
        owner = {"kind": "Job", "name": name, "uid": uid}
        metadata: Object = {"name": f"{name}-0-abcde", "labels": labels, "ownerReferences": [owner]}
        spec = {"containers": [{"name": container["name"]}], "nodeName": "node-1"}
        with subprocess.Popen(
            [sys.executable, "-S", *container["command"][1:], str(self.folder)],
            env={"PATH": f"{self.folder}/image", "HOME": str(self.folder)},
            stdout=subprocess.PIPE,
            text=True,
            cwd=self.folder,
        ) as process:
            self._running.append(process)
            running: Object = {"name": container["name"], "state": {"running": {}}}
            status: Object = {"phase": "Running", "containerStatuses": [running]}
            new: Object = {"kind": "Pod", "metadata": metadata, "spec": spec, "status": status}
            self._stub.put(pod, new)
            self._stub.update(path, status={"active": 1, "ready": 1})
            for number, line in enumerate(process.stdout or ()):
                self._stub.write(pod, f"2026-11-21T12:00:00.{number:09}Z {line.rstrip()}")
        if path in self._stub.paths():
            self._stub.write(pod, ends=True)
            self._tell_end(path, pod, container["name"], process.returncode)
        self.ended.set()

    def _tell_end(self, path: str, pod: str, container: str, code: int) -> None:
        message = self.folder / "dev" / "termination-log"
        terminated: dict[str, Any] = {"exitCode": code}
        if message.exists():
            terminated["message"] = message.read_text()
        ended = {"name": container, "restartCount": 0, "state": {"terminated": terminated}}
        phase = "Failed" if code else "Succeeded"
        self._stub.update(pod, status={"phase": phase, "containerStatuses": [ended]})
        kind = "Failed" if code else "Complete"
        condition = {"type": kind, "status": "True"}
        self._stub.update(path, status={"active": 0, "ready": 0, "conditions": [condition]})
