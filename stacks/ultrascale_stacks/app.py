"""The CDK app: `-c cluster=<path>` for a cluster, `-c pipeline=<path>` for its pipeline."""

import sys
from pathlib import Path

from ultrascale import plan
from ultrascale.errors import ConfigError, UltrascaleError
from ultrascale.node import use_bundled_node
from ultrascale.plan.model import PipelinePlan
from ultrascale.plan.pipeline import load_pipeline

use_bundled_node()

import aws_cdk as cdk  # noqa: E402 -- jsii reads JSII_NODE when it is imported

from ultrascale_k8s import define_charts, write_manifests  # noqa: E402
from ultrascale_stacks.assembly import define_stacks  # noqa: E402
from ultrascale_stacks.pipeline import define_pipeline, share_files  # noqa: E402
from ultrascale_stacks.validation import validate  # noqa: E402

DEFAULT_CLUSTER = "clusters/trainium-bert.yaml"


def synthesize(app: cdk.App, cluster: plan.ClusterPlan, *, manifests: Path) -> None:
    """Write the templates of ``cluster`` to the app's folder and its objects to ``manifests``."""
    charts = define_charts(cluster)
    define_stacks(app, cluster, charts)
    validate(app)
    app.synth()
    write_manifests(charts, manifests)


def synthesize_pipeline(app: cdk.App, plan: PipelinePlan, *, manifests: Path) -> None:
    """Write the pipeline of ``plan``, and each stage as `synthesize` would, into folders."""
    charts = {stage.name: define_charts(stage.cluster) for stage in plan.stages}
    define_pipeline(app, plan, charts)
    validate(app)
    app.synth()
    share_files(Path(app.outdir))
    for stage, objects in charts.items():
        write_manifests(objects, manifests / stage)


def main() -> None:
    """Synthesize the file of the context key ``pipeline`` or ``cluster``."""
    app = cdk.App()
    manifests = Path("dist")
    piped = app.node.try_get_context("pipeline")
    path = Path(piped or app.node.try_get_context("cluster") or DEFAULT_CLUSTER)
    try:
        cluster = None if piped else plan.load(path)
        pipeline = load_pipeline(path) if piped else None
        if cluster is None and pipeline is None:
            raise ConfigError([f"{path}: no pipeline; add the section, or use -c cluster={path}"])
    except UltrascaleError as error:
        sys.exit(str(error))
    if pipeline is not None:
        synthesize_pipeline(app, pipeline, manifests=manifests)
    if cluster is not None:
        synthesize(app, cluster, manifests=manifests)
