"""The application that submits jobs: its database, its rights, its Deployment."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, cast

from ultrascale import config, own_images, yaml_writer
from ultrascale.core.engine import engine_of
from ultrascale.parts.backend import database as rds
from ultrascale.parts.backend.database import Database
from ultrascale.parts.backend.model import (
    AUDIENCE,
    DATABASE,
    DATABASE_HOST,
    DATABASE_SECRET_ARN,
    ApplicationPlan,
    CallerRightPlan,
    DatabasePlan,
    IdentityPlan,
    InstanceCapacity,
    Plan,
    ServerlessCapacity,
)
from ultrascale.parts.backend.section import Backend
from ultrascale.plan import names, retention
from ultrascale.plan.jobs.controllers import controllers_of_jobs, queue_kinds_of
from ultrascale.plan.jobs.namespaces import namespace_of
from ultrascale.plan.jobs.request import is_own_image
from ultrascale.plan.model import (
    ClusterPlan,
    ImageBuildPlan,
    PlannedPart,
    RightPlan,
)
from ultrascale.plan.namespaces import kinds_of_services, team_namespaces

_REPLICAS = 2
_PORT = 8080
# To finish begun requests: of at most 30 seconds, after the 5 in which no Service sends any more.
_GRACE_SECONDS = 60
# Between these RDS adds storage by itself: a full database takes no request.
_STORAGE_GROWTH = 10

_FILES = "/etc/ultrascale"
CLUSTER_FILE = "cluster.yaml"
"""Name of the cluster file within the backend's pods."""
_RULES_FILE = "rules.yaml"

# The class of a job that names none: no PriorityClass here is the default of the cluster.
_NO_CLASS = 0

_MAKE = ("create", "get", "list", "watch", "delete")


def plan_backend(cluster: config.Cluster, core: ClusterPlan) -> Plan | None:
    """Return the backend, if the file has one.

    Args:
        cluster: The cluster of its jobs.
        core: The plan below it.
    """
    backend = cluster.section(Backend)
    if backend is None:
        return None
    database = backend.database and _database(backend.database)
    every = sorted({namespace_of(cluster, name, cluster.jobs[name]) for name in backend.submits_to})
    teams = team_namespaces(cluster)
    return Plan(
        namespace=backend.namespace,
        database=database,
        job_namespaces=tuple(name for name in every if name not in teams),
        team_namespaces=tuple(name for name in every if name in teams),
        rights=tuple(_rights(cluster)),
        cluster_rights=tuple(_cluster_rights(cluster, backend, every)),
        allow_from=backend.allow_from,
        job_ranges=core.network.policies.ranges,
        identity=plan_identity(backend, cluster.scheduling.priority_classes),
        application=_application(cluster, backend, database, core.images.builds, core.parts),
    )


def plan_identity(backend: Backend, priorities: Mapping[str, int]) -> IdentityPlan:
    """Return the callers of ``backend``.

    Args:
        backend: The section.
        priorities: Values of PriorityClasses, by name.
    """
    identity = backend.identity
    return IdentityPlan(
        accounts_audience=AUDIENCE,
        issuer=identity.issuer,
        audience=identity.audience,
        groups_claim=identity.groups_claim,
        admins=identity.admins,
        rights=tuple(
            CallerRightPlan(
                group=group,
                priority=right.priority,
                highest_value=_NO_CLASS if right.priority is None else priorities[right.priority],
                kinds=right.kinds,
                templates=backend.submits_to if right.templates is None else right.templates,
            )
            for group, right in identity.rights.items()
        ),
        priorities=priorities,
    )


def _database(database: Database) -> DatabasePlan:
    service = database.service
    capacity_plan = _serverless(database) if service == "aurora-serverless" else _instance(database)
    small = service == "aurora-serverless" and database.min_capacity_acu < rds.INSIGHTS_MIN_ACU
    return DatabasePlan(
        engine=cast("Literal['aurora-postgresql', 'postgres']", rds.ENGINES[service]),
        version=database.version,
        # CloudFormation sends a version when the template's changes, and RDS refuses one that is
        # older than its own upgrades: a minor that the file names must stay.
        minor_upgrades=database.version == rds.major_of(database.version),
        parameter_group_family=rds.parameter_group_family(service, database.version),
        parameters={"rds.force_ssl": "1"},
        capacity=capacity_plan,
        name=DATABASE,
        port=rds.POSTGRES_PORT,
        login=database.login,
        backup_retention_days=database.backup_retention_days,
        insights_days=None if small else rds.FREE_INSIGHTS_DAYS,
        log_types=rds.LOG_TYPES[service],
        log_retention_days=retention.LOG_DAYS,
    )


def _serverless(database: Database) -> ServerlessCapacity:
    return ServerlessCapacity(
        instance_class=rds.SERVERLESS_CLASS,
        instances=2 if database.multi_az else 1,
        min_acu=database.min_capacity_acu,
        max_acu=database.max_capacity_acu,
        pause_seconds=rds.PAUSE_SECONDS if database.min_capacity_acu == 0 else None,
    )


def _instance(database: Database) -> InstanceCapacity:
    _, most = rds.STORAGE_GIB
    return InstanceCapacity(
        instance_class=database.instance_type,
        multi_az=database.multi_az,
        storage_gib=database.storage_gib,
        max_storage_gib=min(database.storage_gib * _STORAGE_GROWTH, most),
    )


