"""The build that installs AWS's HyperPod chart, on this machine: only the cluster is missing.

Git, Helm and kustomize are the real ones. AWS's repository is a small one with a chart of the same
shape; what would reach a cluster is written down instead.
"""

import json
import os
import subprocess
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import yaml

import ultrascale_constructs
from tests.support.helm_tools import unpack_tools
from ultrascale.parts.hyperpod.model import HyperPodChartPlan
from ultrascale_constructs.hyperpod.chart import chart_variables, kustomization

SCRIPT = Path(ultrascale_constructs.__file__).parent / "hyperpod/chart_build/install.sh"
FOLDER = "helm_chart/Chart"
REMOTE = "efa-plugin"
# The archive's own version has a `v` that the dependency's has not, as with the EFA plugin.
REMOTE_VERSION = "0.5.20"
NEURON = "neuron-daemon-set"
UNREACHABLE = "http://127.0.0.1:1"

_PLUGIN = {
    "selector": {"matchLabels": {"a": "b"}},
    "template": {
        "metadata": {"labels": {"a": "b"}},
        "spec": {
            "containers": [{"name": "it", "image": "{{ .Values.global.image }}"}],
            "tolerations": [{"key": "CriticalAddonsOnly", "operator": "Exists"}],
        },
    },
}


def daemon_set(name: str) -> dict[str, Any]:
    return _object("apps/v1", "DaemonSet", name, namespace="kube-system", spec=_PLUGIN)


def deployment(name: str) -> dict[str, Any]:
    return _object("apps/v1", "Deployment", name, namespace="kubeflow", spec=_PLUGIN)


@dataclass
class Upstream:
    """A repository with a chart, and a chart repository that it depends on."""

    folder: Path  # Where both lie
    url: str  # URL of the chart repository
    tools: Path  # Helm and kubectl
    commit: str = field(init=False)

    def __post_init__(self) -> None:
        self.commit = self.commits(remote=[(REMOTE, REMOTE_VERSION)])

    @property
    def repository(self) -> Path:
        """The Git repository."""
        return self.folder / "upstream"

    @property
    def archive_sha256(self) -> str:
        """Digest of the remote chart."""
        archive = self.folder / "charts" / f"{REMOTE}-v{REMOTE_VERSION}.tgz"
        return sha256(archive.read_bytes()).hexdigest()

    @property
    def folder_sha256(self) -> str:
        """Digest of the sums of the chart's files, computed without the script."""
        root = self.repository / FOLDER
        files = sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())
        sums = (f"{sha256((root / name).read_bytes()).hexdigest()}  {name}\n" for name in files)
        return sha256("".join(sums).encode()).hexdigest()

    def commits(self, *, remote: Sequence[tuple[str, str]]) -> str:
        """Commit a chart that depends on ``remote`` charts, by name and version; return its id."""
        chart = self.repository / FOLDER
        local = {
            "agent": [daemon_set("agent"), daemon_set(NEURON)],
            "operators": [deployment("op")],
        }
        for name, objects in local.items():
            _write_chart(chart / "charts" / name, name, "0.1.0", objects)
        dependencies = [
            {"name": name, "version": "0.1.0", "repository": f"file://charts/{name}"}
            for name in local
        ] + [{"name": n, "version": v, "repository": self.url} for n, v in remote]
        values = {"global": {"image": "default"}}
        _write_chart(chart, "parent", "0.1.0", [], dependencies=dependencies, values=values)
        _git(self.repository, "add", "--all")
        _git(self.repository, "commit", "--quiet", "--allow-empty", "--message", "chart")
        return _git(self.repository, "rev-parse", "HEAD")

    def packed(self, folder: Path, version: str) -> Path:
        """Pack the chart of the commit with its dependencies into ``folder``."""
        root = folder / "source"
        _run(["git", "clone", "--quiet", self.repository, root], cwd=folder)
        _git(root, "checkout", "--quiet", self.commit)
        helm = self.tools / "helm/helm"
        _run([helm, "dependency", "update", root / FOLDER], cwd=folder)
        _run([helm, "package", root / FOLDER, "--version", version], cwd=folder)
        (archive,) = folder.glob("*.tgz")
        return archive

    @classmethod
    @contextmanager
    def serve(cls, folder: Path) -> Generator[Self]:
        """Serve the chart repository on loopback while the context is open."""
        tools = unpack_tools(folder / "real")
        charts = folder / "charts"
        charts.mkdir()
        handler = partial(_Quiet, directory=str(charts))
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        url = f"http://127.0.0.1:{server.server_port}"
        for name in (REMOTE, "unheard-of"):
            source = folder / name
            _write_chart(source, name, f"v{REMOTE_VERSION}", [daemon_set(name)])
            _run([tools / "helm/helm", "package", source, "--destination", charts], cwd=folder)
        _run([tools / "helm/helm", "repo", "index", charts, "--url", url], cwd=folder)
        (folder / "upstream").mkdir()
        _git(folder / "upstream", "init", "--quiet")
        _git(folder / "upstream", "config", "uploadpack.allowAnySHA1InWant", "true")
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield cls(folder=folder, url=url, tools=tools)
        finally:
            server.shutdown()
            thread.join()
            server.server_close()


