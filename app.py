"""Entry point of `cdk synth`, `cdk diff` and `cdk deploy`; takes `-c cluster=<path>`."""

import sys
from pathlib import Path

from ultrascale import plan
from ultrascale.errors import UltrascaleError
from ultrascale.node import use_bundled_node

use_bundled_node()

import aws_cdk as cdk  # noqa: E402 -- jsii reads JSII_NODE when it is imported

from k8s import define_charts, write_manifests  # noqa: E402
from stacks import define_stacks  # noqa: E402
from stacks.validation import validate  # noqa: E402

DEFAULT_CLUSTER = "clusters/trainium-bert.yaml"


def synthesize(app: cdk.App, cluster: plan.ClusterPlan, *, manifests: Path) -> None:
    """Write the templates of ``cluster`` to the app's folder and its objects to ``manifests``."""
    charts = define_charts(cluster)
    define_stacks(app, cluster, charts)
    validate(app)
    app.synth()
    write_manifests(charts, manifests)


def main() -> None:
    """Synthesize the cluster file of the context key ``cluster``."""
    app = cdk.App()
    path = Path(app.node.try_get_context("cluster") or DEFAULT_CLUSTER)
    try:
        cluster = plan.load(path)
    except UltrascaleError as error:
        sys.exit(str(error))
    synthesize(app, cluster, manifests=Path("dist"))


if __name__ == "__main__":
    main()