def _rights(cluster: config.Cluster) -> Iterator[RightPlan]:
    """Yield the rights of `ultrascale.jobs` in a namespace of jobs.

    The Service of a job is applied, which takes `patch`. It looks for kinds that only services
    have, and never makes them. A role that may make pods in a namespace may let them mount its
    secrets and run under its service accounts: withholding these rights would protect nothing.

    Source: https://kubernetes.io/docs/concepts/security/rbac-good-practices/#workload-creation
    """
    yield RightPlan(group="batch", resources=("jobs",), verbs=_MAKE)
    for controller in controllers_of_jobs(cluster):
        if controller.resource is not None:
            group, resource = controller.resource
            yield RightPlan(group=group, resources=(resource,), verbs=_MAKE)
    for kinds in queue_kinds_of(cluster):
        if kinds.local is not None:
            yield RightPlan(group=kinds.group, resources=(kinds.local,), verbs=("get",))
        # They show why a job waits. A scheduler's change with each of its rounds.
        verbs = ("list", "watch") if kinds.local is None else ("list",)
        yield RightPlan(group=kinds.group, resources=(kinds.entries,), verbs=verbs)
    services = ("create", "get", "list", "patch", "delete")
    yield RightPlan(group="", resources=("services",), verbs=services)
    yield RightPlan(group="", resources=("pods",), verbs=("get", "list", "watch"))
    yield RightPlan(group="", resources=("pods/log",), verbs=("get",))
    yield RightPlan(group="", resources=("events",), verbs=("list",))
    yield RightPlan(
        group="", resources=("persistentvolumeclaims", "serviceaccounts"), verbs=("get",)
    )
    yield RightPlan(group="apps", resources=("deployments",), verbs=("list",))
    yield RightPlan(group="policy", resources=("poddisruptionbudgets",), verbs=("list",))
    yield RightPlan(group="networking.k8s.io", resources=("networkpolicies",), verbs=("list",))
    for group, resource in kinds_of_services(cluster):
        yield RightPlan(group=group, resources=(resource,), verbs=("list",))


def _cluster_rights(
    cluster: config.Cluster, backend: Backend, namespaces: Sequence[str]
) -> Iterator[RightPlan]:
    """Yield the rights in the cluster as a whole: on callers, and on a job's needs.

    Nothing is stored. A TokenReview names the owner of a caller's token, and takes no other right.

    Source:
    https://kubernetes.io/docs/reference/kubernetes-api/authentication-resources/token-review-v1/
    """
    yield RightPlan(group="authentication.k8s.io", resources=("tokenreviews",), verbs=("create",))
    yield RightPlan(group="", resources=("namespaces",), verbs=("get",), names=tuple(namespaces))
    yield RightPlan(
        group="scheduling.k8s.io", resources=("priorityclasses",), verbs=("get", "list")
    )
    for kinds in queue_kinds_of(cluster):
        verbs = ("get", "list") if kinds.local is None else ("get",)
        yield RightPlan(group=kinds.group, resources=(kinds.queues,), verbs=verbs)
    ordered = any(cluster.jobs[name].prefer for name in backend.submits_to)
    if ordered and not engine_of(cluster.scheduling).quotas:
        # To choose the tier of a job of several pods, by the nodes that are free.
        yield RightPlan(group="", resources=("nodes", "pods"), verbs=("list",))


def _application(
    cluster: config.Cluster,
    backend: Backend,
    database: DatabasePlan | None,
    builds: Sequence[ImageBuildPlan],
    parts: Sequence[PlannedPart],
) -> ApplicationPlan | None:
    if backend.image is None:
        return None
    files = {CLUSTER_FILE: config.text_of(cluster)}
    for part in parts:
        files |= part.files
    if own := [(build.dockerfile, build.own) for build in builds if build.own is not None]:
        files[own_images.RECORD] = own_images.record_text(own)
    environment = {
        "ULTRASCALE_CLUSTER_FILE": f"{_FILES}/{CLUSTER_FILE}",
        "AWS_ACCOUNT_ID": names.ACCOUNT_ID,
        "PORT": str(_PORT),
    }
    if backend.rules is not None:
        files[_RULES_FILE] = yaml_writer.dump(backend.rules)
        environment["ULTRASCALE_RULES_FILE"] = f"{_FILES}/{_RULES_FILE}"
    if database is not None:
        environment |= _database_environment(cluster.region, database)
    return ApplicationPlan(
        image=_image(cluster, backend.image, builds),
        replicas=_REPLICAS,
        port=_PORT,
        folder=_FILES,
        files=files,
        environment=environment,
        grace_period_seconds=_GRACE_SECONDS,
    )


def _database_environment(region: str, database: DatabasePlan) -> dict[str, str]:
    login = (
        {"DATABASE_SECRET_ARN": DATABASE_SECRET_ARN}
        if database.login == "secret"
        else {"DATABASE_IAM_REGION": region}
    )
    return {
        "DATABASE_HOST": DATABASE_HOST,
        "DATABASE_PORT": str(database.port),
        "DATABASE_NAME": database.name,
        "DATABASE_USER": database.name,
        **login,
    }


def _image(cluster: config.Cluster, image: str, builds: Sequence[ImageBuildPlan]) -> str:
    """Return the whole reference of ``image``; for the cluster's own, with the account open."""
    if not is_own_image(image):
        return image
    # In a digest, the first colon is within it.
    repository, _, tag = image.partition(":")
    built = {build.repository: build.tag for build in builds}
    return names.image_uri(
        account=names.ACCOUNT_ID,
        region=cluster.region,
        cluster=cluster.name,
        repository=repository,
        tag=tag or built[repository],
    )
