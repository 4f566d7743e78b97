"""`agreed_limits`, `backend`, `observability` and `pipeline`: the cluster in its surroundings."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from ultrascale.config._base import DnsLabel, Model, matching

Email = Annotated[
    str,
    AfterValidator(
        matching(
            r"[^@\s]+@[^@\s]+\.[^@\s.]+", "not an e-mail address", "write it as name@example.com"
        )
    ),
]
ConnectionArn = Annotated[
    str,
    AfterValidator(
        matching(
            r"arn:aws[a-z-]*:(?:codeconnections|codestar-connections):[a-z0-9-]+:\d{12}:connection/[\w-]+",
            "not the ARN of a CodeConnections connection",
            "write arn:aws:codeconnections:REGION:ACCOUNT:connection/ID",
        )
    ),
]
RepositoryPath = Annotated[
    str,
    AfterValidator(
        matching(r"[\w.-]+/[\w.-]+", "not the path of a repository", "write OWNER/NAME")
    ),
]


class AgreedLimits(Model):
    """Limits that AWS has granted above the published ones.

    Attributes:
        nau_per_vpc: Network address usage units of one VPC.
        reference: The case or agreement that grants them.
    """

    nau_per_vpc: Annotated[int, Field(ge=1)]
    reference: Annotated[str, Field(min_length=1)]


class Database(Model):
    """The backend's database."""

    engine: Literal["postgres"] = "postgres"
    version: Annotated[
        str, AfterValidator(matching(r"\d+(?:\.\d+)?", "not a database version", 'write "17"'))
    ]


class Backend(Model):
    """The application that submits jobs.

    Attributes:
        database: Its database; None for a backend without one.
        namespace: Where it runs.
        submits_to: Job templates that it may launch.
    """

    database: Database | None = None
    namespace: DnsLabel = "backend"
    submits_to: tuple[str, ...] = ()


class Alarms(Model):
    """Who hears of alarms."""

    email: Email


class WriteLatencySlo(Model):
    """Objective for the latency of Kubernetes API writes.

    Attributes:
        threshold_ms: A write within this time is a good one, in milliseconds.
        goal_percent: Share of good writes, in percent.
    """

    threshold_ms: Annotated[int, Field(ge=1)]
    goal_percent: Annotated[float, Field(gt=0, lt=100)]


class Observability(Model):
    """What is measured and shown.

    Attributes:
        dashboards: Whether dashboards are made.
        alarms: Who hears of alarms; None for no alarms.
        write_latency_slo: Objective for API writes; None for no objective.
    """

    dashboards: bool = False
    alarms: Alarms | None = None
    write_latency_slo: WriteLatencySlo | None = None


class Pipeline(Model):
    """The pipeline that deploys the cluster from a repository.

    Attributes:
        connection: ARN of the CodeConnections connection to the repository's host.
        repository: OWNER/NAME.
        branch: Branch whose commits are deployed.
    """

    connection: ConnectionArn
    repository: RepositoryPath
    branch: Annotated[str, Field(min_length=1)] = "main"
