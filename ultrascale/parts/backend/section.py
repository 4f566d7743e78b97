"""`backend`: the application that submits jobs, and its callers."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from ultrascale.catalog import registries
from ultrascale.config._base import Model, Section
from ultrascale.config._document import KeyPath, is_list, is_mapping
from ultrascale.config._errors import Mistake, Mistakes, near, note, refuse
from ultrascale.config._parts import Names, Readable
from ultrascale.config._rules import rule
from ultrascale.config._values import (
    Audience,
    Distinct,
    DnsLabel,
    WrongValueError,
    in_schema,
    matching,
)
from ultrascale.config.images import Images, is_own_folder
from ultrascale.config.jobs import ImageName, Job
from ultrascale.config.network import Network
from ultrascale.config.scheduling import Scheduling
from ultrascale.config.services import ServiceJob
from ultrascale.config.storage import Claim
from ultrascale.config.teams import Teams
from ultrascale.parts.backend.database import DATABASE_ADDRESSES, Database

# Namespaces of Kubernetes, of AWS's add-ons, and of this product's programs.
_TAKEN = frozenset(
    {
        "amazon-cloudwatch",
        "amazon-guardduty",
        "aws-hyperpod",
        "cert-manager",
        "default",
        "envoy-gateway-system",
        "hyperpod-observability",
        "jobset-system",
        "keda",
        "kubeflow",
        "kueue-system",
        "lws-system",
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
DEFAULT_JOB_KEYS = ("image", "script", "command", "args", "env", "nodes")
"""Keys of jobs that clients may state by these rules."""
_TRAINING = str(Job.model_fields["namespace"].default)

# Kubernetes' own names of callers: all service accounts, those of a namespace, and one of them.
# Source: https://kubernetes.io/docs/reference/access-authn-authz/authentication/#service-account-tokens
_SYSTEM = "system:"
_ALL_ACCOUNTS = "system:serviceaccounts"
_ACCOUNTS_OF = re.compile(
    r"system:serviceaccounts:([a-z0-9-]+)|system:serviceaccount:([a-z0-9-]+):[a-z0-9.-]+"
)
# AWS's pattern of the issuers of EKS clusters.
# Source: https://docs.aws.amazon.com/eks/latest/userguide/enable-iam-roles-for-service-accounts.html
_EKS_ISSUER = re.compile(r"oidc(-eks)?\.(eks\.)?[a-z0-9-]+\.(amazonaws\.com|api\.aws)(\.cn)?")
_LONGEST_ISSUER = 255
# Printable, without the marks of a user, a query or a fragment.
_ISSUER = r"^(?=.{1,255}$)[Hh][Tt][Tt][Pp][Ss]://(?![^/]*@)[!\x22$->@-~]+$"


def _https_url(value: str) -> str:
    try:
        url = urlsplit(value)
        port = url.port
    except ValueError:
        url, port = urlsplit(""), None
    plain = value.isascii() and value.isprintable() and " " not in value
    if url.scheme != "https" or not url.hostname or port == 0 or not plain:
        raise WrongValueError("not an https URL", "write it as https://login.example.com")
    if url.username is not None or url.query or url.fragment or "?" in value or "#" in value:
        raise WrongValueError(
            "an issuer with a user, a query or a fragment, which OpenID Connect forbids",
            "write the iss claim of its tokens",
        )
    if len(value) > _LONGEST_ISSUER:
        raise WrongValueError(f"longer than {_LONGEST_ISSUER} characters", "write a shorter URL")
    return value


CallerName = Annotated[
    str,
    matching(
        r"(?=.{1,200}$)[!-~]([ -~]*[!-~])?", "not the name of a group", "write printable ASCII"
    ),
]
"""A group of the issuer, or Kubernetes' name of service accounts."""


class CallerRight(Model):
    """Jobs that a group of callers may submit."""

    priority: str | None = None
    """Highest of `scheduling.priority_classes` that its jobs may have.

    Default: jobs of priority 0 or less, as those without a class are.
    """

    kinds: Distinct[Literal["training", "batch"]] = ("training", "batch")
    """Kinds of job. Default: both."""

    templates: Distinct[str] | None = None
    """Some of `submits_to`. Default: all of them."""


