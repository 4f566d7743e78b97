"""`agreed_limits`, `backend` and `observability`: the cluster in its surroundings."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from ultrascale.catalog import rds
from ultrascale.config._base import DnsLabel, Model, matching
from ultrascale.config.jobs import ImageName

Email = Annotated[
    str,
    AfterValidator(
        matching(
            r"[^@\s]+@[^@\s]+\.[^@\s.]+", "not an e-mail address", "write it as name@example.com"
        )
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
    """The backend's database, PostgreSQL.

    Attributes:
        engine: What it is.
        version: Major version, which gets minor upgrades by itself in the maintenance window, or a
            minor one, which stays until the file names another.
        service: Aurora Serverless v2, whose capacity follows the load, or an RDS instance.
        login: How the backend logs in: with the password of a secret that RDS keeps and rotates,
            or by IAM, with no password at all.
        min_capacity_acu: Least capacity of each Aurora instance, in Aurora capacity units; with 0
            they pause when nobody is connected.
        max_capacity_acu: Most capacity of each Aurora instance.
        instance_type: Class of the RDS instance.
        storage_gib: Storage of the RDS instance at first, in GiB; it grows by itself and never
            shrinks.
        multi_az: Whether a second instance in another zone takes over where the first is lost.
        backup_retention_days: How long the daily backups are kept, in days; the database can be
            restored to any second within.
    """

    engine: Literal["postgres"] = "postgres"
    version: Annotated[
        str, AfterValidator(matching(r"\d+(?:\.\d+)?", "not a database version", 'write "17"'))
    ]
    service: rds.Service = "aurora-serverless"
    login: Literal["secret", "iam"] = "secret"
    min_capacity_acu: float = 0.5
    max_capacity_acu: float = 4
    instance_type: str = "db.m6g.large"
    storage_gib: int = 20
    multi_az: bool = True
    backup_retention_days: int = 7


class Backend(Model):
    """The application that submits jobs.

    Attributes:
        database: Its database; None for a backend without one.
        namespace: Where it runs.
        submits_to: Job templates that it may launch.
        allow_from: Other namespaces whose pods may reach it; those of its own always may.
        image: One of ``images.repositories``, or a whole reference with its host; None: it is
            deployed by other means, into the same namespace and under the same service account.
        rules: What the application's rules file holds, handed on as it stands; None leaves it to
            the rules that are in the image.
    """

    database: Database | None = None
    namespace: DnsLabel = "backend"
    submits_to: tuple[str, ...] = ()
    allow_from: tuple[DnsLabel, ...] = ()
    image: ImageName | None = None
    rules: Mapping[str, object] | None = None


class Alarms(Model):
    """Who hears of alarms."""

    email: Email


class WriteLatencySlo(Model):
    """Objective for the latency of Kubernetes API writes, which a canary in the VPC measures.

    Attributes:
        threshold_ms: A write within this time is a good one, in milliseconds.
        goal_percent: Share of good writes over the last seven days, in percent.
    """

    threshold_ms: Annotated[int, Field(ge=1, le=10_000)]
    goal_percent: Annotated[float, Field(ge=1, lt=100)]


class Observability(Model):
    """What is measured and shown.

    Attributes:
        dashboards: Whether dashboards are made.
        alarms: Who hears of alarms; None for no alarms.
        container_logs: Whether what containers and nodes log is sent to CloudWatch.
        hyperpod_addon: Whether HyperPod's observability add-on is installed, with a workspace of
            Amazon Managed Service for Prometheus. Its name and its settings are documented; no
            public source states its versions, so `kubernetes.addons` has to.
        write_latency_slo: Objective for API writes; None for no objective.
    """

    dashboards: bool = False
    alarms: Alarms | None = None
    container_logs: bool = True
    hyperpod_addon: bool = False
    write_latency_slo: WriteLatencySlo | None = None
