"""The pipeline of clusters, its stages, and the role of its gates."""

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from aws_cdk import App, Environment, Stack, Stage, Validations

from ultrascale.documents import read_json
from ultrascale.parts.pipeline import facts
from ultrascale.parts.pipeline.model import GATE_STACK, PipelinePlan, StagePlan
from ultrascale.plan import names
from ultrascale.preflight.checks import all_checks
from ultrascale.preflight.policy import policy
from ultrascale_constructs.pipeline.gate import GateRole
from ultrascale_constructs.pipeline.pipeline import CHECKS, DeploymentPipeline
from ultrascale_k8s import Charts, define_charts, write_manifests
from ultrascale_stacks.builders import bound_roles, define_stacks
from ultrascale_stacks.validation import (
    OwnRules,
    acknowledge_findings,
    closed_network,
    write_templates,
)


class ClusterApp(App):
    """App of its own for the stacks of a stage.

    The CDK derives ids, names and descriptions from the path of a construct. Within the pipeline's
    app, the path would begin with the stage. In an app of its own the stage has the same stacks
    that `cdk deploy -c cluster=FILE` deploys from a workstation.
    """

    def __init__(self, *, folder: Path, context: Mapping[str, object]) -> None:
        """Create the app.

        Args:
            folder: Folder of the app's assembly.
            context: Feature flags and settings of the pipeline's app.
        """
        super().__init__(
            outdir=str(folder),
            # The command line turns validation on or off in this app too.
            post_cli_context=dict(context),
            analytics_reporting=False,
            # These stacks are validated when their cluster file is synthesized.
            builtin_cloud_formation_validation=False,
            auto_synth=False,
        )
        self._name = ""

    @property
    def stage_name(self) -> str:
        """Name of the stage in the pipeline; the CDK puts it before the name of each new stack."""
        return self._name

    def complete(self, name: str) -> None:
        """Name the stage after its stacks are defined, so that the stacks keep their names."""
        self._name = name


def synthesize(app: App, plan: PipelinePlan, *, manifests: Path, validated: bool = True) -> None:
    """Write the pipeline to the app's folder, and the objects of each stage to ``manifests``.

    Args:
        app: The app.
        plan: The pipeline.
        manifests: Folder of the objects, with a folder for each stage.
        validated: Whether the templates are validated.
    """
    charts = {stage.name: define_charts(stage.cluster) for stage in plan.stages}
    policies = {
        stage.name: policy(all_checks(), stage.cluster, stage.account) for stage in plan.stages
    }
    define_pipeline(app, plan, charts, policies, validated=validated)
    write_templates(app, validated=validated)
    share_files(Path(app.outdir), schema=facts.CDK_ASSETS_SCHEMA)
    for stage, objects in charts.items():
        write_manifests(objects, manifests / stage)


def define_pipeline(
    app: App,
    plan: PipelinePlan,
    charts: Mapping[str, Charts],
    policies: Mapping[str, Mapping[str, object]],
    *,
    validated: bool,
) -> None:
    """Define the pipeline of ``plan`` in ``app``, and an app in a subfolder for each stage.

    Args:
        app: The app of the pipeline.
        plan: The pipeline.
        charts: The objects of each stage's cluster, by name of the stage.
        policies: IAM policy for the checks of each stage, by name of the stage.
        validated: Whether the hosts that closed clusters use are checked.
    """
    gates: dict[str, Stage] = {}
    clusters: dict[str, Stage] = {}
    # The CDK names a wave of one stage by the stage, and the stage's cluster already has that name.
    # Source: https://github.com/aws/aws-cdk/blob/v2.275.0/packages/aws-cdk-lib/pipelines/lib/helpers-internal/pipeline-graph.ts
    alone = CHECKS if len(plan.stages) == 1 else None
    for stage in plan.stages:
        env = Environment(account=stage.account, region=stage.cluster.region)
        gates[stage.name] = Stage(app, stage.name, env=env, stage_name=alone)
        define_gate(gates[stage.name], stage, plan, policies[stage.name])
        cluster = ClusterApp(
            folder=Path(app.outdir) / f"cluster-{stage.name}",
            context=app.node.get_all_context(),
        )
        define_stacks(cluster, stage.cluster, charts[stage.name])
        acknowledge_findings(cluster)
        closed = closed_network(stage.cluster, Path(stage.file))
        if validated and closed is not None:
            Validations.of(cluster).add_plugins(OwnRules(closed))
        cluster.complete(stage.name)
        clusters[stage.name] = cluster
    define_stack(app, plan, gates, clusters)


def define_gate(
    scope: Stage, stage: StagePlan, pipeline: PipelinePlan, policy: Mapping[str, object]
) -> None:
    """Define the stack of the gate role in the account of a cluster."""
    cluster = stage.cluster
    stack = Stack(
        scope,
        "Gate",
        stack_name=names.stack(cluster.name, GATE_STACK),
        description=names.stack_description(cluster.name),
    )
    GateRole(stack, "Gate", stage=stage, pipeline=pipeline, policy=policy)
    bound_roles(stack, cluster.permissions_boundary)


def define_stack(
    app: App, plan: PipelinePlan, gates: Mapping[str, Stage], clusters: Mapping[str, Stage]
) -> None:
    """Define the stack of the pipeline, in the account and Region of its connection."""
    env = Environment(account=plan.account, region=plan.region)
    stack = Stack(app, plan.name, env=env, description=names.stack_description(plan.cluster))
    DeploymentPipeline(stack, "Pipeline", plan=plan, gates=gates, clusters=clusters)
    bound_roles(stack, plan.permissions_boundary)


def share_files(folder: Path, *, schema: str) -> None:
    """Keep a single copy of each file that stacks upload, in the pipeline's assembly.

    Every stage has the layers of kubectl, and a CloudFormation action of the pipeline accepts an
    assembly of at most 256 MB.

    Source: https://docs.aws.amazon.com/codepipeline/latest/userguide/limits.html

    Args:
        folder: The assembly of the pipeline, written.
        schema: Newest schema of asset manifests that the pipeline can read.
    """
    for manifest in sorted(folder.glob("**/*.assets.json")):
        document = read_json(manifest)
        document["version"] = schema
        for file in document.get("files", {}).values():
            path = file["source"]["path"]
            if path.startswith("asset."):
                _move_hashed(manifest.parent / path, folder / path)
                file["source"]["path"] = os.path.relpath(folder / path, manifest.parent)
        manifest.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def _move_hashed(path: Path, target: Path) -> None:
    """Move a file or folder whose name contains a content hash; an existing target is the same."""
    if path == target or not path.exists():
        return
    if not target.exists():
        path.rename(target)
    elif path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
