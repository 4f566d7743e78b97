"""The CDK app: `-c cluster=<path>` for a cluster, `-c PART=<path>` for the app of a part.

`python -m ultrascale_stacks` runs it in any folder.
"""

import gc
import os
import re
import sys
from collections.abc import Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from ultrascale.documents import parse_json, read_json
from ultrascale.errors import ConfigError, QuestionError, UltrascaleError, no_room
from ultrascale.node import use_node
from ultrascale_stacks.feature_flags import FLAGS

if TYPE_CHECKING:
    import aws_cdk as cdk

    from ultrascale.plan import ClusterPlan
    from ultrascale.plan.model import AppPlan
    from ultrascale_k8s import Charts


# --- Cluster files of a folder, for commands without a named file ---------------------------------


# A file with a mistake is a cluster file too: its reader reports the mistake.
_KEYS = tuple(re.compile(rf"^{key}[ ]*:", re.MULTILINE) for key in ("name", "region", "pools"))


def cluster_files(folder: Path) -> Iterator[Path]:
    """Yield the YAML files of ``folder`` itself that have the keys of a cluster file, by name."""
    for file in sorted([*folder.glob("*.yaml"), *folder.glob("*.yml")]):
        try:
            text = file.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        if all(key.search(text) for key in _KEYS):
            yield file


def only_cluster_file(folder: Path) -> Path:
    """Return the only cluster file of ``folder``, or of its folder ``clusters``.

    Raises:
        QuestionError: There is no cluster file, or more than one.
    """
    files = [*cluster_files(folder)] or [*cluster_files(folder / "clusters")]
    if len(files) == 1:
        return files[0]
    if not files:
        here = folder.resolve()
        raise QuestionError(
            [
                f"{here}: has no cluster file; name one by -c cluster=FILE, or begin with "
                "`ultrascale init`"
            ]
        )
    choices = ", ".join(f"-c cluster={file}" for file in files)
    raise QuestionError([f"{len(files)} cluster files are here; choose one: {choices}"])


# --- The CDK app: `-c cluster=<path>` for a cluster, `-c PART=<path>` for the app of a part -------


_OWN_MODULES = ("ultrascale_stacks.builders", "ultrascale_stacks.validation")
_ID = "PROPERTY_INJECTION_ID"
# A constant of a class in each module of the CDK that every cluster takes: Node.js loads a module
# when something of it is asked for.
_CONSTANTS = {
    "aws_ec2.CfnVPC": "CFN_RESOURCE_TYPE_NAME",
    "aws_ec2.Vpc": _ID,
    "aws_ec2.SecurityGroup": _ID,
    "aws_iam.Role": _ID,
    "aws_kms.Key": _ID,
    "aws_logs.LogGroup": _ID,
    "aws_lambda.Function": _ID,
    "aws_eks_v2.Cluster": _ID,
    "aws_eks_v2.KubernetesManifest": "RESOURCE_TYPE",
    "aws_eks_v2.AccessEntry": _ID,
    "region_info.Fact": "regions",
}


def synthesize(
    app: "cdk.App",
    cluster: "ClusterPlan",
    charts: "Charts",
    file: Path,
    *,
    manifests: Path,
    validated: bool = True,
) -> None:
    """Write the templates of a cluster to the app's folder and its objects to ``manifests``.

    Args:
        app: The app.
        cluster: The cluster.
        charts: The cluster's objects.
        file: The cluster's file.
        manifests: Folder of the objects.
        validated: Whether the templates are validated.
    """
    from ultrascale_k8s import write_manifests
    from ultrascale_stacks.builders import define_stacks
    from ultrascale_stacks.validation import closed_network, write_templates

    define_stacks(app, cluster, charts)
    write_templates(app, closed_network(cluster, file), validated=validated)
    write_manifests(charts, manifests)
    for part in cluster.parts:
        for line in part.image_warnings(charts.published_images):
            sys.stderr.write(f"warning: {line}\n")


def main() -> None:
    """Synthesize the file of the context key ``cluster``, or of that of a part with an app."""
    try:
        _synthesize_named_file()
    except (OSError, RuntimeError) as error:
        todo = "make room for 100 MB in TMPDIR and in the folders of the output, then run it again"
        sentence = no_room(error, todo)
        if not sentence:
            raise
        sys.exit(sentence)


