"""The files of a user's repository beside its cluster file."""

import json
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import unquote, urlsplit

from ultrascale import config, release
from ultrascale.documents import mapping, text
from ultrascale.init.cluster_file import without_modeline
from ultrascale.init.starts import Start
from ultrascale.resources import resource

_SCHEMAS = ".ultrascale"
_WORKFLOW_FILE = ".github/workflows/ultrascale.yaml"
FIXED = ("cdk.json", "requirements.txt", ".gitignore", _WORKFLOW_FILE, "README.md")
"""Files of every repository, whatever the answers are."""
# What a plain `cdk synth` reads; the app takes the only cluster file of its folder.
CDK_SETTINGS = """\
{
  "app": "ultrascale app",
  "versionReporting": false,
  "notices": false,
  "context": {"cli-telemetry": false}
}
"""
_IGNORED = """\
/.venv/
/cdk.out/
/dist/
/node_modules/
__pycache__/
"""
_WORKFLOW = """\
# Checks the cluster file, and shows what a change of it costs and would replace. It needs no AWS
# account: `ultrascale preflight` and `ultrascale diff` without --against ask yours.
name: ultrascale
on:
  pull_request:
  push: {branches: [main]}
permissions: {contents: read}
jobs:
  check:
    runs-on: ubuntu-24.04
    env: {CLUSTER: FILE, BASE: "${{ github.base_ref }}"}
    steps:
      - uses: actions/checkout@v5
      - uses: actions/setup-python@v6
        with: {python-version: "3.12", cache: pip}
      - run: pip install -r requirements.txt
      - run: ultrascale check --format github "$CLUSTER"
      - run: ultrascale report "$CLUSTER" --markdown -o - >> "$GITHUB_STEP_SUMMARY"
      - run: PLAN
      - name: ultrascale diff
        if: github.event_name == 'pull_request'
        run: |
          git fetch --depth=1 origin "$BASE"
          # A new file replaces nothing.
          if git cat-file -e "FETCH_HEAD:$CLUSTER"; then
            ultrascale diff "$CLUSTER" --against FETCH_HEAD
          fi
"""
_PLAN = 'ultrascale plan "$CLUSTER"'
_PLAN_BEFORE_GRANTS = f"""\
|
          # 2: AWS has to grant something first. Take this out once it is in the file.
          {_PLAN} || [ $? -eq 2 ]"""
_README = """\
# NAME

An Amazon EKS cluster, described in [FILE](FILE) and made by ultrascale.

```sh
python3 -m venv .venv && . .venv/bin/activate
pip install -r requirements.txt
ultrascale check FILE        # every mistake at once, without an account
ultrascale plan FILE         # what it needs: quotas, money, time
ultrascale synth FILE        # templates into cdk.out/, manifests into dist/
ultrascale preflight FILE    # the same against your account; reads only
ultrascale deploy FILE       # shows changes and cost, asks, deploys
```

`requirements.txt` pins the version; an upgrade is a change of that line, and of the schemas that
editors know the keys from: `ultrascale schema -o .ultrascale/cluster.schema.json`.
`ultrascale eject --list` names what can be taken out to be changed, such as Dockerfiles.
"""


def repository_files(start: Start, name: str, cluster: str, folder: Path) -> dict[str, bytes]:
    """Return the content of each file, by its path in the repository.

    Args:
        start: What the cluster file starts from.
        name: Name of the cluster.
        cluster: The cluster file.
        folder: The repository.
    """
    file = f"{name}.yaml"
    files = {
        file: f"{config.modeline(_schema('cluster'))}\n{cluster}",
        "cdk.json": CDK_SETTINGS,
        "requirements.txt": f"{_requirement(folder)}\n",
        ".gitignore": _IGNORED,
        _WORKFLOW_FILE: _workflow(start, file),
        "README.md": _README.replace("FILE", file).replace("NAME", name),
        **dict(_jobs(start, file)),
        **dict(_schemas(start)),
    }
    return {path: content.encode() for path, content in files.items()}


def _workflow(start: Start, file: str) -> str:
    plan = _PLAN_BEFORE_GRANTS if start.needs_grants else _PLAN
    return _WORKFLOW.replace("FILE", file).replace("PLAN", plan)


def _jobs(start: Start, file: str) -> Iterator[tuple[str, str]]:
    for path in start.jobs:
        job = resource(path)
        content = job.read_text(encoding="utf-8")
        for own in ("clusters/trainium-bert.yaml", "clusters/hopper.yaml"):
            content = content.replace(own, file)
        content = without_modeline(content)
        line = config.modeline(f"../{_schema('job')}")
        yield f"jobs/{job.name}", f"{line}\n{content}"


def _schemas(start: Start) -> Iterator[tuple[str, str]]:
    """Yield the schemas; after an upgrade `ultrascale schema` prints them anew."""
    kinds: tuple[config.SchemaKind, ...] = ("cluster", "job") if start.jobs else ("cluster",)
    for kind in kinds:
        yield _schema(kind), config.schema_text(kind)


def _schema(kind: config.SchemaKind) -> str:
    return f"{_SCHEMAS}/{config.schema_file_name(kind)}"


def elsewhere(folder: Path) -> Path | None:
    """Return what this product was installed from on this machine; None: CI finds it as well.

    Args:
        folder: The repository.
    """
    place = _local_place(_origin())
    return None if place is None or _is_wheel_in(folder, place) else place


def _requirement(folder: Path) -> str:
    """Return the line that installs this very version, with the libraries that it was tested with.

    From an address that it was installed from, from a wheel in ``folder``, or else from an index:
    another place of this machine is not there in CI.

    Source: https://packaging.python.org/en/latest/specifications/direct-url/
    """
    wanted = f"{release.PRODUCT}[tested]"
    origin = _origin()
    place = _local_place(origin)
    if place is not None and _is_wheel_in(folder, place):
        return f"./{place.name}[tested]"
    if place is not None or not origin:
        return f"{wanted}=={release.VERSION}"
    address = text(origin, "url")
    if "vcs_info" in origin:
        commit = mapping(origin["vcs_info"])
        address = f"{text(commit, 'vcs')}+{address}@{text(commit, 'commit_id')}"
    if "subdirectory" in origin:
        address = f"{address}#subdirectory={text(origin, 'subdirectory')}"
    return f"{wanted} @ {address}"


def _origin() -> Mapping[str, object]:
    """Return pip's record of what the product was installed from; empty: from an index."""
    try:
        record = distribution(release.PRODUCT).read_text("direct_url.json")
    except PackageNotFoundError:
        record = None
    return mapping(json.loads(record)) if record else {}


def _local_place(origin: Mapping[str, object]) -> Path | None:
    address = urlsplit(text(origin, "url")) if origin else None
    return Path(unquote(address.path)) if address and address.scheme == "file" else None


def _is_wheel_in(folder: Path, place: Path) -> bool:
    return place.suffix == ".whl" and place.parent.resolve() == folder.resolve()
