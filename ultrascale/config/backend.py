"""`backend`: the application that submits jobs, and its database."""

from collections.abc import Mapping
from typing import Annotated, Literal

from ultrascale.catalog import image_references, rds
from ultrascale.config._base import Section
from ultrascale.config._document import is_list, is_mapping
from ultrascale.config._errors import Mistakes, near, refuse
from ultrascale.config._parts import Names, Readable
from ultrascale.config._rules import rule
from ultrascale.config._values import Distinct, DnsLabel, matching
from ultrascale.config.hyperpod import TaskGovernance
from ultrascale.config.images import Images
from ultrascale.config.jobs import ImageName, Job, ServiceJob
from ultrascale.config.storage import Claim

# Namespaces of Kubernetes, of AWS's add-ons, and of what this product installs.
_TAKEN = frozenset(
    {
        "amazon-cloudwatch",
        "amazon-guardduty",
        "aws-hyperpod",
        "cert-manager",
        "default",
        "hyperpod-observability",
        "kubeflow",
        "kueue-system",
        "mount-s3",
        "volcano-monitoring",
        "volcano-system",
        "write-canary",
    }
)
_TAKEN_PREFIXES = ("kube-", "hyperpod-ns-")
# Folder of `images` that our application is built from, by default for a repository of its name.
_DOCKERFILE = "backend"
DEFAULT_TEMPLATES = frozenset({"production", "development", "research"})
"""Templates that the rules in the image of our application submit."""
_TRAINING = str(Job.model_fields["namespace"].default)

_OF_SERVICE: Mapping[rds.Service, tuple[str, ...]] = {
    "aurora-serverless": ("min_capacity_acu", "max_capacity_acu"),
    "rds": ("instance_type", "storage_gib"),
}


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

    min_capacity_acu: float = 0.5
    """Least capacity of each Aurora instance, in steps of 0.5. At 0 it pauses when nobody has been
    connected for an hour.
    """

    max_capacity_acu: float = 4
    """Most capacity of each Aurora instance, in steps of 0.5."""

    instance_type: str = "db.m6g.large"
    """Class of the RDS instance."""

    storage_gib: int = 20
    """First storage of the RDS instance, in GiB. It grows by itself to ten times that, and never
    shrinks.
    """

    multi_az: bool = True
    """Keep a second instance in another zone that takes over."""

    backup_retention_days: int = 7
    """Days that backups are kept, 1 to 35."""


class Backend(Section):
    """The application that submits jobs."""

    database: Database | None = None
    """PostgreSQL database of the backend. Default: none."""

    namespace: DnsLabel = "backend"
    """Namespace of the backend: no namespace of jobs or of the cluster's components."""

    submits_to: Distinct[str] = ()
    """Templates of `jobs` that it may launch; at least one, and no services.

    Default: required.
    """

    allow_from: Distinct[DnsLabel] = ()
    """Other namespaces whose pods may reach it. Default: none."""

    image: ImageName | None = None
    """One of `images.repositories`, or a whole reference with its host.

    Default: you deploy the application yourself.
    """

    rules: Mapping[str, object] | None = None
    """Content of the application's rules file: the template that each request becomes.

    Default: the rules in the image.
    """


@rule
def backend_has_jobs(backend: Backend) -> Mistakes:
    if not backend.submits_to:
        wrong = "a backend that may launch nothing"
        yield refuse("submits_to", wrong, "name templates of jobs", got="")


@rule
def backend_jobs_exist(
    backend: Backend, names: Names[Job], services: Readable[ServiceJob]
) -> Mistakes:
    unending = {str(placed.at[-1]) for placed in services.placed}
    for number, name in enumerate(backend.submits_to):
        if name not in names:
            yield refuse(f"submits_to.{number}", "not one of jobs", near(name, names))
        elif name in unending:
            wrong = "a service, which has no end to wait for"
            yield refuse(f"submits_to.{number}", wrong, "name templates of jobs that end")


@rule
def backend_namespace_is_free(
    backend: Backend,
    governance: TaskGovernance | None,
    jobs: Readable[Job],
    claims: Readable[Claim],
) -> Mistakes:
    """Yield a namespace where others may make pods: they could use the backend's account."""
    namespace = backend.namespace
    teams = governance.teams if governance else ()
    taken = {_TRAINING, *(f"hyperpod-ns-{team.name}" for team in teams)}
    taken |= {part.namespace for part in (*jobs, *claims)}
    if namespace in taken:
        wrong = "a namespace of jobs, any of which could take the backend's permissions"
        yield refuse("namespace", wrong, "choose another")
    elif namespace in _TAKEN or namespace.startswith(_TAKEN_PREFIXES):
        yield refuse("namespace", "a namespace of the cluster's own components", "choose another")


