"""Instance groups of HyperPod whose nodes an update ends or replaces.

Sources:
    https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_UpdateCluster.html
    https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ClusterInstanceGroupSpecification.html
    https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-operate-cli-command-update-cluster-software.html
"""

from collections.abc import Callable, Iterator, Mapping

from ultrascale.documents import JsonObject, mapping, objects, text
from ultrascale.guard.model import Change, RolledPool, Rolling, hourly
from ultrascale.guard.objects import RESERVED
from ultrascale.guard.protection import fewer_protection, reserved_protection
from ultrascale.guard.replacement import Worlds
from ultrascale.guard.templates import count, shown
from ultrascale.plan import names

# An update of the software wipes root volumes; the other properties need other instances.
# SageMaker does not document which of them an update can change, so none counts as harmless.
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


def _changed_groups(change: Change, worlds: Worlds, region: str) -> Iterator[RolledPool]:
    """Yield the instance groups of a HyperPod cluster whose nodes an update concerns."""
    key = (change.stack, change.logical_id)
    old, new = _groups(worlds.old.properties(key)), _groups(worlds.new.properties(key))
    for name, group in old.items():
        nodes = count(group.get(_COUNT))
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
        left = count(later.get(_COUNT))
        if nodes is not None and left is not None and left < nodes:
            text = (f"{_COUNT} from {nodes} to {left}",)
            yield _rolled(change, name, group, "ends", nodes - left, text, region)


def _groups(properties: JsonObject) -> Mapping[str, JsonObject]:
    return {text(group, "InstanceGroupName"): group for group in objects(properties, _GROUPS)}


def _rolled(
    change: Change,
    name: str,
    group: JsonObject,
    rolling: Rolling,
    nodes: int | None,
    why: tuple[str, ...],
    region: str,
) -> RolledPool:
    kind = text(group, "InstanceType").removeprefix("ml.")
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


def _is_reserved(group: JsonObject) -> bool:
    labels = mapping(group, "KubernetesConfig", "Labels")
    return (
        "TrainingPlanArn" in group
        or labels.get(names.ROLE_LABEL) == "reserved"
        or labels.get(names.CAPACITY_LABEL) in RESERVED
    )


ROLLED: Mapping[str, Callable[[Change, Worlds, str], Iterator[RolledPool]]] = {
    "AWS::SageMaker::Cluster": _changed_groups
}
