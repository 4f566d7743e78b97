"""Services: templates of jobs that serve until they are deleted."""

from typing import Annotated, Literal

from pydantic import Field

from ultrascale.catalog import integer_bounds, registries
from ultrascale.config._base import Model
from ultrascale.config._values import Day, Distinct, DnsLabel, matching
from ultrascale.config.jobs import Job

HttpPath = Annotated[
    str,
    matching(r"/[A-Za-z0-9._~!$&'()*+,;=:@%/?-]*", "not a path of a URL", "write it as /health"),
]
Server = Literal["vllm", "other"]
# Names that the front's script reads from a request.
MODEL_NAME_PATTERN = r"[A-Za-z0-9._/:@+-]{1,256}"
ModelName = Annotated[
    str,
    matching(
        MODEL_NAME_PATTERN,
        "not the name of a model",
        "use letters, digits and . _ / : @ + -",
    ),
]
ScalingMetric = Literal["waiting", "running", "cpu"]


class AllowedAdvisory(Model):
    """A security advisory of the image that is accepted until a day."""

    id: Annotated[str, Field(min_length=1)]
    """Its id or an alias, such as `CVE-2026-27893`."""

    why: Annotated[str, Field(min_length=1)]
    """Reason why the service may run under it."""

    until: Day
    """Last day, as `2027-01-31`, on which `submit` sends the service."""


class Autoscale(Model):
    """Replicas that follow the load."""

    metric: ScalingMetric
    """Measure of load: requests that wait, requests that run, or the use of CPU."""

    target: Annotated[float, Field(gt=0, le=integer_bounds.INT32)]
    """Requests for each replica; with `cpu` percent of the CPU that its pods ask for."""

    min: Annotated[int, Field(ge=1, le=integer_bounds.REPLICAS)] = 1
    """Fewest replicas: one always serves."""

    max: Annotated[int, Field(ge=1, le=integer_bounds.REPLICAS)]
    """Most replicas."""


class Replicas(Job):
    """The keys of a service that stand before those of parts."""

    kind: Literal["service"] = "service"
    """Pods that serve until they are deleted."""

    nodes: Annotated[int, Field(ge=1, le=integer_bounds.REPLICAS)] = 1
    """Nodes that one replica spans, one pod on each: a LeaderWorkerSet above 1."""

    replicas: Annotated[int, Field(ge=1, le=integer_bounds.REPLICAS)] = 1
    """Number of replicas."""

    autoscale: Autoscale | None = None
    """Replicas that follow the load, in place of `replicas`. Default: a fixed number."""

    queue: str | None = None
    """One of `scheduling.queues`; a service names one of Kueue's, whose quota it then holds.

    Default: the only queue; with Volcano else its `default`; of a service none.
    """

    port: Annotated[int, Field(ge=1, le=65_535)] = 8080
    """TCP port that the program listens on."""

    server: Server | None = None
    """Program that answers requests, whose metrics are known: `vllm`, or `other`.

    Default: `vllm` where the image's repository holds that word, else `other`.
    """

    capacity: Literal["reserved", "spot", "on-demand"] | None = None
    """Capacity of its nodes: any pool with that capacity, where `pool` is left out.

    Default: any.
    """

    health_path: HttpPath | None = None
    """Path that answers 200 once the program serves.

    Default: `/health` of vLLM; of another server the open port is enough.
    """

    startup_seconds: Annotated[int, Field(ge=1, le=integer_bounds.STARTUP_SECONDS)] | None = None
    """Seconds that the program may take before it serves, such as to load a model.

    Default: 600, ten times the best time to load `model` (twice a measured one, and 10 s for each
    GB where no rate is known), and twice that to compile its graphs for Neuron. Of vLLM without
    `model` 1,800.
    """

    @property
    def least_replicas(self) -> int:
        """Replicas that it always has."""
        return self.replicas if self.autoscale is None else self.autoscale.min

    @property
    def most_replicas(self) -> int:
        """Replicas that it may grow to."""
        return self.replicas if self.autoscale is None else self.autoscale.max


class ServiceJob(Replicas):
    """Pods that serve until they are taken away, behind one address inside the cluster."""

    tokens_per_second: Annotated[float, Field(gt=0, le=integer_bounds.INT32)] | None = None
    """Tokens that a fully used replica generates in a second, as measured: `plan` prices them.

    Default: not known.
    """

    model_names: Distinct[ModelName] | None = None
    """Names of models, by which requests at `serving.front` reach it; an empty list keeps it away.

    Default: those that the arguments of vLLM name; of another server none.
    """

    allow_from: tuple[DnsLabel, ...] = ()
    """Namespaces whose pods may reach it, beside its own. Default: none."""

    allow_advisories: tuple[AllowedAdvisory, ...] = ()
    """Security advisories of its image that are refused else, with the reason. Default: none."""


def server_of(job: ServiceJob) -> Server:
    """Return the program of a service: as named, or by its image's name."""
    if job.server is not None:
        return job.server
    reference = registries.parse_reference(job.image or "")
    return "vllm" if reference is not None and "vllm" in reference.repository else "other"
