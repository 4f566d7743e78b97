"""What the backend must be to what is around it, and its database to RDS."""

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from ultrascale.catalog import rds
from ultrascale.config._errors import Mistake, near, refuse
from ultrascale.config._reader import Part
from ultrascale.config.hyperpod import TaskGovernance
from ultrascale.config.jobs import Job, ServiceJob
from ultrascale.config.operations import Database
from ultrascale.config.storage import Claim

Mistakes = Iterator[Mistake]

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


def backend_has_jobs(submits_to: tuple[str, ...]) -> Mistakes:
    if not submits_to:
        wrong = "a backend that may launch nothing"
        yield refuse("submits_to", wrong, "name templates of jobs", got="")


def backend_jobs_exist(submits_to: tuple[str, ...], cluster_jobs: Mapping[str, object]) -> Mistakes:
    for number, name in enumerate(submits_to):
        if name not in cluster_jobs:
            yield refuse(f"submits_to.{number}", "not one of jobs", near(name, cluster_jobs))
        elif isinstance(cluster_jobs[name], ServiceJob):
            wrong = "a service, which has no end to wait for"
            yield refuse(f"submits_to.{number}", wrong, "name templates of jobs that end")


def backend_namespace_is_free(
    namespace: str, hyperpod_task_governance: TaskGovernance | None, parts: tuple[Part, ...]
) -> Mistakes:
    """Yield a namespace where others may make pods: they could use the backend's account."""
    teams = hyperpod_task_governance.teams if hyperpod_task_governance else ()
    jobs = {_TRAINING, *(f"hyperpod-ns-{team.name}" for team in teams)}
    for part in parts:
        if part.kind is Claim or issubclass(part.kind, Job):
            jobs.add(str(part.fields.get("namespace", "")))
    if namespace in jobs:
        wrong = "a namespace of jobs, any of which could take the backend's permissions"
        yield refuse("namespace", wrong, "choose another")
    elif namespace in _TAKEN or namespace.startswith(_TAKEN_PREFIXES):
        yield refuse("namespace", "a namespace of the cluster's own components", "choose another")


def callers_are_others(allow_from: tuple[str, ...], namespace: str) -> Mistakes:
    if namespace in allow_from:
        number = allow_from.index(namespace)
        wrong = "the backend's own namespace, whose pods may reach it anyway"
        yield refuse(f"allow_from.{number}", wrong, "leave it out")


def backend_image_is_known(
    image: str | None,
    images_repositories: tuple[str, ...],
    images_builds: Mapping[str, str],
) -> Mistakes:
    if image is None:
        return
    name, _, _ = image.partition("@")
    repository, _, tag = name.partition(":")
    host, slash, _ = image.partition("/")
    if slash and ("." in host or ":" in host):
        return
    if repository not in images_repositories:
        todo = near(repository, images_repositories)
        todo += "; for another registry write its host too, as docker.io/…"
        yield refuse("image", "not one of images.repositories", todo)
    elif not tag and "@" not in image and images_builds.get(repository, repository) != _DOCKERFILE:
        todo = f"add :TAG of an image that you have pushed, or images.builds.{repository}: backend"
        yield refuse("image", "no tag, and the backend is not built for that repository", todo)


def application_has_a_database(image: str | None, database: Database | None) -> Mistakes:
    if image is not None and database is None:
        wrong = "an application without the database that it records requests in"
        yield refuse("image", wrong, "add database, or deploy it by other means")


def rules_have_a_reader(image: str | None, rules: Mapping[str, object] | None) -> Mistakes:
    if rules is not None and image is None:
        wrong = "rules without an image that reads them"
        yield refuse("rules", wrong, "add image, or leave them out", got="")


def rules_choose_among_the_jobs(
    image: str | None,
    rules: Mapping[str, object] | None,
    submits_to: tuple[str, ...],
    images_repositories: tuple[str, ...],
    images_builds: Mapping[str, str],
) -> Mistakes:
    """Yield rules with which our application would not start; those of others are their own."""
    ours = image in images_repositories and images_builds.get(image, image) == _DOCKERFILE
    if image is None or not ours:
        return
    if rules is None:
        if missing := sorted(DEFAULT_TEMPLATES.difference(submits_to)):
            wrong = f"missing, and those in the image submit {', '.join(missing)} too"
            yield refuse("rules", wrong, "add rules, or name all of that in submits_to", got="")
        return
    stated = rules.get("rules")
    if not isinstance(stated, list | tuple) or not stated:
        yield refuse("rules.rules", "no rules", "add them, as docs/backend.md shows", got="")
        return
    for number, rule in enumerate(cast("Sequence[object]", stated)):
        template = (
            cast("Mapping[str, object]", rule).get("template")
            if isinstance(rule, Mapping)
            else None
        )
        if template not in submits_to:
            todo = near(str(template), submits_to)
            yield refuse(f"rules.rules.{number}.template", "not one of submits_to", todo)


def database_version_exists(version: str, service: rds.Service) -> Mistakes:
    if rds.has_version(service, version):
        return
    majors = rds.VERSIONS[service]
    known = majors.get(rds.major_of(version), tuple(majors))
    of = "Aurora PostgreSQL" if service == "aurora-serverless" else "RDS for PostgreSQL"
    yield refuse("version", f"not a version of {of}", f"use {', '.join(known)}")


def database_keys_are_of_its_service(given: frozenset[str], service: rds.Service) -> Mistakes:
    for other, keys in _OF_SERVICE.items():
        for key in keys:
            if other != service and key in given:
                wrong = f"a setting of service: {other}"
                yield refuse(key, wrong, f"leave it out, or use service: {other}")


def database_capacity_exists(min_capacity_acu: float, max_capacity_acu: float) -> Mistakes:
    for key, value, (least, most) in (
        ("min_capacity_acu", min_capacity_acu, rds.MIN_ACU),
        ("max_capacity_acu", max_capacity_acu, rds.MAX_ACU),
    ):
        if not least <= value <= most or value % rds.ACU_STEP:
            todo = f"write {least:g} to {most:g} in steps of {rds.ACU_STEP:g}"
            yield refuse(key, "not a capacity of Aurora Serverless", todo)


def database_capacity_has_room(
    min_capacity_acu: float, max_capacity_acu: float, given: frozenset[str]
) -> Mistakes:
    if min_capacity_acu > max_capacity_acu:
        key = "min_capacity_acu" if "min_capacity_acu" in given else "max_capacity_acu"
        wrong = f"a minimum of {min_capacity_acu:g} above the maximum of {max_capacity_acu:g}"
        yield refuse(key, wrong, "lower the one or raise the other", got="")


def database_instance_exists(instance_type: str) -> Mistakes:
    if instance_type not in rds.INSTANCE_CLASSES:
        todo = near(instance_type, rds.INSTANCE_CLASSES, ("db.t4g.medium", "db.m6g.large"))
        yield refuse("instance_type", "not an instance class of PostgreSQL on RDS", todo)


def database_storage_exists(storage_gib: int) -> Mistakes:
    least, most = rds.STORAGE_GIB
    if not least <= storage_gib <= most:
        yield refuse("storage_gib", "not a size of gp3 storage", f"write {least} to {most}")


def backups_can_be_kept(backup_retention_days: int) -> Mistakes:
    least, most = rds.BACKUP_DAYS
    if not least <= backup_retention_days <= most:
        yield refuse("backup_retention_days", "out of range", f"write {least} to {most}")
