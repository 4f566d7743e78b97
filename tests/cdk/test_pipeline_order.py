"""A node group without capacity stops nothing else of a pipeline, and stacks without nodes wait."""

from contextlib import chdir
from datetime import UTC, datetime
from pathlib import Path
from subprocess import run

import pytest
import yaml

from tests.support.folders import ROOT
from tests.support.pipelines import PROD_ACCOUNT, load_pipeline, pipeline
from ultrascale.documents import JsonObject, mapping, number, sequence, text
from ultrascale.parts.pipeline.model import PipelinePlan
from ultrascale.plan.stacks import all_layers, planned_layers
from ultrascale_constructs.pipeline.gate import gate_commands
from ultrascale_constructs.pipeline.pipeline import ordered

OPENS = datetime(2026, 12, 1, 11, 30, tzinfo=UTC)


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> PipelinePlan:
    """The HyperPod cluster and the mixed one, in one wave."""
    folder = tmp_path_factory.mktemp("pipeline")
    (folder / "clusters").mkdir()
    for name in ("hybrid-hyperpod", "mixed-capacity"):
        document = yaml.safe_load((ROOT / "clusters" / f"{name}.yaml").read_text())
        document["account"] = PROD_ACCOUNT
        if name == "mixed-capacity":
            stages = (
                {"name": "hp", "cluster": "clusters/hybrid-hyperpod.yaml", "wave": "all"},
                {"name": "prod", "wave": "all"},
            )
            document["pipeline"] = pipeline(*stages)
        (folder / "clusters" / f"{name}.yaml").write_text(yaml.safe_dump(document))
    with chdir(folder):
        found = load_pipeline(Path("clusters/mixed-capacity.yaml"))
    assert found is not None
    return found


@pytest.fixture(scope="module")
def stages(plan: PipelinePlan) -> dict[str, JsonObject]:
    """The stages by name, as CDK Pipelines made them, in order."""
    (wave,) = plan.waves
    actions: list[JsonObject] = [
        {"Name": f"Look-{stage.name}", "RunOrder": 1} for stage in wave.stages
    ]
    for stage in wave.stages:
        # Each layer as early as it could be: node groups beside Karpenter, before NodePools.
        layers = planned_layers(stage.cluster)
        depth: dict[str, int] = {}
        for layer in all_layers():
            before = [depth[each] for each in all_layers()[layer].after if each in depth]
            depth[layer] = 1 + max(before, default=1)
            actions += [
                {"Name": f"{stage.name}.{stack}.Deploy", "RunOrder": depth[layer]}
                for stack in layers.get(layer, ())
            ]
    made: list[JsonObject] = [
        {"Name": "Checks", "Actions": []},
        {"Name": "all", "Actions": actions},
    ]
    return {text(stage, "Name"): stage for stage in ordered(made, plan)}


def orders(stage: JsonObject) -> dict[str, int]:
    found = [mapping(action) for action in sequence(stage, "Actions")]
    return {text(action, "Name"): number(action, "RunOrder") for action in found}


def test_node_groups_are_deployed_side_by_side_after_everything_else(
    stages: dict[str, JsonObject],
) -> None:
    """CodePipeline starts no later run order once an action failed."""
    made = orders(stages["all"])
    groups = {
        f"prod.mixed-capacity-{pool}.Deploy"
        for pool in ("gpu-block-mng", "gpu-odcr-mng", "gpu-spot-asg", "gpu-spot-mng")
    } | {"hp.hybrid-hyperpod-hyperpod-groups.Deploy", "prod.mixed-capacity-trn-block-asg.Deploy"}

    (last,) = {made[name] for name in groups}
    assert {name for name, order in made.items() if order >= last} == groups
    assert made["prod.mixed-capacity-node-pools.Deploy"] < last


def test_what_needs_nodes_stands_at_the_end_and_holds_up_no_other_stage(
    stages: dict[str, JsonObject],
) -> None:
    assert [*stages] == ["Checks", "all", "hp.on-nodes"]
    assert orders(stages["hp.on-nodes"]) == {
        "hp.hybrid-hyperpod-governance.Deploy": 1,
        "hp.hybrid-hyperpod-teams.Deploy": 2,
    }


def test_what_needs_nodes_is_skipped_while_they_cannot_be_there(
    stages: dict[str, JsonObject],
) -> None:
    (condition,) = sequence(stages["hp.on-nodes"], "BeforeEntry", "Conditions")
    (rule,) = sequence(condition, "Rules")

    assert text(condition, "Result") == "SKIP"
    assert mapping(rule, "Configuration") == {
        "Variable": "#{Look-hp.NODES}",
        "Value": "due",
        "Operator": "EQ",
    }
    (look,) = (
        mapping(action)
        for action in sequence(stages["all"], "Actions")
        if text(action, "Name") == "Look-hp"
    )
    assert text(look, "Namespace") == "Look-hp"


@pytest.mark.parametrize(
    ("at", "told"),
    [
        (OPENS.replace(day=1, hour=11, minute=29), "later"),
        (OPENS, "due"),
        (OPENS.replace(year=2027, month=2), "later"),
    ],
)
def test_the_build_that_looks_says_by_its_clock_what_is_left_out(
    plan: PipelinePlan, at: datetime, told: str
) -> None:
    (stage, *_) = plan.stages
    commands = [each for each in gate_commands(stage, plan) if "NOW" in each]
    script = "\n".join([*commands, "echo NODES=$NODES"])
    script = script.replace("$(date -u +%s)", f"{at.timestamp():.0f}")

    answer = run(["sh", "-c", script], capture_output=True, text=True, check=True)

    assert answer.stdout.endswith(f"NODES={told}\n")
    assert ("hybrid-hyperpod-governance" in answer.stdout) is (told == "later")
