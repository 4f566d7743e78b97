"""NodePools of a fixed size, which a deployment never resizes."""

from collections.abc import Mapping, Sequence

from ultrascale.documents import mapping
from ultrascale_constructs.platform import Manifest, ManifestApplier

_RESOURCE = "nodepools.karpenter.sh"
_SIZE = "replicas"


def apply_static_node_pool(
    manifests: ManifestApplier, id: str, node_pool: Manifest, *, sized_by_calendar: bool
) -> None:
    """Create a static NodePool once, and update everything but its size.

    `kubectl apply` sets every field of the manifest, whoever has changed it since: a deployment
    inside the window of a Capacity Block would reset a running pool to 0 nodes. So the applied
    manifest depends only on the pool's name, and CloudFormation never applies it again; a patch
    sets all fields that may change.

    All static NodePools are created in this way, whoever sizes them, as the sizing may change: a
    pool with a new resource would be deleted with its old resource (aws/aws-cdk#33406).

    Args:
        manifests: Applier of manifests.
        id: Part of the construct ids. It must never change.
        node_pool: The whole NodePool.
        sized_by_calendar: Whether a calendar sets the size from now on; else the manifest does.
    """
    manifests.apply(f"{id}:seed", [seed(node_pool)], retain=False, once=True)
    operations = patch(node_pool, sized_by_calendar=sized_by_calendar)
    manifests.patch(f"{id}:patch", f"{_RESOURCE}/{_metadata(node_pool)['name']}", operations)


def seed(node_pool: Manifest) -> Manifest:
    """Return a NodePool with the name of ``node_pool`` and no nodes.

    It holds no field that could change later: the node class has the pool's name, and neither the
    class's group and kind nor static size can ever change.
    """
    template = mapping(_spec_of(node_pool)["template"])
    reference = mapping(mapping(template["spec"])["nodeClassRef"])
    return {
        "apiVersion": node_pool["apiVersion"],
        "kind": node_pool["kind"],
        "metadata": {"name": _metadata(node_pool)["name"]},
        "spec": {
            _SIZE: 0,
            "template": {
                "spec": {
                    "nodeClassRef": reference,
                    "requirements": [],
                    # Together not longer than a node's life in EKS Auto Mode, which the defaults
                    # may exceed.
                    "expireAfter": "336h",
                    "terminationGracePeriod": "1h",
                }
            },
        },
    }


def patch(node_pool: Manifest, *, sized_by_calendar: bool) -> Sequence[Mapping[str, object]]:
    """Return the JSON patch that gives a live NodePool the labels and the spec of ``node_pool``.

    An `add` sets a field whether it exists or not, and replaces its old value. Annotations stay, as
    Karpenter and `kubectl` have annotations of their own there.
    """
    sizes = {_SIZE} if sized_by_calendar else set[str]()
    spec = {key: value for key, value in _spec_of(node_pool).items() if key not in sizes}
    return [
        _add_operation("/metadata/labels", _metadata(node_pool).get("labels", {})),
        *(_add_operation(f"/spec/{key}", value) for key, value in spec.items()),
    ]


def _add_operation(path: str, value: object) -> Mapping[str, object]:
    return {"op": "add", "path": path, "value": value}


def _metadata(manifest: Manifest) -> Mapping[str, object]:
    return mapping(manifest["metadata"])


def _spec_of(manifest: Manifest) -> Mapping[str, object]:
    return mapping(manifest["spec"])
