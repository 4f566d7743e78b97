"""`observability`: metrics, dashboards, logs and alarms."""

from typing import Annotated, Literal

from pydantic import Field

from ultrascale import config
from ultrascale.catalog import prices, regions
from ultrascale.plan.rules import rule as plan_rule
from ultrascale.plan.stack_sizes import most, too_many


class Alarms(config.Section):
    """Receiver of alarms."""

    email: config.Email
    """E-mail address that gets alarms, HyperPod's events and notices of ends that are near."""


class WriteLatencySlo(config.Section):
    """Objective for the latency of Kubernetes API writes, which a canary in the VPC measures."""

    threshold_ms: Annotated[int, Field(ge=1, le=10_000)]
    """Longest time of a good write, in milliseconds."""

    goal_percent: Annotated[float, Field(ge=1, lt=100)]
    """Share of good writes over the last seven days, in percent."""


class Ledger(config.Section):
    """Record of the owner, or the reason without one, of each accelerator that is paid for."""

    # A closed month is read until the bill of the next one is final.
    keep_days: Annotated[int, Field(ge=62, le=3_650)] = 400
    """Days that its rows are kept."""

    readers: config.Distinct[config.RoleArn] = ()
    """ARNs of IAM roles, of other accounts too, that may read it. Default: roles of the account, by
    their own policies.
    """


class IdleJobs(config.Section):
    """Jobs whose GPUs all stay idle."""

    # Above, jobs that work would be ended.
    below_percent: Annotated[float, Field(gt=0, le=50)] = 1
    """Share of time in which a GPU runs a kernel, below which it is idle, in percent."""

    # A measurement of a large fleet is five minutes long.
    for_minutes: Annotated[int, Field(ge=30, le=10_080)] = 120
    """Time without use, after an hour to start."""

    then: Literal["tell", "end"] = "tell"
    """`end` ends the job then, such that it can be resumed, after a notice of 15 minutes."""


class Observability(config.Section):
    """Metrics, dashboards, logs and alarms."""

    dashboards: bool = False
    """Make a CloudWatch dashboard of the nodes and the control plane."""

    alarms: Alarms | None = None
    """Receiver of alarms. Default: no alarms."""

    container_logs: bool = True
    """Send the logs of containers and nodes to CloudWatch."""

    hyperpod_addon: bool = False
    """Install HyperPod's observability add-on with a workspace of Amazon Managed Service for
    Prometheus; its version stands in `kubernetes.addons`.
    """

    write_latency_slo: WriteLatencySlo | None = None
    """Objective for writes to the API server, which a canary in the VPC measures.

    Default: no objective.
    """

    ledger: Ledger | None = None
    """Record in S3 of who uses the accelerators that are paid for. Default: none."""

    idle_jobs: IdleJobs | None = None
    """Find jobs that leave their GPUs idle; needs `ledger`. Default: none is looked for."""


class FileKeys(config.Section):
    """The key of the cluster file that belongs to this part."""

    observability: Observability | None = None
    """Metrics, dashboards, logs and alarms. Default: not installed."""


@config.rule(severity="warning")
def nobody_hears_of_the_end(
    pool: config.Pool, identity: config.Identity, observability: Observability | None
) -> config.Mistakes:
    """Warn where the alarms of a window's calendar reach nobody, with the price of one that fails.

    A fee is paid in advance, so On-Demand prices stand for the worth of a node-hour.
    """
    if not isinstance(pool.purchase, config.CapacityBlock | config.TrainingPlan):
        return
    if observability is not None and observability.alarms is not None:
        return
    nodes, name = pool.nodes.highest * pool.shards, pool.instance_types[0]
    nearest = prices.on_demand_near(identity.region, name)
    if nearest is None:
        cost = f"{nodes} node-hours of {name} for each hour of it; the catalog has no price"
    else:
        price, region = nearest
        cost = (
            f"${nodes * price:,.0f} for each hour of it ({nodes} x ${price:,.2f}, On-Demand in "
            f"{region} on {prices.seen(region)})"
        )
    text = (
        "nobody is told when its nodes fail to start, stand unused or are not drained before the "
        f"end. One missed end costs what all jobs did since their last checkpoint, {cost}; add "
        "observability.alarms.email"
    )
    yield config.note("purchase", text)


@config.rule
def readers_are_of_the_partition(ledger: Ledger, identity: config.Identity) -> config.Mistakes:
    partition = regions.lookup_region(identity.region).partition
    for number, arn in enumerate(ledger.readers):
        if arn.split(":")[1] != partition:
            wrong = f"a role outside partition {partition} of {identity.region}"
            todo = f"write arn:{partition}:iam::ACCOUNT:role/NAME"
            yield config.refuse(f"readers.{number}", wrong, todo)


@config.rule
def idle_jobs_have_a_clock(observability: Observability) -> config.Mistakes:
    if observability.idle_jobs is not None and observability.ledger is None:
        wrong = "without observability.ledger, whose state says since when a job is idle"
        yield config.refuse("idle_jobs", wrong, "add ledger: {}, or leave idle_jobs out")


@plan_rule
def alarms_of_pools_fit(
    pools: config.Readable[config.Pool], _observability: Observability
) -> config.Mistakes:
    """Refuse pools whose alarms and graphs one stack has no room for."""
    yield from too_many("pools", len(pools), most(item="pool"), "pools with alarms and dashboards")
