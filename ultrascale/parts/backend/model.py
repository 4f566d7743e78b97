"""The application that submits jobs, and its database."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal
from urllib.parse import urlsplit

from ultrascale.catalog.endpoints import Feature
from ultrascale.frozen import Frozen
from ultrascale.plan.model import PlannedPart, RightPlan, StandingItem
from ultrascale.plan.model.parts import KeyPrincipal

LAYER = "backend"
ACCOUNT = "backend"
"""Name of its service account, and of its Deployment."""
AUDIENCE = "ultrascale-backend"
"""Audience of the service accounts' tokens that it takes."""
DATABASE = "backend"
"""Name of its PostgreSQL database, and of the user that owns it."""

# Stand for values of the database that CloudFormation alone knows.
DATABASE_HOST = "${DATABASE_HOST}"
DATABASE_SECRET_ARN = "${DATABASE_SECRET_ARN}"


class ServerlessCapacity(Frozen):
    """Instances of Aurora Serverless v2."""

    instance_class: str  # RDS's name of the class of such instances
    instances: int  # Number of instances, each in a zone of its own
    min_acu: float  # Least capacity of each, in Aurora capacity units
    max_acu: float  # Most capacity of each
    # Time without a connection after which they pause; None: they never do.
    pause_seconds: int | None


class InstanceCapacity(Frozen):
    """An instance of RDS for PostgreSQL."""

    instance_class: str  # RDS's name of its class
    multi_az: bool  # Whether another one stands by in another zone
    storage_gib: int  # Storage at first, in GiB
    max_storage_gib: int  # Most storage, to which it grows by itself


class DatabasePlan(Frozen):
    """A PostgreSQL database."""

    engine: Literal["aurora-postgresql", "postgres"]  # RDS's name of the engine
    version: str  # Major or minor version
    minor_upgrades: bool  # Whether RDS upgrades the minor version by itself, in its window
    parameter_group_family: str  # RDS's name of its parameter group family
    parameters: Mapping[str, str]  # Parameters that are not RDS's defaults
    capacity: ServerlessCapacity | InstanceCapacity  # Its instances
    name: str  # Name of the database, and of the user that owns it
    port: int  # TCP port
    # Whether that user has a password in a secret, or logs in by IAM.
    login: Literal["secret", "iam"]
    backup_retention_days: int  # Retention of the daily backups, in days
    # Retention of Performance Insights' measurements, in days; None: off.
    insights_days: int | None
    log_types: tuple[str, ...]  # Logs that are written to CloudWatch
    log_retention_days: int  # Retention of these logs, in days


class CallerRightPlan(Frozen):
    """Jobs that a group of callers may submit."""

    group: str  # A group of the issuer, or Kubernetes' name of service accounts
    priority: str | None  # Highest class of its jobs, by the file's name; None: jobs without one
    highest_value: int  # Highest priority of its jobs
    kinds: tuple[str, ...]  # Kinds of its jobs
    templates: tuple[str, ...]  # Templates that its jobs may be of


class IdentityPlan(Frozen):
    """Callers of the backend."""

    accounts_audience: str  # Audience of the service accounts' tokens that it takes
    issuer: str | None  # Another OpenID Connect issuer whose tokens it takes; None: no other
    audience: str  # Audience that the issuer's tokens must have
    groups_claim: str  # Claim of these tokens that holds groups
    # Groups and service accounts that may submit everything, and see and cancel all.
    admins: tuple[str, ...]
    rights: tuple[CallerRightPlan, ...]  # Rights of the others, in the order of the file
    priorities: Mapping[str, int]  # Values of PriorityClasses, by name


class ApplicationPlan(Frozen):
    """The backend's own Deployment."""

    image: str  # Whole reference of its image
    replicas: int  # Pods
    port: int  # TCP port that it listens on
    folder: str  # Folder of its files
    files: Mapping[str, str]  # Their content, by name
    environment: Mapping[str, str]  # Its environment variables
    grace_period_seconds: int  # Time from SIGTERM to SIGKILL


