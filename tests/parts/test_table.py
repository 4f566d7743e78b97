"""The table of parts: one is taken away, and one is added, by its folder, its chart and its row."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, cast

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
Product = Callable[..., Any]

# The product is imported anew, from the tree, in a process that has imported all that it imports of
# others: to start Python, Node.js and the CDK for each part would take longer than all else. What
# forks leave in Node.js, which they use one after the other, harms no later one.
_SERVER = """
import gc, importlib, json, os, pkgutil, sys, traceback
from pathlib import Path

ROOTS = ("ultrascale", "ultrascale_constructs", "ultrascale_k8s", "ultrascale_stacks")
# They stand for a library of that name, or run in AWS Lambda with what it has.
ALONE = ("ultrascale.torchx", "ultrascale.lambdas")

def import_all(tree):
    for root in ROOTS:
        package = importlib.import_module(root)
        assert package.__file__.startswith(tree), package.__file__
        for module in pkgutil.walk_packages(package.__path__, f"{root}."):
            if not module.name.startswith(ALONE) and not module.name.endswith("__main__"):
                importlib.import_module(module.name)

def planned(file):
    from ultrascale import plan
    from ultrascale.frozen import to_document
    from ultrascale.plan.needs.report import plan_needs
    cluster = plan.load(Path(file))
    needs = to_document(plan_needs(cluster))
    return cluster, needs, {each.pop("name"): each for each in needs.pop("parts")}

def objects_of(charts):
    return {chart.name: list(chart.manifests) for chart in charts.all}

def rendered(file):
    from ultrascale_k8s import define_charts
    cluster, _, parts = planned(file)
    return [parts, objects_of(define_charts(cluster))]

def synthesized(file):
    from aws_cdk import App
    from ultrascale_k8s import define_charts
    from ultrascale_stacks.builders import define_stacks
    from ultrascale_stacks.feature_flags import FLAGS
    cluster, needs, parts = planned(file)
    # The templates are compared, and judged elsewhere.
    app = App(post_cli_context=dict(FLAGS), analytics_reporting=False,
              builtin_cloud_formation_validation=False)
    charts = define_charts(cluster)
    define_stacks(app, cluster, charts)
    templates = {each.stack_name: each.template for each in app.synth().stacks}
    return [needs, parts, templates, objects_of(charts)]

def mistakes(file):
    from ultrascale import config
    from ultrascale.errors import ConfigError
    try:
        config.loads(Path(file).read_text())
    except ConfigError as error:
        return error.mistakes

def anew(tree):
    for name in [*sys.modules]:
        if name.split(".")[0] in ROOTS:
            del sys.modules[name]
    folders = [os.path.join(tree, each) for each in ("", "constructs", "k8s", "stacks")]
    sys.path[:] = folders + [each for each in sys.path if each not in PRODUCT]
    os.chdir(tree)
    importlib.invalidate_caches()
    import_all(tree)

PRODUCT = os.environ["PYTHONPATH"].split(os.pathsep)
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
import_all(os.getcwd())
gc.freeze()
for line in sys.stdin:
    tree, function, file = json.loads(line)
    answers.flush()
    child = os.fork()
    if child == 0:
        try:
            if tree != PRODUCT[0]:
                anew(tree)
            answer = json.dumps(globals()[function](file), default=str, sort_keys=True)
        except BaseException:
            answer = json.dumps({"error": traceback.format_exc()})
        answers.write(answer)
        answers.flush()
        os._exit(0)
    os.waitpid(child, 0)
    answers.write(chr(10))
    answers.flush()
"""


def tree(folder: Path) -> Path:
    """A copy of the product, with what was compiled of it."""
    for name in _PACKAGES:
        shutil.copytree(ROOT / name, folder / name)
    for name in _BESIDE:
        (folder / name).symlink_to(ROOT / name)
    return folder


def folders(root: Path) -> list[str]:
    return [str(root / name) if name else str(root) for name in ("", "constructs", "k8s", "stacks")]


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """Return the answer of a function of the server: the product of a tree, about a file."""
    errors = tmp_path_factory.mktemp("server") / "errors"
    with (
        errors.open("w") as log,
        subprocess.Popen(
            [sys.executable, "-c", _SERVER],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(folders(ROOT))},
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as server,
    ):
        assert server.stdin is not None
        assert server.stdout is not None
        asked, answers = server.stdin, server.stdout

        def answer(root: Path, function: str, file: Path = _FILE) -> Any:
            print(json.dumps([str(root), function, str(file)]), file=asked, flush=True)
            line = answers.readline()
            assert line, errors.read_text()
            value = json.loads(line)
            if isinstance(value, dict):
                pytest.fail(str(cast("dict[str, str]", value)["error"]), pytrace=False)
            return value

        yield answer


@pytest.fixture(scope="module")
def whole(product: Product) -> Callable[[Path], Any]:
    """Needs, tables of parts, templates and objects of the product with all its parts."""
    return cache(partial(product, ROOT, "synthesized"))


def import_of(name: str) -> str:
    module = f"{name}.part" if (ROOT / f"ultrascale/parts/{name}/part.py").exists() else name
    return f"from ultrascale.parts.{module} import PART as {name.upper()}\n"


def row_of(name: str) -> str:
    return f"    {name.upper()},\n"


# That no part imports another, unless it needs it, is a contract of the import linter.
@pytest.mark.parametrize(
    ("names", "file"),
    [
        (("pipeline", "keys", "mirror", "services", "front"), _FILE),
        (("recipes", "models", "backend", "dev", "fabric", "ray"), _FILE),
        (("volcano", "kueue", "etcd", "hyperpod"), _SMALL),
    ],
    ids=["delivery", "training", "engines"],
)
def test_without_parts_the_rest_imports_and_plans_and_renders_the_same(
    tmp_path: Path,
    names: Sequence[str],
    file: Path,
    product: Product,
    whole: Callable[[Path], Any],
) -> None:
    root = tree(tmp_path)
    table = root / _TABLE
    for name in names:
        for package in ("ultrascale/parts", _PUBLIC, *_PACKAGES[1:]):
            shutil.rmtree(root / package / name, ignore_errors=True)
            (root / package / f"{name}.py").unlink(missing_ok=True)
        assert {import_of(name), row_of(name)} <= {*table.read_text().splitlines(keepends=True)}
        table.write_text(table.read_text().replace(import_of(name), "").replace(row_of(name), ""))

    needs, parts, templates, objects = whole(file)
    tables = {_TABLE_NAMES.get(name, name) for name in names}
    others = {key: value for key, value in parts.items() if key not in tables}
    assert product(root, "synthesized", file) == [needs, others, templates, objects]


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


def test_a_new_part_is_its_folder_its_chart_and_its_row(tmp_path: Path, product: Product) -> None:
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

    _, objects = product(root, "rendered", file)
    mistakes = product(root, "mistakes", wrong)

    namespace, quota = objects["sandbox"]
    assert namespace["metadata"]["name"] == quota["metadata"]["namespace"] == "play"
    assert quota["spec"] == {"hard": {"requests.cpu": "16"}}
    assert [line.split(": ")[1] for line in mistakes] == ["sandbox.namespace", "sandbox.cpu"]
    assert len((_SANDBOX + _SANDBOX_CHART).splitlines()) <= 100