class CallerIdentity(Section):
    """Callers of the backend, and the rights of each."""

    issuer: Annotated[str, AfterValidator(_https_url), in_schema(pattern=_ISSUER)] | None = None
    """OpenID Connect issuer whose tokens the backend takes beside those of service accounts.

    Default: service accounts of the cluster alone.
    """

    audience: Audience = "ultrascale-backend"
    """Audience that tokens of `issuer` must have: your client's id there."""

    groups_claim: Annotated[
        str, matching(r"[!-~]{1,100}", "not the name of a claim", "write it as groups")
    ] = "groups"
    """Claim of tokens of `issuer` that holds their user's groups."""

    admins: Distinct[CallerName] = ()
    """Groups, or service accounts, that may submit everything, and see and cancel jobs of all.

    Default: none.
    """

    rights: Mapping[CallerName, CallerRight] = Field(default_factory=dict[str, CallerRight])
    """Jobs that each group may submit. A group of `issuer` by its name, the service accounts of a
    namespace as `system:serviceaccounts:NAMESPACE`, one as `system:serviceaccount:NAMESPACE:NAME`.

    Default: nobody but `admins` may submit.
    """


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

    identity: CallerIdentity = Field(default_factory=CallerIdentity)
    """Callers of the application. It takes tokens of the cluster's service accounts always."""

    @property
    def has_controllers(self) -> bool:
        """Whether its own Deployment runs, on the system nodes."""
        return self.image is not None

    @property
    def subnet_addresses(self) -> Mapping[str, int]:
        """Addresses of its database, if it has one."""
        return {} if self.database is None else {"the database": DATABASE_ADDRESSES}


class FileKeys(Section):
    """The keys of the file that belong to this part."""

    backend: Backend | None = None
    """The application that submits jobs. Default: not installed."""


@rule
def backend_has_jobs(backend: Backend) -> Mistakes:
    if not backend.submits_to:
        wrong = "the backend can submit no job"
        yield refuse("submits_to", wrong, "name templates of jobs", got="")


@rule
def backend_jobs_exist(
    backend: Backend,
    names: Names[Job],
    services: Readable[ServiceJob],
    jobs: Readable[Job],
) -> Mistakes:
    unending = {str(placed.at[-1]) for placed in services.placed}
    personal = {str(placed.at[-1]) for placed in jobs.placed if placed.item.is_personal}
    for number, name in enumerate(backend.submits_to):
        if name not in names:
            yield refuse(f"submits_to.{number}", "not one of jobs", near(name, names))
        elif name in unending:
            wrong = "a service, which has no end to wait for"
            yield refuse(f"submits_to.{number}", wrong, "name templates of jobs that end")
        elif name in personal:
            wrong = "a person's pod, which applications may not start"
            yield refuse(f"submits_to.{number}", wrong, "name templates of jobs that end")


@rule
def backend_namespace_is_free(
    backend: Backend,
    governance: Teams | None,
    jobs: Readable[Job],
    claims: Readable[Claim],
) -> Mistakes:
    """Yield a namespace where others may make pods: they could use the backend's account."""
    namespace = backend.namespace
    taken = namespaces_of_jobs(jobs, governance) | {claim.namespace for claim in claims}
    if namespace in taken:
        wrong = "jobs run in this namespace and could take the backend's permissions"
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
def issuer_is_not_the_clusters(identity: CallerIdentity) -> Mistakes:
    """Yield an issuer of EKS: `TokenReview` judges its tokens, and knows of deleted pods."""
    if identity.issuer is None:
        for key in ("audience", "groups_claim"):
            if key in identity.model_fields_set:
                yield refuse(key, "no use without issuer", "add issuer, or leave it out")
    elif _EKS_ISSUER.fullmatch(urlsplit(identity.issuer).hostname or ""):
        wrong = "service accounts of an EKS cluster need no issuer"
        yield refuse("issuer", wrong, "leave it out")


@rule
def callers_can_exist(identity: CallerIdentity, backend: Backend) -> Mistakes:
    """Yield names that no caller has, and service accounts whose pods do not reach the backend."""
    for at, name in _caller_names(identity):
        if not name.startswith(_SYSTEM):
            if identity.issuer is None:
                wrong = "a group of an issuer, and issuer is missing"
                todo = "add issuer, or write system:serviceaccounts:NAMESPACE"
                yield Mistake(at, wrong, todo, repr(name))
            elif name.startswith(f"{identity.issuer}#"):
                wrong = "a single user of the issuer: only groups have rights"
                yield Mistake(at, wrong, "name a group", repr(name))
            continue
        namespace = accounts_in(name)
        if namespace is None and name != _ALL_ACCOUNTS:
            todo = "write system:serviceaccounts:NAMESPACE or system:serviceaccount:NAMESPACE:NAME"
            yield Mistake(at, "not a name of service accounts", todo, repr(name))
        elif namespace not in (None, backend.namespace, *backend.allow_from):
            wrong = "service accounts of a namespace whose pods may not reach the backend"
            todo = f"add {namespace} to backend.allow_from"
            yield Mistake(at, wrong, todo, repr(name))


@rule
def admins_are_few(
    identity: CallerIdentity, jobs: Readable[Job], governance: Teams | None
) -> Mistakes:
    """Yield administrators that whoever makes a pod for a job can become."""
    namespaces = namespaces_of_jobs(jobs, governance)
    for number, name in enumerate(identity.admins):
        if name == _ALL_ACCOUNTS:
            wrong = "this makes every pod of the cluster an administrator"
            todo = "write system:serviceaccount:NAMESPACE:NAME"
            yield refuse(f"admins.{number}", wrong, todo)
        elif accounts_in(name) in namespaces:
            wrong = "jobs in this account's namespace could cancel everybody's jobs"
            yield refuse(f"admins.{number}", wrong, "name another namespace's account")


