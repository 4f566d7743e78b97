"""`backend.database`: the database of the backend."""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Literal

from ultrascale.catalog.prices import DATABASE_CLASSES
from ultrascale.config._base import Section
from ultrascale.config._errors import Mistakes, near, refuse
from ultrascale.config._rules import rule
from ultrascale.config._values import InSchema, between, in_schema, known_in_schema, matching

# --- Amazon RDS and Aurora: PostgreSQL versions and capacities ------------------------------------
# Sources:
#     https://docs.aws.amazon.com/AmazonRDS/latest/AuroraPostgreSQLReleaseNotes/AuroraPostgreSQL.Updates.html
#     https://docs.aws.amazon.com/AmazonRDS/latest/PostgreSQLReleaseNotes/postgresql-versions.html
#     https://github.com/aws-cloudformation/cfn-lint/tree/v1.58.0/src/cfnlint/data/schemas/extensions
#     (what RDS lists by `DescribeDBEngineVersions` and `DescribeOrderableDBInstanceOptions`, of
#     2026-10-20; a test holds `VERSIONS`, and `DATABASE_SIZES` of the price list, against it)


Service = Literal["aurora-serverless", "rds"]

# RDS's engine name, by our word for the service.
ENGINES: Mapping[Service, str] = MappingProxyType(
    {"aurora-serverless": "aurora-postgresql", "rds": "postgres"}
)

# Minor versions of a new database, by major; without versions that RDS calls deprecated.
VERSIONS: Mapping[Service, Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "aurora-serverless": MappingProxyType(
            {
                "16": ("16.8", "16.9", "16.10", "16.11", "16.13", "16.14", "16.15"),
                "17": ("17.4", "17.5", "17.6", "17.7", "17.9", "17.10", "17.11"),
                "18": ("18.3", "18.4", "18.6"),
            }
        ),
        "rds": MappingProxyType(
            {
                "16": ("16.9", "16.10", "16.11", "16.12", "16.13", "16.14", "16.15"),
                "17": ("17.5", "17.6", "17.7", "17.8", "17.9", "17.10", "17.11"),
                "18": ("18.1", "18.2", "18.3", "18.4", "18.6"),
            }
        ),
    }
)

# An Aurora capacity unit is about 2 GiB of memory with the CPU and network that go with it.
# Source: https://docs.aws.amazon.com/AmazonRDS/latest/AuroraUserGuide/aurora-serverless-v2.how-it-works.html
ACU_STEP = 0.5
# With a capacity of 0, instances without connections pause, and take about 15 seconds to resume.
# Source: https://docs.aws.amazon.com/AmazonRDS/latest/AuroraUserGuide/aurora-serverless-v2-auto-pause.html
MIN_ACU = (0.0, 256.0)
MAX_ACU = (1.0, 256.0)
# Seconds without a connection before instances pause.
PAUSE_SECONDS = 3_600
# Performance Insights takes memory that a smaller instance does not have to spare.
# Source: https://docs.aws.amazon.com/AmazonRDS/latest/AuroraUserGuide/aurora-serverless-v2.setting-capacity.html
INSIGHTS_MIN_ACU = 2.0
SERVERLESS_CLASS = "db.serverless"

# GiB of gp3 storage. It cannot shrink.
# Source: https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/CHAP_Storage.html
STORAGE_GIB = (20, 65_536)
# Least distance from the storage to the most to which it grows by itself.
# Source: https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/USER_PIOPS.Autoscaling.html
LEAST_GROWTH = 1.1

# Days that Performance Insights keeps free of charge.
# Source: https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/USER_PerfInsights.Overview.cost.html
FREE_INSIGHTS_DAYS = 7
# Source: https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/USER_WorkingWithAutomatedBackups.BackupRetention.html
BACKUP_DAYS = (1, 35)
POSTGRES_PORT = 5432

# Logs that RDS sends to CloudWatch.
LOG_TYPES: Mapping[Service, tuple[str, ...]] = MappingProxyType(
    {"aurora-serverless": ("postgresql",), "rds": ("postgresql", "upgrade")}
)


def major_of(version: str) -> str:
    """Return the major version of ``version``, which may have a minor part."""
    return version.partition(".")[0]


def has_version(service: Service, version: str) -> bool:
    """Return whether a new database of ``service`` may have ``version``.

    A bare major version counts: RDS then takes its own default of that major.

    Source: https://github.com/aws-cloudformation/cfn-lint/issues/3976
    """
    majors = VERSIONS[service]
    return version in majors or version in majors.get(major_of(version), ())


def parameter_group_family(service: Service, version: str) -> str:
    """Return the family of parameter groups of a version."""
    return f"{ENGINES[service]}{major_of(version)}"


# --- `backend.database`: the database of the backend ----------------------------------------------