def _synthesize_named_file() -> None:
    # `cdk synth --no-validation` sets it.
    # Source: https://docs.aws.amazon.com/cdk/api/v2/python/aws_cdk/App.html
    validated = os.environ.get("CDK_VALIDATION") != "false"
    try:
        # jsii reads the path of Node.js when it is imported.
        use_node()
    except UltrascaleError as error:
        sys.exit(str(error))
    with _without_garbage_collection(), ThreadPoolExecutor(1) as caller:
        # jsii allows one caller at a time: until the charts are there, that is this thread.
        packages = caller.submit(_load_packages)
        started = caller.submit(_start_app, validated=validated)
        context = _context()
        manifests = Path(str(context.get("manifests") or "dist"))
        part = next((name for name in _parts_with_apps() if context.get(name)), None)
        named = context.get(part or "cluster")
        try:
            path = Path(str(named)) if named else only_cluster_file(Path())
            cluster, planned = _plans(path, part)
        except UltrascaleError as error:
            sys.exit(str(error))
        charts = None if cluster is None else caller.submit(_charts, cluster)
        packages.result()
        for name in _OWN_MODULES:
            import_module(name)
        app = started.result()
        if planned is not None:
            # This module imports the AWS SDK, which a cluster's own synthesis does not need.
            root = import_module(f"ultrascale_stacks.{part}")
            root.synthesize(app, planned, manifests=manifests, validated=validated)
        if cluster is not None and charts is not None:
            synthesize(
                app, cluster, charts.result(), path, manifests=manifests, validated=validated
            )


def _context() -> Mapping[str, object]:
    """Return the context from the CDK CLI, as the CDK's app reads it.

    Source: aws-cdk-lib 2.275.0, core/lib/app.js and cx-api/lib/cxapi.js
    """
    context: dict[str, object] = parse_json(os.environ.get("CDK_CONTEXT_JSON", "{}"))
    if file := os.environ.get("CONTEXT_OVERFLOW_LOCATION_ENV"):
        context |= read_json(Path(file))
    return context


def _parts_with_apps() -> list[str]:
    from ultrascale.core.table import all_parts

    return [part.name for part in all_parts() if part.has_app]


def _plans(path: Path, part: str | None) -> "tuple[ClusterPlan, None] | tuple[None, AppPlan]":
    """Return the plan of the cluster of a file, or else of the app of ``part``.

    Raises:
        UltrascaleError: The file has mistakes, or no such app.
    """
    from ultrascale import plan

    if part is None:
        return plan.load(path), None
    app = plan.load_app(path)
    if app is None:
        todo = f"add the section, or use -c cluster={path}"
        raise ConfigError([f"{path}: no {part}; {todo}"])
    return None, app


def _load_packages() -> None:
    """Start Node.js, and load the packages of every cluster: the CDK, cdk8s, kubectl's layer.

    Afterwards another thread may import the CDK's classes: the import sends Node.js no request.
    """
    for name in ("aws_cdk.lambda_layer_kubectl_v35", "cdk8s"):
        import_module(name)


def _start_app(*, validated: bool) -> "cdk.App":
    """Return the app; let Node.js load early the modules that every cluster uses."""
    import aws_cdk as cdk
    import jsii

    app = cdk.App(post_cli_context=dict(FLAGS), analytics_reporting=False)
    for name, constant in _CONSTANTS.items():
        # Created by its name: at the same time the other thread imports the Python class.
        owner = type(name, (), {"__jsii_type__": f"aws-cdk-lib.{name}"})
        jsii.sget(owner, constant)
    if validated:
        import_module("cdk_nag")
    return app


def _charts(cluster: "ClusterPlan") -> "Charts":
    from ultrascale_k8s import define_charts

    return define_charts(cluster)


@contextmanager
def _without_garbage_collection() -> Generator[None]:
    """Turn garbage collection off: the objects of a synthesis stay until the process ends."""
    gc.disable()
    try:
        yield
    finally:
        # Otherwise the end of the process would look for cycles among the objects, twice.
        gc.freeze()
        gc.enable()
