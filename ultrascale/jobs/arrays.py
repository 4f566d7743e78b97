"""Progress of an array: indexes that have completed, failed, run, or are left.

Source: https://kubernetes.io/docs/concepts/workloads/controllers/job/#completion-mode
"""

from collections.abc import Iterator

from ultrascale.cluster_api.objects import Object, label
from ultrascale.documents import number, text
from ultrascale.frozen import Frozen
from ultrascale.plan.names import COMPONENT_LABEL

# A Job whose indexes have all ended, with no more failures than allowed.
# Source: https://github.com/kubernetes/kubernetes/blob/v1.35.0/staging/src/k8s.io/api/batch/v1/types.go
WITHIN_LIMIT = "FailedIndexes"


class ArrayState(Frozen):
    """Progress of an array."""

    size: int  # Its indexes
    completed: int  # Indexes whose program succeeded
    failed: int  # Indexes that failed after all of their retries
    running: int  # Running pods
    failed_indexes: str  # Failed indexes in Kubernetes' spelling: `3,7-9`
    max_failed: int  # Indexes that may fail before the array does

    @property
    def left(self) -> int:
        """Indexes that have not ended and do not run."""
        return max(0, self.size - self.completed - self.failed - self.running)

    def __str__(self) -> str:
        counts = (
            f"{self.completed} completed",
            f"{self.failed} failed",
            f"{self.running} running",
            f"{self.left} left",
        )
        return f"{', '.join(counts)} of {self.size}"


def read_array(manifest: Object) -> ArrayState | None:
    """Return the progress of a Job; None where it is no array of ours."""
    size = number(manifest, "spec", "completions", default=1)
    if size == 1 or label(manifest, COMPONENT_LABEL) != "batch":
        return None
    failed = text(manifest, "status", "failedIndexes")
    return ArrayState(
        size=size,
        completed=sum(_counts(text(manifest, "status", "completedIndexes"))),
        failed=sum(_counts(failed)),
        running=number(manifest, "status", "ready"),
        failed_indexes=failed,
        max_failed=number(manifest, "spec", "maxFailedIndexes"),
    )


def _counts(indexes: str) -> Iterator[int]:
    for part in filter(None, indexes.split(",")):
        first, _, last = part.partition("-")
        yield int(last or first) - int(first) + 1