class Plan(PlannedPart):
    """The application that submits jobs."""

    renderer: ClassVar[str | None] = "backend"

    namespace: str  # Its namespace
    # Its database; None for a backend without one.
    database: DatabasePlan | None
    job_namespaces: tuple[str, ...]  # Namespaces of the jobs that it launches, but those of teams
    team_namespaces: tuple[str, ...]  # Namespaces of teams, which task governance makes
    rights: tuple[RightPlan, ...]  # Its rights in each of them
    cluster_rights: tuple[RightPlan, ...]  # Its rights to read the cluster as a whole
    allow_from: tuple[str, ...]  # Other namespaces whose pods may reach it
    # Ranges that stand for the pods of other namespaces; empty: their pods.
    job_ranges: tuple[str, ...] = ()
    identity: IdentityPlan  # Who may call it
    application: ApplicationPlan | None  # Its Deployment; None where another tool deploys it

    @property
    def database_version(self) -> str | None:
        """Engine and version of its database."""
        own = self.database
        return None if own is None else f"{own.engine} {own.version}"

    @property
    def features(self) -> Sequence[Feature]:
        """The application reads its password, if it has one."""
        return ("backend",) if self._has_password else ()

    @property
    def hosts(self) -> Mapping[str, str]:
        """Its issuer of tokens, if there is one."""
        if self.identity.issuer is None:
            return {}
        host = urlsplit(self.identity.issuer).netloc
        return {host: "the backend reads the keys of its issuer of tokens"}

    @property
    def pods(self) -> Mapping[str, int]:
        """Pods of its own Deployment."""
        return {} if self.application is None else {"backend": self.application.replicas}

    @property
    def identities(self) -> Sequence[str]:
        """Its pods, whoever deploys them."""
        return ("backend",)

    @property
    def submitter(self) -> tuple[str, str]:
        """Its namespace and service account."""
        return self.namespace, ACCOUNT

    @property
    def linked_roles(self) -> Sequence[str]:
        """RDS, with a database."""
        return () if self.database is None else ("rds.amazonaws.com",)

    @property
    def standing(self) -> Sequence[StandingItem]:
        """Capacity and storage of its database."""
        if self.database is None:
            return ()
        capacity = self.database.capacity
        if isinstance(capacity, ServerlessCapacity):
            acu = capacity.instances * capacity.min_acu
            words = f"{capacity.instances} instances x {capacity.min_acu:g} capacity units at least"
            return (
                _item("backend database", "aurora-acu", acu, words),
                _item("storage of backend database", "aurora-storage", None, "GB-months"),
            )
        count = 2 if capacity.multi_az else 1
        name = capacity.instance_class
        gib = count * capacity.storage_gib
        words = f"{count} x {capacity.storage_gib:,} GiB"
        return (
            _item("backend database", name, count, f"{count} x {name}"),
            _item("storage of backend database", "gp3-storage", gib, words),
        )

    @property
    def key_principals(self) -> Sequence[KeyPrincipal]:
        """Services that make the database and read its password."""
        if self.database is None:
            return ()
        refused = "RDS refuses to make the backend's database"
        database = KeyPrincipal(
            use="storage", name="Database", does=refused, actions="rds", via="rds"
        )
        if not self._has_password:
            return (database,)
        asked_by = "secretsmanager"
        password = KeyPrincipal(
            use="storage", name="Password", does=refused, actions="rds-secret", via=asked_by
        )
        reader = KeyPrincipal(
            use="storage",
            name="PasswordOfBackend",
            who="the backend's pods",
            does="they do not reach their database",
            actions="secrets-manager",
            layer=LAYER,
            via=asked_by,
        )
        return database, password, reader

    @property
    def _has_password(self) -> bool:
        return self.database is not None and self.database.login == "secret"


def _item(name: str, item: str, quantity: float | None, words: str) -> StandingItem:
    return StandingItem(
        name=name, service="rds", item=item, quantity=quantity, words=words, follows="storage"
    )
