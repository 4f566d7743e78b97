"""The table of parts: one is taken away, and one is added, by its folder, its chart and its row."""

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.support.folders import ROOT

_PACKAGES = (
    "ultrascale",
    "constructs/ultrascale_constructs",
    "k8s/ultrascale_k8s",
    "stacks/ultrascale_stacks",
)
_PUBLIC = "constructs/ultrascale_constructs/public"
# Files beside them that a synthesis reads.
_BESIDE = ("backend", "examples", "images", "jobs", "lib", "requirements.txt", "training")
_TABLE = "ultrascale/parts/table.py"
_FILE = ROOT / "clusters" / "trainium-bert.yaml"
# The smallest: it has neither an engine of jobs nor a rendezvous server.
_SMALL = ROOT / "clusters" / "auto-mode.yaml"

# Tables of `ultrascale plan` that are not called as their part.
_TABLE_NAMES = {"backend": "callers"}
# The templates are compared, and judged elsewhere.
_UNJUDGED = {"CDK_VALIDATION": "false"}

_IMPORT_ALL = """
import pkgutil, importlib, sys
for root in ("ultrascale", "ultrascale_constructs", "ultrascale_k8s", "ultrascale_stacks"):
    package = importlib.import_module(root)
    assert package.__file__.startswith(sys.argv[1]), package.__file__
    for module in pkgutil.walk_packages(package.__path__, f"{root}."):
        alone = ("__main__", "ultrascale.torchx", "ultrascale.lambdas")
        if not module.name.startswith(alone) and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
"""
_PLAN = """
import json, sys
from pathlib import Path
from ultrascale import plan
from ultrascale.frozen import to_document
from ultrascale.plan.needs.report import plan_needs
cluster = plan.load(Path(sys.argv[2]))
needs = to_document(plan_needs(cluster))
parts = {each.pop("name"): each for each in needs.pop("parts")}
"""
_SYNTHESIZE = """
from aws_cdk import App
from ultrascale_k8s import define_charts
from ultrascale_stacks.builders import define_stacks
from ultrascale_stacks.feature_flags import FLAGS
app = App(post_cli_context=dict(FLAGS), analytics_reporting=False)
charts = define_charts(cluster)
define_stacks(app, cluster, charts)
templates = {each.stack_name: each.template for each in app.synth().stacks}
objects = {chart.name: list(chart.manifests) for chart in charts.all}
"""
_WHOLE = f"""{_PLAN}{_SYNTHESIZE}
print(json.dumps([needs, parts, templates, objects], default=str, sort_keys=True))
"""


def tree(folder: Path) -> Path:
    """A copy of the product, with what was compiled of it."""
    for name in _PACKAGES:
        shutil.copytree(ROOT / name, folder / name)
    for name in _BESIDE:
        (folder / name).symlink_to(ROOT / name)
    return folder


def output_of(root: Path, program: str, file: Path = _FILE) -> Any:
    """Return the JSON that a program prints which imports the product of ``root``."""
    paths = (root / name for name in ("", "constructs", "k8s", "stacks"))
    done = subprocess.run(
        [sys.executable, "-c", program, root, file],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), **_UNJUDGED},
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout) if done.stdout else None


@cache
def whole(file: Path) -> Any:
    """Return needs, tables of parts, templates and objects of the product with all its parts."""
    return output_of(ROOT, _WHOLE, file)


def import_of(name: str) -> str:
    module = f"{name}.part" if (ROOT / f"ultrascale/parts/{name}/part.py").exists() else name
    return f"from ultrascale.parts.{module} import PART as {name.upper()}\n"


def row_of(name: str) -> str:
    return f"    {name.upper()},\n"


@pytest.mark.parametrize(
    ("name", "file"),
    [
        *((name, _FILE) for name in ("pipeline", "keys", "mirror", "services", "front")),
        *((name, _FILE) for name in ("recipes", "models", "backend", "dev", "fabric")),
        *((name, _SMALL) for name in ("volcano", "kueue", "etcd", "hyperpod")),
    ],
)
def test_without_a_part_the_rest_imports_and_plans_and_renders_the_same(
    tmp_path: Path, name: str, file: Path
) -> None:
    root = tree(tmp_path)
    for package in ("ultrascale/parts", _PUBLIC, *_PACKAGES[1:]):
        shutil.rmtree(root / package / name, ignore_errors=True)
        (root / package / f"{name}.py").unlink(missing_ok=True)
    table = root / _TABLE
    assert {import_of(name), row_of(name)} <= {*table.read_text().splitlines(keepends=True)}
    table.write_text(table.read_text().replace(import_of(name), "").replace(row_of(name), ""))

    with ThreadPoolExecutor() as pool:
        without = pool.submit(output_of, root, _IMPORT_ALL + _WHOLE, file)
        needs, parts, templates, objects = whole(file)
    others = {key: value for key, value in parts.items() if key != _TABLE_NAMES.get(name, name)}
    assert without.result() == [needs, others, templates, objects]


