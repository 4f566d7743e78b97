"""HyperPod instance groups whose nodes an update ends or replaces.

Sources:
    https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_UpdateCluster.html
    https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ClusterInstanceGroupSpecification.html
    https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-operate-cli-command-update-cluster-software.html
"""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from ultrascale.guard.figures import hourly, number
from ultrascale.guard.model import Change, RolledPool, Rolling
from ultrascale.guard.objects import RESERVED
from ultrascale.guard.protection import fewer_protection, reserved_protection
from ultrascale.guard.replacement import Worlds
from ultrascale.guard.templates import shown
from ultrascale.plan import names

HYPERPOD = "AWS::SageMaker::Cluster"
# An update of the software wipes root volumes; the others make other instances. SageMaker does not
# say of each whether it can change: none passes for what concerns new nodes alone.
_NODES_OF = (
    "CapacityRequirements",
    "ImageId",
    "ImageReleaseVersion",
    "InstanceRequirements",
    "InstanceStorageConfigs",
    "InstanceType",
    "NetworkInterface",
    "OverrideVpcConfig",
    "ThreadsPerCore",
    "TrainingPlanArn",
)
_COUNT = "InstanceCount"
_GROUPS = "InstanceGroups"

Group = Mapping[str, Any]


def changed_groups(change: Change, worlds: Worlds, region: str) -> Iterator[RolledPool]:
    """Yield the instance groups of a HyperPod cluster whose nodes an update concerns."""
    key = (change.stack, change.logical_id)
    old, new = _groups(worlds.old.properties(key)), _groups(worlds.new.properties(key))
    for name, group in old.items():
        nodes = number(group.get(_COUNT))
        later = new.get(name)
        if later is None:
            why = ("its instance group leaves the cluster",)
            yield _rolled(change, name, group, "ends", nodes, why, region)
            continue
        why = tuple(
            f"{path} from {shown(group.get(path))} to {shown(later.get(path))}"
            for path in _NODES_OF
            if group.get(path) != later.get(path)
        )
        if why:
            yield _rolled(change, name, group, "may roll", nodes, why, region)
        left = number(later.get(_COUNT))
        if nodes is not None and left is not None and left < nodes:
            text = (f"{_COUNT} from {nodes} to {left}",)
            yield _rolled(change, name, group, "ends", nodes - left, text, region)


def _groups(properties: Mapping[str, Any]) -> Mapping[str, Group]:
    groups = cast("list[Group]", properties.get(_GROUPS, []))
    return {str(each["InstanceGroupName"]): each for each in groups}


def _rolled(
    change: Change,
    name: str,
    group: Group,
    rolling: Rolling,
    nodes: int | None,
    why: tuple[str, ...],
    region: str,
) -> RolledPool:
    kind = str(group.get("InstanceType", "")).removeprefix("ml.")
    shrinks = rolling == "ends" and why[0].startswith(_COUNT)
    protection = fewer_protection() if shrinks else reserved_protection()
    lost, instead = protection if _is_reserved(group) else ("", "")
    return RolledPool(
        pool=name,
        stack=change.stack,
        rolling=rolling,
        nodes=nodes,
        at_once="as SageMaker updates the cluster",
        why=why,
        usd_per_hour=hourly(nodes, [kind], region),
        lost=lost,
        instead=instead,
    )


def _is_reserved(group: Group) -> bool:
    labels = cast("Mapping[str, str]", group.get("KubernetesConfig", {}).get("Labels", {}))
    return (
        "TrainingPlanArn" in group
        or labels.get(names.ROLE_LABEL) == "reserved"
        or labels.get(names.CAPACITY_LABEL) in RESERVED
    )
