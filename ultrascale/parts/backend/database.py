"""`backend.database`: the database of the backend."""

import math
from collections.abc import Mapping
from typing import Annotated, Literal

from ultrascale.catalog.price_list import DATABASE_CLASSES
from ultrascale.config._base import Section
from ultrascale.config._errors import Mistakes, near, refuse
from ultrascale.config._rules import rule
from ultrascale.config._values import InSchema, between, in_schema, known_in_schema, matching
from ultrascale.parts.backend import rds

_OF_SERVICE: Mapping[rds.Service, tuple[str, ...]] = {
    "aurora-serverless": ("min_capacity_acu", "max_capacity_acu"),
    "rds": ("instance_type", "storage_gib"),
}


# Writer and reader, either of which may lie in any subnet of nodes.
DATABASE_ADDRESSES = 2


def _acu(bounds: tuple[float, float]) -> InSchema:
    lowest, most = bounds
    return in_schema(minimum=lowest, maximum=most, multipleOf=rds.ACU_STEP)


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

    service: rds.Service = "aurora-serverless"
    """Aurora Serverless v2, whose capacity follows the load, or an RDS instance."""

    login: Literal["secret", "iam"] = "secret"
    """`secret`: a password that RDS keeps and rotates; `iam`: no password."""

    min_capacity_acu: Annotated[float, _acu(rds.MIN_ACU)] = 0.5
    """Least capacity of each Aurora instance, in steps of 0.5. At 0 it pauses when nobody has been
    connected for an hour.
    """

    max_capacity_acu: Annotated[float, _acu(rds.MAX_ACU)] = 4
    """Most capacity of each Aurora instance, in steps of 0.5."""

    instance_type: Annotated[str, known_in_schema(lambda: DATABASE_CLASSES)] = "db.m6g.large"
    """Class of the RDS instance."""

    storage_gib: Annotated[int, between(rds.STORAGE_GIB)] = 20
    """First storage of the RDS instance, in GiB. It grows by itself to ten times that, and never
    shrinks.
    """

    multi_az: bool = True
    """Keep a second instance in another zone that takes over."""

    backup_retention_days: Annotated[int, between(rds.BACKUP_DAYS)] = 7
    """Days that backups are kept, 1 to 35."""


@rule
def database_version_exists(database: Database) -> Mistakes:
    if rds.has_version(database.service, database.version):
        return
    majors = rds.VERSIONS[database.service]
    known = majors.get(rds.major_of(database.version), tuple(majors))
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
        ("min_capacity_acu", database.min_capacity_acu, rds.MIN_ACU),
        ("max_capacity_acu", database.max_capacity_acu, rds.MAX_ACU),
    ):
        if not lowest <= value <= most or value % rds.ACU_STEP:
            todo = f"write {lowest:g} to {most:g} in steps of {rds.ACU_STEP:g}"
            yield refuse(key, "not a capacity of Aurora Serverless", todo)


@rule
def database_capacity_has_room(database: Database) -> Mistakes:
    lowest, most = database.min_capacity_acu, database.max_capacity_acu
    if lowest > most:
        is_stated = "min_capacity_acu" in database.model_fields_set
        key = "min_capacity_acu" if is_stated else "max_capacity_acu"
        wrong = f"a minimum of {lowest:g} above the maximum of {most:g}"
        yield refuse(key, wrong, "lower the one or raise the other", got="")


@rule
def database_instance_exists(database: Database) -> Mistakes:
    if database.instance_type not in DATABASE_CLASSES:
        todo = near(database.instance_type, DATABASE_CLASSES, ("db.t4g.medium", "db.m6g.large"))
        yield refuse("instance_type", "not an instance class of PostgreSQL on RDS", todo)


@rule
def database_storage_exists(database: Database) -> Mistakes:
    smallest, most = rds.STORAGE_GIB
    growing = math.floor(most / rds.LEAST_GROWTH)
    if not smallest <= database.storage_gib <= most:
        yield refuse("storage_gib", "not a size of gp3 storage", f"write {smallest} to {growing}")
    elif database.storage_gib > growing:
        wrong = f"too near to the {most} GiB of gp3 storage for RDS to let it grow by itself"
        yield refuse("storage_gib", wrong, f"write at most {growing}")


@rule
def backups_can_be_kept(database: Database) -> Mistakes:
    shortest, most = rds.BACKUP_DAYS
    if not shortest <= database.backup_retention_days <= most:
        yield refuse("backup_retention_days", "out of range", f"write {shortest} to {most}")
