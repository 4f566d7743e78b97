"""A user's repository: a cluster file, its jobs, and files that machines need."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from ultrascale import config, release
from ultrascale.errors import UltrascaleError
from ultrascale.init.cluster_file import (
    STAND_IN_ACCOUNT,
    STAND_IN_NETWORK,
    STARTS,
    Answers,
    Start,
    cluster_text,
    defaults,
    mistakes_in,
    without_modeline,
)
from ultrascale.init.source import PLACES, Source, given_source, local_wheel, recorded_source
from ultrascale.new_files import refuse_existing, write_new_files
from ultrascale.resources import resource

# --- The files of a user's repository beside its cluster file -------------------------------------


_SCHEMAS = ".ultrascale"
_WORKFLOW_FILE = ".github/workflows/ultrascale.yaml"
FIXED = ("cdk.json", "requirements.txt", ".gitignore", _WORKFLOW_FILE, "README.md")
"""Files that every repository with CI has, whatever the user answers."""
# Settings that a plain `cdk synth` reads; the app takes the only cluster file of the folder.
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
# Checks the cluster file, and shows what a change of it costs and would replace. Each week it fails
# where a fact that the file rests on, such as a price or an AMI, expires within a month.
# ACCOUNT
name: ultrascale
on:
  pull_request:
  push: {branches: [main]}
  schedule: [{cron: "17 6 * * 1"}]
permissions: {PERMISSIONS}
jobs:
  check:
    runs-on: ubuntu-24.04
    env: {CLUSTER: FILE, BASE: "${{ github.base_ref }}"}
    steps:
      - uses: actions/checkout@v5
      - uses: actions/setup-python@v6
        with: {python-version: "3.12", cache: pip}
INSTALL      - run: pip install -r requirements.txt
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
      - if: github.event_name == 'schedule'
        run: ultrascale facts "$CLUSTER" --expired --within 30d
"""
_NO_ACCOUNT = """\
It needs no AWS account: `ultrascale preflight`, and `diff` without --against, ask yours."""
_WHEEL_ALONE = """\
In AWS it reads the wheel of ultrascale alone, by the role in the variable ULTRASCALE_ROLE. All
# later steps have its credentials: let it read this object, and do nothing else."""
_FETCH = """\
      - uses: aws-actions/configure-aws-credentials@v5
        with: {role-to-assume: "${{ vars.ULTRASCALE_ROLE }}", aws-region: REGION}
      - run: aws s3 cp --only-show-errors OBJECT .
"""
_COMPARE = """\
      - run: echo "DIGEST  WHEEL" | sha256sum --check
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
INSTALL
ultrascale check FILE        # every mistake at once, without an account
ultrascale plan FILE         # what it needs: quotas, money, time
ultrascale synth FILE        # templates into cdk.out/, manifests into dist/
ultrascale preflight FILE    # the same against your account; reads only
ultrascale deploy FILE       # shows changes and cost, asks, deploys
```

UPGRADE, and of the schemas that
editors know the keys from: `ultrascale schema -o .ultrascale/cluster.schema.json`.
"""


def repository_files(
    start: Start, name: str, cluster: str, region: str, source: Source | None
) -> dict[str, bytes]:
    """Return the content of every file, by path in the repository.

    Args:
        start: The file that the cluster file starts from.
        name: Name of the cluster.
        cluster: The cluster file.
        region: Region of the cluster.
        source: The place that machines install this product from; without it, files that
            install the product are left out.
    """
    file = f"{name}.yaml"
    files = {
        file: f"{config.modeline(_schema('cluster'))}\n{cluster}",
        "cdk.json": CDK_SETTINGS,
        ".gitignore": _gitignore(source),
        "README.md": _readme(name, file, source),
        **dict(_job_files(start, file)),
        **dict(_schemas(start)),
    }
    if source is not None:
        files["requirements.txt"] = f"{source.requirement}\n"
        files[_WORKFLOW_FILE] = _workflow(start, file, region, source)
    contents = {path: content.encode() for path, content in files.items()}
    if source is not None and source.content is not None:
        contents[source.wheel] = source.content
    return contents


def _workflow(start: Start, file: str, region: str, source: Source) -> str:
    fetched = bool(source.bucket_object)
    install = _COMPARE.replace("DIGEST", source.sha256).replace("WHEEL", source.wheel)
    if fetched:
        fetch = _FETCH.replace("REGION", region).replace("OBJECT", source.bucket_object)
        install = f"{fetch}{install}"
    return _filled_template(
        _WORKFLOW,
        {
            "FILE": file,
            "PLAN": _PLAN_BEFORE_GRANTS if start.needs_grants else _PLAN,
            "ACCOUNT": _WHEEL_ALONE if fetched else _NO_ACCOUNT,
            "PERMISSIONS": "contents: read, id-token: write" if fetched else "contents: read",
            "INSTALL": install if source.wheel else "",
        },
    )


