"""The CDK app: `-c cluster=<path>` for a cluster, `-c pipeline=<path>` for its pipeline.

`python -m ultrascale_stacks` runs it in any folder.
"""

import gc
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from ultrascale.cluster_files import only_cluster_file
from ultrascale.errors import ConfigError, UltrascaleError
from ultrascale.node import use_node
from ultrascale_stacks.feature_flags import FLAGS

if TYPE_CHECKING:
    import aws_cdk as cdk

    from ultrascale.hosts import ClosedNetwork
    from ultrascale.plan import ClusterPlan
    from ultrascale.plan.model import PipelinePlan


def synthesize(
    app: "cdk.App", cluster: "ClusterPlan", file: Path, *, manifests: Path, validated: bool = True
) -> None:
    """Write the templates of a cluster to the app's folder and its objects to ``manifests``.

    Args:
        app: The app.
        cluster: The cluster.
        file: Its cluster file.
        manifests: Folder of the objects.
        validated: Whether the templates are judged.
    """
    from ultrascale.core.table import all_parts
    from ultrascale_k8s import define_charts, write_manifests
    from ultrascale_stacks.builders import define_stacks
    from ultrascale_stacks.validation import closed_network

    charts = define_charts(cluster)
    define_stacks(app, cluster, charts)
    _write_templates(app, closed_network(cluster, file), validated=validated)
    write_manifests(charts, manifests)
    for part in all_parts():
        for line in part.image_warnings(cluster, charts.published_images):
            sys.stderr.write(f"warning: {line}\n")


def synthesize_pipeline(
    app: "cdk.App", plan: "PipelinePlan", *, manifests: Path, validated: bool = True
) -> None:
    """Write the pipeline of ``plan``, and each stage as `synthesize` does, to folders."""
    # With the SDK of AWS, which a cluster's own synthesis does without.
    from ultrascale.preflight.checks import all_checks
    from ultrascale.preflight.policy import policy
    from ultrascale_k8s import define_charts, write_manifests
    from ultrascale_stacks.pipeline import define_pipeline, share_files

    charts = {stage.name: define_charts(stage.cluster) for stage in plan.stages}
    policies = {
        stage.name: policy(all_checks(), stage.cluster, stage.account) for stage in plan.stages
    }
    define_pipeline(app, plan, charts, policies, validated=validated)
    _write_templates(app, validated=validated)
    share_files(Path(app.outdir), schema=plan.assets_schema)
    for stage, objects in charts.items():
        write_manifests(objects, manifests / stage)


def _write_templates(
    app: "cdk.App", closed: "ClosedNetwork | None" = None, *, validated: bool
) -> None:
    from ultrascale_stacks.validation import acknowledge_findings, validate

    acknowledge_findings(app)
    if validated:
        validate(app, closed)
    app.synth()


def main() -> None:
    """Synthesize the file of the context key ``pipeline`` or ``cluster``."""
    # `cdk synth --no-validation` sets it.
    # Source: https://docs.aws.amazon.com/cdk/api/v2/python/aws_cdk/App.html
    validated = os.environ.get("CDK_VALIDATION") != "false"
    try:
        # jsii reads the path of Node.js when it is imported.
        use_node()
    except UltrascaleError as error:
        sys.exit(str(error))
    with _without_garbage_collection():
        # Node.js starts and reads the libraries' packages while Python loads the planner.
        libraries = Thread(target=_load_libraries)
        libraries.start()
        from ultrascale import plan
        from ultrascale.plan.pipeline import load_pipeline

        libraries.join()
        import aws_cdk as cdk

        app = cdk.App(post_cli_context=dict(FLAGS), analytics_reporting=False)
        manifests = Path(app.node.try_get_context("manifests") or "dist")
        piped = app.node.try_get_context("pipeline")
        named = piped or app.node.try_get_context("cluster")
        try:
            path = Path(named) if named else only_cluster_file(Path())
            cluster = None if piped else plan.load(path)
            pipeline = load_pipeline(path) if piped else None
            if cluster is None and pipeline is None:
                todo = f"add the section, or use -c cluster={path}"
                raise ConfigError([f"{path}: no pipeline; {todo}"])
        except UltrascaleError as error:
            sys.exit(str(error))
        if pipeline is not None:
            synthesize_pipeline(app, pipeline, manifests=manifests, validated=validated)
        if cluster is not None:
            synthesize(app, cluster, path, manifests=manifests, validated=validated)


def _load_libraries() -> None:
    """Import what every cluster takes: the CDK, cdk8s, and the layer with kubectl."""
    for name in ("aws_cdk.lambda_layer_kubectl_v35", "cdk8s"):
        import_module(name)


@contextmanager
def _without_garbage_collection() -> Generator[None]:
    """Leave cycles alone: a synthesis makes many objects that stay, and then the process ends."""
    gc.disable()
    try:
        yield
    finally:
        # Or else the end of the process looks for cycles among them, twice.
        gc.freeze()
        gc.enable()