@rule
def right_has_a_class(right: CallerRight, scheduling: Scheduling) -> Mistakes:
    if right.priority is not None and right.priority not in scheduling.priority_classes:
        todo = near(right.priority, scheduling.priority_classes)
        yield refuse("priority", "not one of scheduling.priority_classes", todo)


@rule
def right_is_to_something(
    right: CallerRight, backend: Backend, jobs: Readable[Job], names: Names[Job]
) -> Mistakes:
    for key in ("kinds", "templates"):
        if getattr(right, key) == ():
            yield refuse(key, "empty, so no rights", f"name {key}, or leave {key} out", got="")
            return
    for number, name in enumerate(right.templates or ()):
        if name not in backend.submits_to:
            todo = near(name, backend.submits_to)
            yield refuse(f"templates.{number}", "not one of submits_to", todo)
    wanted = backend.submits_to if right.templates is None else right.templates
    kinds = {str(placed.at[-1]): placed.item.kind_name() for placed in jobs.placed}
    known = [name for name in wanted if name in backend.submits_to and name in names]
    if known and all(kinds.get(name, right.kinds[0]) not in right.kinds for name in known):
        wrong = f"no template of these kinds among {', '.join(known)}"
        yield refuse("kinds", wrong, "add the kind of a template")


def accounts_in(name: str) -> str | None:
    """Return the namespace of the service accounts that a caller's name means; None for others."""
    match = _ACCOUNTS_OF.fullmatch(name)
    return (match[1] or match[2]) if match is not None else None


def namespaces_of_jobs(jobs: Readable[Job], governance: Teams | None) -> frozenset[str]:
    """Return the namespaces that jobs run in."""
    teams = governance.names if governance else ()
    of_teams = (f"hyperpod-ns-{name}" for name in teams)
    return frozenset({_TRAINING, *(job.namespace for job in jobs), *of_teams})


def _caller_names(identity: CallerIdentity) -> Iterator[tuple[KeyPath, str]]:
    """Yield every caller's name in the section, each with its place."""
    yield from ((("admins", number), name) for number, name in enumerate(identity.admins))
    yield from ((("rights", name), name) for name in identity.rights)


@rule
def backend_image_is_known(backend: Backend, images: Images) -> Mistakes:
    if backend.image is None:
        return
    reference = registries.parse_reference(backend.image)
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
        and (build := images.builds.get(repository, repository)) != _DOCKERFILE
        and not is_own_folder(build)
    ):
        todo = f"add the :TAG of a pushed image, or images.builds.{repository}: backend"
        yield refuse("image", "no tag, and the backend is not built for this repository", todo)


@rule
def application_has_a_database(backend: Backend) -> Mistakes:
    if backend.image is not None and backend.database is None:
        wrong = "the application needs a database for its requests"
        yield refuse("image", wrong, "add database, or deploy the application elsewhere")


@rule
def rules_have_a_reader(backend: Backend) -> Mistakes:
    if backend.rules is not None and backend.image is None:
        wrong = "no image reads these rules"
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
            wrong = f"missing, and the rules of the image also submit {', '.join(missing)}"
            yield refuse("rules", wrong, "add rules, or name these jobs in submits_to", got="")
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


@rule(severity="warning")
def nobody_may_submit(backend: Backend) -> Mistakes:
    identity = backend.identity
    if backend.image is None:
        return
    if not identity.rights and not identity.admins:
        text = "missing, so every caller is refused; name groups in rights, and admins"
        yield note("identity", text)
    elif not identity.admins:
        text = (
            "empty, so nobody can cancel the job of somebody who is away, or see jobs that were "
            "recorded before they had owners; name a group"
        )
        yield note("identity.admins", text)


@rule(severity="warning")
def jobs_submit_jobs(backend: Backend, jobs: Readable[Job], governance: Teams | None) -> Mistakes:
    """Warn of a `system:` right by which the pods of jobs may submit jobs too."""
    namespaces = namespaces_of_jobs(jobs, governance)
    for name in backend.identity.rights:
        if accounts_in(name) in (None, *namespaces) and name.startswith("system:"):
            text = f"{name}: pods of jobs may submit jobs too; name accounts that no job runs as"
            yield note("identity.rights", text)


@rule
def database_has_two_zones(network: Network, backend: Backend) -> Mistakes:
    zones = network.zones_for(accelerated=False)
    if network.vpc is not None and backend.database is not None and len(zones) == 1:
        wrong = f"the database needs node subnets in two zones, not only {zones[0]}"
        todo = "add use: nodes to a subnet in another zone"
        yield refuse("subnets", wrong, todo, got="")