def _gitignore(source: Source | None) -> str:
    fetched = source is not None and source.bucket_object
    return f"{_IGNORED}/{release.PRODUCT}-*.whl\n" if fetched else _IGNORED


def _readme(name: str, file: str, source: Source | None) -> str:
    if source is None:
        wheel = f"{release.PRODUCT}-{release.VERSION}-py3-none-any.whl"
        install = f"pip install './{wheel}[tested]'   # the release that wrote this"
        upgrade = "An upgrade is another wheel, installed by its path"
    else:
        install = "pip install -r requirements.txt"
        upgrade = "`requirements.txt` pins the version; an upgrade is a change of that line"
    if source is not None and source.wheel:
        upgrade = f"{upgrade}, of the\nwheel and its digest in `{_WORKFLOW_FILE}`"
    if source is not None and source.bucket_object:
        install = f"aws s3 cp {source.bucket_object} .\n{install}"
    return _filled_template(
        _README, {"FILE": file, "NAME": name, "UPGRADE": upgrade, "INSTALL": install}
    )


def _filled_template(template: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        template = template.replace(name, value)
    return template


def _job_files(start: Start, file: str) -> Iterator[tuple[str, str]]:
    for path in start.jobs:
        job = resource(path)
        content = job.read_text(encoding="utf-8")
        for own in ("clusters/trainium-bert.yaml", "clusters/hopper.yaml"):
            content = content.replace(own, file)
        content = without_modeline(content)
        line = config.modeline(f"../{_schema('job')}")
        yield f"jobs/{job.name}", f"{line}\n{content}"


def _schemas(start: Start) -> Iterator[tuple[str, str]]:
    """Yield the schemas; after an upgrade, `ultrascale schema` prints new ones."""
    kinds: tuple[config.SchemaKind, ...] = ("cluster", "job") if start.jobs else ("cluster",)
    for kind in kinds:
        yield _schema(kind), config.schema_text(kind)


def _schema(kind: config.SchemaKind) -> str:
    return f"{_SCHEMAS}/{config.schema_file_name(kind)}"


__all__ = [
    "PLACES",
    "STAND_IN_ACCOUNT",
    "STAND_IN_NETWORK",
    "STARTS",
    "Answers",
    "Source",
    "Start",
    "cluster_text",
    "defaults",
    "given_source",
    "init",
    "local_wheel",
    "mistakes_in",
    "recorded_source",
    "refuse_used_folder",
]

# Files that a new repository, or the environment of this program, may already have.
_LEFT = ("LICENSE", "LICENSE.md", "LICENSE.txt")
_SHOWN = 3


def init(start: Start, answers: Answers, folder: Path, source: Source | None) -> tuple[str, ...]:
    """Write a repository for one cluster into an empty or new folder.

    Args:
        start: The file that the cluster file starts from.
        answers: The user's answers.
        folder: The folder.
        source: The place that the CI installs this product from; None for a repository without CI.

    Returns:
        The paths of the files.

    Raises:
        UltrascaleError: The folder is not empty or cannot be written to. Then it is unchanged.
    """
    refuse_used_folder(folder)
    files = repository_files(
        start, answers.name, cluster_text(start, answers), answers.region, source
    )
    write_new_files(folder, files)
    return tuple(files)


def refuse_used_folder(folder: Path) -> None:
    """Refuse a folder that a repository cannot be written into.

    A virtual environment, wheels, a license, and names with a leading dot, such as `.git`, are
    allowed.

    Raises:
        UltrascaleError: The folder holds other files, or a file of `FIXED`, or is no folder.
    """
    try:
        there = sorted(folder.iterdir())
    except FileNotFoundError:
        return
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UltrascaleError(f"{folder}: {reason}; name an empty folder by --to") from None
    used = [path.name for path in there if not _may_stay(path)]
    if used:
        more = f" and {len(used) - _SHOWN} more" if len(used) > _SHOWN else ""
        raise UltrascaleError(
            f"{folder}: not empty, it has {', '.join(used[:_SHOWN])}{more}; nothing was written; "
            "run it in an empty folder, or name a new one by --to"
        )
    refuse_existing(folder, FIXED)


def _may_stay(path: Path) -> bool:
    is_environment = (path / "pyvenv.cfg").is_file()
    return (
        path.name.startswith(".") or path.suffix == ".whl" or path.name in _LEFT or is_environment
    )
