"""Order of the actions of a pipeline whose stacks may find no nodes.

CodePipeline ends a stage after the first run order with a failed action, once all actions of that
run order have ended. The CDK gives each stack the first run order that its dependencies allow, so
a node group without capacity would stop all stacks after it.

Sources:
    https://docs.aws.amazon.com/codepipeline/latest/userguide/concepts-how-it-works.html
    https://docs.aws.amazon.com/codepipeline/latest/userguide/stage-conditions.html
"""

from collections.abc import Iterable, Mapping, Sequence

from aws_cdk import Stack, pipelines
from aws_cdk import aws_codepipeline as codepipeline

from ultrascale.documents import Json, JsonObject, mapping, number, sequence, text
from ultrascale.plan.model import PipelinePlan, StagePlan, WavePlan
from ultrascale_constructs.cdk_types import child
from ultrascale_constructs.pipeline_gate import (
    LOOK_PREFIX,
    NODES_DUE,
    NODES_VARIABLE,
    look_name,
)

# Suffix of the CDK's names of actions that deploy a stack.
_DEPLOY = ".Deploy"


def order_actions(pipeline: pipelines.CodePipeline, plan: PipelinePlan) -> None:
    """Deploy node groups last, and stacks that need nodes in stages of their own.

    Args:
        pipeline: The pipeline, built.
        plan: The pipeline's plan.
    """
    resource = child(pipeline.pipeline, codepipeline.CfnPipeline)
    found = sequence({"stages": Stack.of(pipeline).resolve(resource.stages)}, "stages")
    stages = [mapping(_as_template(each)) for each in found]
    resource.add_property_override("Stages", ordered(stages, plan))


def ordered(stages: Sequence[JsonObject], plan: PipelinePlan) -> list[JsonObject]:
    """Return the stages of a pipeline in the order of ``plan``, in CloudFormation's form."""
    waves = {wave.name: wave for wave in plan.waves}
    result: list[JsonObject] = []
    later: list[JsonObject] = []
    for stage in stages:
        wave = waves.get(text(stage, "Name"))
        if wave is None:
            result.append(stage)
            continue
        actions = [_named(mapping(each)) for each in sequence(stage, "Actions")]
        of_nodes = {
            each.name: _actions_of(actions, wave, each, each.on_nodes) for each in wave.stages
        }
        apart = {text(action, "Name") for moved in of_nodes.values() for action in moved}
        kept = [action for action in actions if text(action, "Name") not in apart]
        last = {
            text(action, "Name")
            for each in wave.stages
            for action in _actions_of(kept, wave, each, each.may_lack_capacity)
        }
        result.append({**stage, "Actions": _last(kept, last)})
        namespaces = {text(action, "Name"): text(action, "Namespace") for action in actions}
        later += [
            _on_nodes(each, of_nodes[each.name], namespaces[look_name(each)])
            for each in wave.stages
            if of_nodes[each.name]
        ]
    return [*result, *later]


def _actions_of(
    actions: Iterable[JsonObject], wave: WavePlan, stage: StagePlan, stacks: Iterable[str]
) -> list[JsonObject]:
    """Return the actions that deploy ``stacks`` of a stage, also with names of a wave."""
    prefix = f"{stage.name}." if len(wave.stages) > 1 else ""
    names = {f"{prefix}{stack}{_DEPLOY}" for stack in stacks}
    return [action for action in actions if text(action, "Name") in names]


def _last(actions: Sequence[JsonObject], last: set[str]) -> list[JsonObject]:
    """Return ``actions`` with the actions named in ``last`` side by side after all others."""
    first = [action for action in actions if text(action, "Name") not in last]
    after = 1 + max((number(action, "RunOrder") for action in first), default=0)
    return [
        {**action, "RunOrder": after} if text(action, "Name") in last else action
        for action in actions
    ]


def _named(action: JsonObject) -> JsonObject:
    """Return an action; with a namespace for its variables, if it checks a cluster."""
    name = text(action, "Name")
    if not name.startswith(LOOK_PREFIX) or text(action, "Namespace"):
        return action
    return {**action, "Namespace": name}


def _on_nodes(stage: StagePlan, actions: Sequence[JsonObject], namespace: str) -> JsonObject:
    """Return the stage of stacks that need nodes; it is skipped outside the nodes' windows.

    Args:
        stage: The cluster.
        actions: Actions that deploy these stacks.
        namespace: Namespace of the variables of the build that checked the cluster.
    """
    earlier = min(number(action, "RunOrder") for action in actions) - 1
    moved: list[Json] = [
        {**action, "RunOrder": number(action, "RunOrder") - earlier} for action in actions
    ]
    entry: JsonObject = {"Name": stage.nodes_stage, "Actions": moved}
    if not stage.node_windows:
        return entry
    rule: JsonObject = {
        "Name": "Nodes",
        "RuleTypeId": {
            "Category": "Rule",
            "Owner": "AWS",
            "Provider": "VariableCheck",
            "Version": "1",
        },
        "Configuration": {
            "Variable": f"#{{{namespace}.{NODES_VARIABLE}}}",
            "Value": NODES_DUE,
            "Operator": "EQ",
        },
    }
    return {**entry, "BeforeEntry": {"Conditions": [{"Result": "SKIP", "Rules": [rule]}]}}


def _as_template(value: Json) -> Json:
    """Return a value of the CDK with CloudFormation's names; an action's configuration stays."""
    if isinstance(value, Mapping):
        return {
            key[:1].upper() + key[1:]: item if key == "configuration" else _as_template(item)
            for key, item in value.items()
        }
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_as_template(item) for item in value]
    return value
