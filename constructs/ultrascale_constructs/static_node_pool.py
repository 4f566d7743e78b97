"""NodePools of a fixed size, which a deployment never resizes."""

from collections.abc import Mapping, Sequence

from ultrascale.documents import mapping
from ultrascale_constructs.platform import Manifest, ManifestApplier

_RESOURCE = "nodepools.karpenter.sh"
_SIZE = "replicas"


def apply_static_node_pool(
    manifests: ManifestApplier, id: str, node_pool: Manifest, *, sized_by_calendar: bool
) -> None:
    """Make a static NodePool once and bring everything but its size up to date.

    `kubectl apply` sets every field that the manifest states, whoever changed it since: a deploy
    inside the window of a Capacity Block would set a running pool back to no nodes. So what is
    applied hangs on the pool's name alone, and CloudFormation never applies it again; all that may
    change is patched.

    All static NodePools are made so, for one may become the other: a pool whose resource
    CloudFormation took for a new one would be deleted under its new owner (aws/aws-cdk#33406).

    Args:
        manifests: Applies them.
        id: Part of the construct ids. It must never change.
        node_pool: The whole NodePool.
        sized_by_calendar: Whether a calendar sets its size from now on, or the manifest.
    """
    manifests.apply(f"{id}:seed", [seed(node_pool)], retain=False)
    operations = patch(node_pool, sized_by_calendar=sized_by_calendar)
    manifests.patch(f"{id}:patch", f"{_RESOURCE}/{_metadata(node_pool)['name']}", operations)


def seed(node_pool: Manifest) -> Manifest:
    """Return a NodePool of the same name that asks for no nodes.

    It says nothing that could change in the life of the object: the node class has its name, and
    neither the class's group and kind nor whether the pool is static can ever change.
    """
    template = mapping(_spec(node_pool)["template"])
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
                    # Together no longer than EKS Auto Mode lets a node live, which its defaults
                    # may be.
                    "expireAfter": "336h",
                    "terminationGracePeriod": "1h",
                }
            },
        },
    }


def patch(node_pool: Manifest, *, sized_by_calendar: bool) -> Sequence[Mapping[str, object]]:
    """Return the JSON patch that gives a live NodePool the labels and the spec of ``node_pool``.

    An `add` sets the field whether it was there or not, and leaves nothing of its old value. The
    annotations stay as they are: Karpenter's and `kubectl`'s own are among them.
    """
    sizes = {_SIZE} if sized_by_calendar else set[str]()
    spec = {key: value for key, value in _spec(node_pool).items() if key not in sizes}
    return [
        _set("/metadata/labels", _metadata(node_pool).get("labels", {})),
        *(_set(f"/spec/{key}", value) for key, value in spec.items()),
    ]


def _set(path: str, value: object) -> Mapping[str, object]:
    return {"op": "add", "path": path, "value": value}


def _metadata(manifest: Manifest) -> Mapping[str, object]:
    return mapping(manifest["metadata"])


def _spec(manifest: Manifest) -> Mapping[str, object]:
    return mapping(manifest["spec"])
