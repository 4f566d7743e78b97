"""The application that submits jobs, and its database."""

from collections.abc import Mapping
from typing import Literal

from ultrascale.frozen import Frozen
from ultrascale.plan.model.access import RightPlan


class ServerlessCapacity(Frozen):
    """Instances of Aurora Serverless v2."""

    instance_class: str  # RDS's name of the class of such instances
    instances: int  # How many there are, each in a zone of its own
    min_acu: float  # Least capacity of each, in Aurora capacity units
    max_acu: float  # Most capacity of each
    # Time without a connection after which they pause; None: they never do.
    pause_seconds: int | None


class InstanceCapacity(Frozen):
    """An instance of RDS for PostgreSQL."""

    instance_class: str  # RDS's name of its class
    multi_az: bool  # Whether another one stands by in another zone
    storage_gib: int  # Storage at first, in GiB
    max_storage_gib: int  # How far it may grow by itself


class DatabasePlan(Frozen):
    """A PostgreSQL database."""

    engine: Literal["aurora-postgresql", "postgres"]  # RDS's name of the engine
    version: str  # Major or minor version
    minor_upgrades: bool  # Whether RDS upgrades the minor version by itself, in its window
    parameter_group_family: str  # RDS's name of what its parameters are of
    parameters: Mapping[str, str]  # Parameters that are not RDS's defaults
    capacity: ServerlessCapacity | InstanceCapacity  # What it runs on
    name: str  # Name of the database, and of the user that owns it
    port: int  # TCP port
    # Whether that user has a password in a secret, or logs in by IAM.
    login: Literal["secret", "iam"]
    backup_retention_days: int  # How long the daily backups are kept, in days
    # How long Performance Insights keeps what it measures, in days; None: off.
    insights_days: int | None
    log_types: tuple[str, ...]  # Logs that are written to CloudWatch
    log_retention_days: int  # How long they are kept, in days


class CallerRightPlan(Frozen):
    """Jobs that a group of callers may submit."""

    group: str  # A group of the issuer, or Kubernetes' name of service accounts
    priority: str | None  # Highest class of its jobs, as the file names it; None: jobs without one
    highest_value: int  # Highest priority of its jobs
    kinds: tuple[str, ...]  # Kinds of its jobs
    templates: tuple[str, ...]  # Templates that its jobs may be of


class IdentityPlan(Frozen):
    """Callers of the backend."""

    accounts_audience: str  # Audience of the tokens of service accounts that it takes
    issuer: str | None  # OpenID Connect issuer whose tokens it takes as well; None: no other
    audience: str  # Audience that the issuer's tokens must have
    groups_claim: str  # Claim of these tokens that holds groups
    # Groups and service accounts that may submit everything, and see and cancel all.
    admins: tuple[str, ...]
    rights: tuple[CallerRightPlan, ...]  # What others may submit, in the order of the file
    priorities: Mapping[str, int]  # Values of PriorityClasses, by name


class ApplicationPlan(Frozen):
    """The backend's own Deployment."""

    image: str  # Whole reference of its image
    replicas: int  # Pods
    port: int  # TCP port that it listens on
    folder: str  # Where the files are that it reads
    files: Mapping[str, str]  # Their content, by name
    environment: Mapping[str, str]  # Its environment variables
    grace_period_seconds: int  # Time from SIGTERM to SIGKILL


class BackendPlan(Frozen):
    """The application that submits jobs."""

    namespace: str  # Where it runs
    database: DatabasePlan | None  # Its database; None for a backend without one
    job_namespaces: tuple[str, ...]  # Namespaces of the jobs that it launches, but those of teams
    team_namespaces: tuple[str, ...]  # Those of teams, which task governance makes
    rights: tuple[RightPlan, ...]  # What it may do in each of them
    cluster_rights: tuple[RightPlan, ...]  # What it may read of the cluster as a whole
    allow_from: tuple[str, ...]  # Other namespaces whose pods may reach it
    identity: IdentityPlan  # Who may call it
    application: ApplicationPlan | None  # Its Deployment; None where it is deployed by other means
