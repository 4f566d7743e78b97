"""Amazon RDS and Aurora: PostgreSQL versions and capacities.

Sources:
    https://docs.aws.amazon.com/AmazonRDS/latest/AuroraPostgreSQLReleaseNotes/AuroraPostgreSQL.Updates.html
    https://docs.aws.amazon.com/AmazonRDS/latest/PostgreSQLReleaseNotes/postgresql-versions.html
    https://github.com/aws-cloudformation/cfn-lint/tree/v1.58.0/src/cfnlint/data/schemas/extensions
    (what RDS lists by `DescribeDBEngineVersions` and `DescribeOrderableDBInstanceOptions`, of
    2026-10-20; a test holds `VERSIONS`, and `DATABASE_SIZES` of the price list, against it)
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

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