@rule
def callers_are_others(backend: Backend) -> Mistakes:
    if backend.namespace in backend.allow_from:
        number = backend.allow_from.index(backend.namespace)
        wrong = "the backend's own namespace, whose pods may reach it anyway"
        yield refuse(f"allow_from.{number}", wrong, "leave it out")


@rule
def backend_image_is_known(backend: Backend, images: Images) -> Mistakes:
    if backend.image is None:
        return
    reference = image_references.parse(backend.image)
    if reference is None or reference.host is not None:
        return
    repository = reference.repository
    if repository not in images.repositories:
        todo = near(repository, images.repositories)
        todo += "; for another registry write its host too, as docker.io/…"
        yield refuse("image", "not one of images.repositories", todo)
    elif (
        reference.tag is None
        and reference.digest is None
        and images.builds.get(repository, repository) != _DOCKERFILE
    ):
        todo = f"add :TAG of an image that you have pushed, or images.builds.{repository}: backend"
        yield refuse("image", "no tag, and the backend is not built for that repository", todo)


@rule
def application_has_a_database(backend: Backend) -> Mistakes:
    if backend.image is not None and backend.database is None:
        wrong = "an application without the database that it records requests in"
        yield refuse("image", wrong, "add database, or deploy it by other means")


@rule
def rules_have_a_reader(backend: Backend) -> Mistakes:
    if backend.rules is not None and backend.image is None:
        wrong = "rules without an image that reads them"
        yield refuse("rules", wrong, "add image, or leave them out", got="")


@rule
def rules_choose_among_the_jobs(backend: Backend, images: Images) -> Mistakes:
    """Yield rules with which our application would not start; those of others are their own."""
    ours = (
        backend.image in images.repositories
        and images.builds.get(backend.image, backend.image) == _DOCKERFILE
    )
    if backend.image is None or not ours:
        return
    if backend.rules is None:
        if missing := sorted(DEFAULT_TEMPLATES.difference(backend.submits_to)):
            wrong = f"missing, and those in the image submit {', '.join(missing)} too"
            yield refuse("rules", wrong, "add rules, or name all of that in submits_to", got="")
        return
    stated = backend.rules.get("rules")
    if not is_list(stated) or not stated:
        yield refuse("rules.rules", "no rules", "add them, as docs/backend.md shows", got="")
        return
    for number, stated_rule in enumerate(stated):
        template = stated_rule.get("template") if is_mapping(stated_rule) else None
        if template not in backend.submits_to:
            todo = near(str(template), backend.submits_to)
            yield refuse(f"rules.rules.{number}.template", "not one of submits_to", todo)


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
    for key, value, (least, most) in (
        ("min_capacity_acu", database.min_capacity_acu, rds.MIN_ACU),
        ("max_capacity_acu", database.max_capacity_acu, rds.MAX_ACU),
    ):
        if not least <= value <= most or value % rds.ACU_STEP:
            todo = f"write {least:g} to {most:g} in steps of {rds.ACU_STEP:g}"
            yield refuse(key, "not a capacity of Aurora Serverless", todo)


@rule
def database_capacity_has_room(database: Database) -> Mistakes:
    least, most = database.min_capacity_acu, database.max_capacity_acu
    if least > most:
        is_stated = "min_capacity_acu" in database.model_fields_set
        key = "min_capacity_acu" if is_stated else "max_capacity_acu"
        wrong = f"a minimum of {least:g} above the maximum of {most:g}"
        yield refuse(key, wrong, "lower the one or raise the other", got="")


@rule
def database_instance_exists(database: Database) -> Mistakes:
    if database.instance_type not in rds.INSTANCE_CLASSES:
        todo = near(database.instance_type, rds.INSTANCE_CLASSES, ("db.t4g.medium", "db.m6g.large"))
        yield refuse("instance_type", "not an instance class of PostgreSQL on RDS", todo)


@rule
def database_storage_exists(database: Database) -> Mistakes:
    least, most = rds.STORAGE_GIB
    if not least <= database.storage_gib <= most:
        yield refuse("storage_gib", "not a size of gp3 storage", f"write {least} to {most}")


@rule
def backups_can_be_kept(database: Database) -> Mistakes:
    least, most = rds.BACKUP_DAYS
    if not least <= database.backup_retention_days <= most:
        yield refuse("backup_retention_days", "out of range", f"write {least} to {most}")
