"""Fields of Kubernetes objects that nothing can change while the object stands.

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
    """A field that stays as it is."""

    kind: str
    """Kind of the object, and after a dot the API group where it has one."""
    path: str
    """Its path, with `/` between the parts."""
    but: tuple[str, ...] = ()
    """Fields directly below it that may change all the same."""
    only_if: str = ""
    """Path of the field that makes it immutable by `true`; empty: it always is."""
    if_set: str = ""
    """Path of the field that makes it immutable where the object has it."""
    presence: bool = False
    """Whether a value may change, and only its presence may not."""
    grows: bool = False
    """Whether a larger quantity is taken."""


def lookup_immutable_fields(kind: str, api_version: str) -> tuple[Immutable, ...]:
    """Return the fields of a kind that nothing can change; none where no source names one.

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