@dataclass(frozen=True)
class Outcome:
    """Result of a build."""

    code: int  # Its exit code
    output: str  # What it printed
    calls: list[str]  # What it asked of AWS and of the cluster, in order
    objects: list[dict[str, Any]]  # What Helm would have applied


def build(upstream: Upstream, folder: Path, plan: HyperPodChartPlan, **changes: str) -> Outcome:
    """Run the script for ``plan`` with ``changes`` to its environment."""
    stubs = _stubs(upstream, folder)
    environment = {
        "PATH": f"{stubs / 'bin'}:{os.environ['PATH']}",
        "CODEBUILD_SRC_DIR_tools": str(stubs),
        "STUB_FOLDER": str(folder),
        "CLUSTER": "research",
        **chart_variables(plan),
        "RELEASE": plan.release,
        "NAMESPACE": plan.namespace,
        "OPERATOR_NAMESPACE": plan.operator_namespace,
        "VALUES": json.dumps(plan.values),
        "PLACEMENT": json.dumps(kustomization(plan)),
        "PLACED": " ".join(plan.daemon_set_types),
        "GOVERNANCE_ADDON": plan.governance_addon or "",
    }
    done = subprocess.run(
        ["bash", SCRIPT],
        env=environment | changes,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
    )
    calls, rendered = folder / "calls", folder / "rendered.yaml"
    text = rendered.read_text() if rendered.exists() else ""
    return Outcome(
        code=done.returncode,
        output=done.stdout + done.stderr,
        calls=calls.read_text().splitlines() if calls.exists() else [],
        objects=[each for each in yaml.safe_load_all(text) if each],
    )


_AWS = """\
echo "aws $*" >>"$STUB_FOLDER/calls"
if [[ $2 == describe-addon && -n ${ADDON_ERROR:-} ]]; then echo "$ADDON_ERROR" >&2; exit 254; fi
"""
_SLEEP = 'echo "sleep $*" >>"$STUB_FOLDER/calls"'
# What the cluster would be asked is asked of one that is not there, so that Helm judges the flags.
_HELM = f"""\
if [[ $1 == pull ]]; then exec REAL/helm/helm "$@" --plain-http; fi
if [[ $1 == registry ]]; then echo "helm $* $(cat)" >>"$STUB_FOLDER/calls"; exit 0; fi
if [[ $1 != upgrade ]]; then exec REAL/helm/helm "$@"; fi
echo "helm $1 $2" >>"$STUB_FOLDER/calls"
REAL/helm/helm "$@" --kube-apiserver {UNREACHABLE} 2>&1
while [[ $# -gt 0 && $1 != --values ]]; do [[ $1 == upgrade ]] && release=$2 chart=$3; shift; done
exec REAL/helm/helm template "$release" "$chart" --values "$2" --post-renderer place-pods \\
    >"$STUB_FOLDER/rendered.yaml"
"""
_KUBECTL = """\
if [[ $1 == kustomize ]]; then exec REAL/kubectl/kubectl "$@"; fi
echo "kubectl $*" >>"$STUB_FOLDER/calls"
case $1 in
auth) [[ $(grep --count "kubectl auth" "$STUB_FOLDER/calls") -gt ${LATE:-0} ]] ;;
get) [[ $2 == crd ]] && echo "${KUEUE:-}" || echo deployment.apps/op ;;
rollout) exit "${ROLLOUT:-0}" ;;
esac
"""


def _stubs(upstream: Upstream, folder: Path) -> Path:
    stubs = folder / "stubs"
    scripts = {
        "bin/aws": _AWS,
        "bin/sleep": _SLEEP,
        "helm/helm": _HELM,
        "kubectl/kubectl": _KUBECTL,
    }
    for name, script in scripts.items():
        path = stubs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/usr/bin/env bash\n" + script.replace("REAL", str(upstream.tools)))
        path.chmod(0o755)
    return stubs


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def _object(api_version: str, kind: str, name: str, **rest: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": rest.pop("namespace")}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata} | rest


def _write_chart(
    folder: Path,
    name: str,
    version: str,
    objects: Sequence[Mapping[str, Any]],
    *,
    dependencies: Sequence[Mapping[str, str]] = (),
    values: Mapping[str, Any] | None = None,
) -> None:
    (folder / "templates").mkdir(parents=True, exist_ok=True)
    about = {"apiVersion": "v2", "name": name, "version": version, "dependencies": [*dependencies]}
    (folder / "Chart.yaml").write_text(yaml.safe_dump(about))
    (folder / "values.yaml").write_text(yaml.safe_dump(dict(values or {})))
    (folder / "templates" / "all.yaml").write_text(yaml.safe_dump_all(objects))


def _git(folder: Path, *arguments: str) -> str:
    author = ("-c", "user.name=upstream", "-c", "user.email=upstream@example.com")
    return _run(["git", *author, *arguments], cwd=folder)


def _run(command: Sequence[str | Path], *, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True)
    return done.stdout.strip()