_OF_SERVICE: Mapping[Service, tuple[str, ...]] = {
    "aurora-serverless": ("min_capacity_acu", "max_capacity_acu"),
    "rds": ("instance_type", "storage_gib"),
}


# Writer and reader, either of which may lie in any subnet of nodes.
DATABASE_ADDRESSES = 2


def _acu(bounds: tuple[float, float]) -> InSchema:
    lowest, most = bounds
    return in_schema(minimum=lowest, maximum=most, multipleOf=ACU_STEP)


class Database(Section):
    """The backend's database, PostgreSQL."""

    engine: Literal["postgres"] = "postgres"
    """Database engine."""

    version: Annotated[
        str, matching(r"[0-9]{1,4}(?:\.[0-9]{1,4})?", "not a database version", 'write "17"')
    ]
    """Major version (`"16"`, `"17"`, `"18"`), which gets minor upgrades by itself, or a minor
    version, which stays.
    """

    service: Service = "aurora-serverless"
    """Aurora Serverless v2, whose capacity follows the load, or an RDS instance."""

    login: Literal["secret", "iam"] = "secret"
    """`secret`: a password that RDS keeps and rotates; `iam`: no password."""

    min_capacity_acu: Annotated[float, _acu(MIN_ACU)] = 0.5
    """Least capacity of each Aurora instance, in steps of 0.5. At 0 it pauses when nobody has been
    connected for an hour.
    """

    max_capacity_acu: Annotated[float, _acu(MAX_ACU)] = 4
    """Most capacity of each Aurora instance, in steps of 0.5."""

    instance_type: Annotated[str, known_in_schema(lambda: DATABASE_CLASSES)] = "db.m6g.large"
    """Class of the RDS instance."""

    storage_gib: Annotated[int, between(STORAGE_GIB)] = 20
    """First storage of the RDS instance, in GiB. It grows by itself to ten times that, and never
    shrinks.
    """

    multi_az: bool = True
    """Keep a second instance in another zone that takes over."""

    backup_retention_days: Annotated[int, between(BACKUP_DAYS)] = 7
    """Days that backups are kept, 1 to 35."""


@rule
def database_version_exists(database: Database) -> Mistakes:
    if has_version(database.service, database.version):
        return
    majors = VERSIONS[database.service]
    known = majors.get(major_of(database.version), tuple(majors))
    of = "Aurora PostgreSQL" if database.service == "aurora-serverless" else "RDS for PostgreSQL"
    yield refuse("version", f"not a version of {of}", f"use {', '.join(known)}")


@rule
def database_keys_are_of_its_service(database: Database) -> Mistakes:
    for other, keys in _OF_SERVICE.items():
        for key in keys:
            if other != database.service and key in database.model_fields_set:
                wrong = f"a setting of service: {other}"
                yield refuse(key, wrong, f"leave it out, or use service: {other}")


@rule
def database_capacity_exists(database: Database) -> Mistakes:
    for key, value, (lowest, most) in (
        ("min_capacity_acu", database.min_capacity_acu, MIN_ACU),
        ("max_capacity_acu", database.max_capacity_acu, MAX_ACU),
    ):
        if not lowest <= value <= most or value % ACU_STEP:
            todo = f"write {lowest:g} to {most:g} in steps of {ACU_STEP:g}"
            yield refuse(key, "not a capacity of Aurora Serverless", todo)


@rule
def database_capacity_has_room(database: Database) -> Mistakes:
    lowest, most = database.min_capacity_acu, database.max_capacity_acu
    if lowest > most:
        is_stated = "min_capacity_acu" in database.model_fields_set
        key = "min_capacity_acu" if is_stated else "max_capacity_acu"
        wrong = f"a minimum of {lowest:g} above the maximum of {most:g}"
        yield refuse(key, wrong, "lower it, or raise the maximum", got="")


@rule
def database_instance_exists(database: Database) -> Mistakes:
    if database.instance_type not in DATABASE_CLASSES:
        todo = near(database.instance_type, DATABASE_CLASSES, ("db.t4g.medium", "db.m6g.large"))
        yield refuse("instance_type", "not an instance class of PostgreSQL on RDS", todo)


@rule
def database_storage_exists(database: Database) -> Mistakes:
    smallest, most = STORAGE_GIB
    growing = math.floor(most / LEAST_GROWTH)
    if not smallest <= database.storage_gib <= most:
        yield refuse("storage_gib", "not a size of gp3 storage", f"write {smallest} to {growing}")
    elif database.storage_gib > growing:
        wrong = f"leaves RDS too little room to grow storage to gp3's {most} GiB"
        yield refuse("storage_gib", wrong, f"write at most {growing}")


@rule
def backups_can_be_kept(database: Database) -> Mistakes:
    shortest, most = BACKUP_DAYS
    if not shortest <= database.backup_retention_days <= most:
        yield refuse("backup_retention_days", "out of range", f"write {shortest} to {most}")