_SANDBOX = '''
"""A namespace with a quota, for people who try something."""
from collections.abc import Sequence
from typing import Annotated, ClassVar
from pydantic import Field
from ultrascale import config
from ultrascale.core.part import Part
from ultrascale.frozen import Frozen
from ultrascale.plan.model import PlannedPart

class Sandbox(config.Section):
    namespace: str
    """Its name."""
    cpus: Annotated[int, Field(ge=1)] = 8
    """CPUs that its pods may request. Default: 8."""

class FileKeys(config.Section):
    sandbox: Sandbox | None = None
    """A namespace with a quota. Default: none."""

@config.rule
def sandbox_has_a_namespace_of_its_own(sandbox: Sandbox) -> config.Mistakes:
    if sandbox.namespace == "training":
        yield config.refuse("namespace", "where jobs run", "choose another")

class Plan(PlannedPart):
    renderer: ClassVar[str] = "sandbox"
    namespace: str
    cpus: int

class _Part(Part[FileKeys, Plan]):
    name = "sandbox"
    section = FileKeys

    def plan(self, cluster: config.Cluster, records: Sequence[Frozen]) -> Plan | None:
        section = cluster.section(Sandbox)
        return section and Plan(namespace=section.namespace, cpus=section.cpus)

PART = _Part()
'''
_SANDBOX_CHART = '''
"""Objects of the sandbox."""
from collections.abc import Iterator, Mapping, Sequence
from ultrascale.documents import JsonObject
from ultrascale.parts.sandbox import Plan
from ultrascale_k8s import PlatformChart

def charts(plan: Plan) -> Mapping[str, Sequence[PlatformChart]]:
    """Return the chart of the namespace and its quota."""
    return {"platform": [PlatformChart(name="sandbox", published=[*_objects(plan)])]}

def _objects(plan: Plan) -> Iterator[JsonObject]:
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": plan.namespace}}
    quota = {"name": "cpus", "namespace": plan.namespace}
    spec = {"hard": {"requests.cpu": str(plan.cpus)}}
    yield {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": quota, "spec": spec}
'''
_RENDER = """
from ultrascale_k8s import define_charts
print(json.dumps({chart.name: list(chart.manifests) for chart in define_charts(cluster).all}))
"""
_CHECK = """
import json, sys
from ultrascale import config
from ultrascale.errors import ConfigError
try:
    config.loads(open(sys.argv[2]).read())
except ConfigError as error:
    print(json.dumps(error.mistakes))
"""


def test_a_new_part_is_its_folder_its_chart_and_its_row(tmp_path: Path) -> None:
    root = tree(tmp_path)
    (root / "ultrascale/parts/sandbox").mkdir()
    (root / "ultrascale/parts/sandbox/__init__.py").write_text(_SANDBOX)
    (root / "k8s/ultrascale_k8s/sandbox.py").write_text(_SANDBOX_CHART)
    table = root / _TABLE
    text = table.read_text()
    for line in (import_of, row_of):
        text = text.replace(line("keys"), line("keys") + line("sandbox"))
    table.write_text(text)
    file = tmp_path / "research.yaml"
    file.write_text(f"{_FILE.read_text()}\nsandbox: {{namespace: play, cpus: 16}}\n")
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(f"{_FILE.read_text()}\nsandbox: {{namespace: training, cpu: 16}}\n")

    rendered = output_of(root, _PLAN + _RENDER, file)
    mistakes = output_of(root, _CHECK, wrong)

    namespace, quota = rendered["sandbox"]
    assert namespace["metadata"]["name"] == quota["metadata"]["namespace"] == "play"
    assert quota["spec"] == {"hard": {"requests.cpu": "16"}}
    assert [line.split(": ")[1] for line in mistakes] == ["sandbox.namespace", "sandbox.cpu"]
    assert len((_SANDBOX + _SANDBOX_CHART).splitlines()) <= 100
