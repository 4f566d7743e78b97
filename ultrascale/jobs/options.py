"""Options with which a job is prepared and submitted."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, TypedDict

from ultrascale.documents import Json, JsonObject

_KEYS: tuple[Literal["nodes", "image", "args", "env", "name", "pool", "queue", "priority"], ...] = (
    "nodes",
    "image",
    "args",
    "env",
    "name",
    "pool",
    "queue",
    "priority",
)


class JobOptions(TypedDict, total=False):
    """Keyword arguments of `prepare` and `submit`. An option that is None counts as left out."""

    values: Path | str | JsonObject | None  # Values of the chart `training-job`, or a file of them
    nodes: int | None  # Number of nodes. This option and the next seven replace a key of the job
    image: str | None  # Image
    args: Sequence[str] | None  # Arguments of the script or program
    env: Mapping[str, str] | None  # Environment variables, added to those of the job
    name: str | None  # Name of the job
    pool: str | None  # Pool whose nodes run the job
    queue: str | None  # Volcano queue
    priority: str | None  # Priority class
    changes: JsonObject | None  # Any other keys of the job; mappings are merged key by key
    # Node type to run on: of the job's `prefer`, or of its Kueue queue. Without it, Kueue decides
    # in its queues; elsewhere `submit` takes the best type that has room now, and `prepare` the
    # first that can hold the job.
    tier: str | None
    precompile: bool  # Compile the graphs of the job for Neuron devices, and do nothing else
    # AWS account of the cluster's registry, where neither the cluster file nor the kubeconfig names
    # it.
    account: str | None


def changes_of(options: JobOptions) -> JsonObject:
    """Return the keys that replace keys of the job."""
    changes = options.get("changes") or {}
    replaced: dict[str, Json] = {
        key: value for key in _KEYS if (value := options.get(key)) is not None
    }
    variables = changes.get("env")
    if isinstance(variables, Mapping):
        replaced["env"] = {**variables, **(options.get("env") or {})}
    return {**changes, **replaced}
