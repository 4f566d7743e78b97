"""Fields of Kubernetes objects that cannot change while the object exists.

The API server refuses the whole `kubectl apply`, and CloudFormation rolls the deployment back.

Sources:
    https://github.com/kubernetes/kubernetes/tree/v1.36.0/pkg/apis (validation of updates, by group)
    https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/
    https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/
    https://kubernetes.io/docs/concepts/configuration/configmap/#configmap-immutable
    https://github.com/aws/karpenter-provider-aws/tree/v1.15.1/pkg/apis/crds (rules on ``oldSelf``)
    https://github.com/kubernetes-sigs/kueue/tree/v0.19.2/config/components/crd/bases
    https://github.com/kubernetes-sigs/dra-driver-nvidia-gpu
"""

from collections.abc import Mapping
from functools import cache

from ultrascale.catalog.tables import Row, read_rows


class Immutable(Row, frozen=True, kw_only=True):
    """A field that cannot change."""

    kind: str
    """Kind of the object; for a kind of an API group, followed by a dot and the group."""
    path: str
    """Path of the field, with `/` between the parts."""
    but: tuple[str, ...] = ()
    """Fields directly below `path` that may change nevertheless."""
    only_if: str = ""
    """Path of a field: if its value is `true`, `path` is immutable; empty if `path` always is."""
    if_set: str = ""
    """Path of a field: if it is present, `path` is immutable."""
    presence: bool = False
    """Whether the field's value may change, but the field may be neither added nor removed."""
    grows: bool = False
    """Whether the API server accepts a larger quantity."""


def lookup_immutable_fields(kind: str, api_version: str) -> tuple[Immutable, ...]:
    """Return the immutable fields of a kind; empty if no source states any.

    Args:
        kind: Kind of the object.
        api_version: Its ``apiVersion``: group and version, or the version alone.
    """
    group, slash, _ = api_version.partition("/")
    return _fields_by_kind().get(f"{kind}.{group}" if slash else kind, ())


@cache
def _fields_by_kind() -> Mapping[str, tuple[Immutable, ...]]:
    fields: dict[str, tuple[Immutable, ...]] = {}
    for row in read_rows("immutable_fields.csv", Immutable):
        fields[row.kind] = (*fields.get(row.kind, ()), row)
    return fields
