"""The application that submits jobs, and its database."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ultrascale.plan.model.access import RightPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerlessCapacity:
    """Instances of Aurora Serverless v2.

    Attributes:
        instance_class: RDS's name of the class of such instances.
        instances: How many there are, each in a zone of its own.
        min_acu: Least capacity of each, in Aurora capacity units.
        max_acu: Most capacity of each.
        pause_seconds: Time without a connection after which they pause; None: they never do.
    """

    instance_class: str
    instances: int
    min_acu: float
    max_acu: float
    pause_seconds: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceCapacity:
    """An instance of RDS for PostgreSQL.

    Attributes:
        instance_class: RDS's name of its class.
        multi_az: Whether another one stands by in another zone.
        storage_gib: Storage at first, in GiB.
        max_storage_gib: How far it may grow by itself.
    """

    instance_class: str
    multi_az: bool
    storage_gib: int
    max_storage_gib: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabasePlan:
    """A PostgreSQL database.

    Attributes:
        engine: RDS's name of the engine.
        version: Major or minor version.
        minor_upgrades: Whether RDS upgrades the minor version by itself, in its window.
        parameter_group_family: RDS's name of what its parameters are of.
        parameters: Parameters that are not RDS's defaults.
        capacity: What it runs on.
        name: Name of the database, and of the user that owns it.
        port: TCP port.
        login: Whether that user has a password in a secret, or logs in by IAM.
        backup_retention_days: How long the daily backups are kept, in days.
        insights_days: How long Performance Insights keeps what it measures, in days; None: off.
        log_types: Logs that are written to CloudWatch.
        log_retention_days: How long they are kept, in days.
    """

    engine: Literal["aurora-postgresql", "postgres"]
    version: str
    minor_upgrades: bool
    parameter_group_family: str
    parameters: Mapping[str, str]
    capacity: ServerlessCapacity | InstanceCapacity
    name: str
    port: int
    login: Literal["secret", "iam"]
    backup_retention_days: int
    insights_days: int | None
    log_types: tuple[str, ...]
    log_retention_days: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerRightPlan:
    """Jobs that a group of callers may submit.

    Attributes:
        group: A group of the issuer, or Kubernetes' name of service accounts.
        priority: Highest class of its jobs, as the file names it; None: jobs without one.
        highest_value: Highest priority of its jobs.
        kinds: Kinds of its jobs.
        templates: Templates that its jobs may be of.
    """

    group: str
    priority: str | None
    highest_value: int
    kinds: tuple[str, ...]
    templates: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityPlan:
    """Callers of the backend.

    Attributes:
        accounts_audience: Audience of the tokens of service accounts that it takes.
        issuer: OpenID Connect issuer whose tokens it takes as well; None: no other.
        audience: Audience that the issuer's tokens must have.
        groups_claim: Claim of these tokens that holds groups.
        admins: Groups and service accounts that may submit everything, and see and cancel all.
        rights: What others may submit, in the order of the file.
        priorities: Values of PriorityClasses, by name.
    """

    accounts_audience: str
    issuer: str | None
    audience: str
    groups_claim: str
    admins: tuple[str, ...]
    rights: tuple[CallerRightPlan, ...]
    priorities: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationPlan:
    """The backend's own Deployment.

    Attributes:
        image: Whole reference of its image.
        replicas: Pods.
        port: TCP port that it listens on.
        folder: Where the files are that it reads.
        files: Their content, by name.
        environment: Its environment variables.
        grace_period_seconds: Time from SIGTERM to SIGKILL.
    """

    image: str
    replicas: int
    port: int
    folder: str
    files: Mapping[str, str]
    environment: Mapping[str, str]
    grace_period_seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendPlan:
    """The application that submits jobs.

    Attributes:
        namespace: Where it runs.
        database: Its database; None for a backend without one.
        job_namespaces: Namespaces of the jobs that it launches, but those of teams.
        team_namespaces: Those of teams, which task governance makes.
        rights: What it may do in each of them.
        cluster_rights: What it may read of the cluster as a whole.
        allow_from: Other namespaces whose pods may reach it.
        identity: Who may call it.
        application: Its Deployment; None where it is deployed by other means.
    """

    namespace: str
    database: DatabasePlan | None
    job_namespaces: tuple[str, ...]
    team_namespaces: tuple[str, ...]
    rights: tuple[RightPlan, ...]
    cluster_rights: tuple[RightPlan, ...]
    allow_from: tuple[str, ...]
    identity: IdentityPlan
    application: ApplicationPlan | None
