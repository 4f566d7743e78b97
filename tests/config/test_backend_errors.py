"""Mistakes in the backend's section."""

from typing import Any

import pytest

from tests.support.config_documents import mistakes_in
from tests.support.pools import make_document

TEAMS = {"task_governance": {"teams": [{"name": "research", "fair_share_weight": 40}]}}
JOBS: dict[str, Any] = {"tune": {"node_selector": {"node-type": "train"}}}
DATABASE = {"version": "17"}


def backend(*, document: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """Return a cluster file with a valid backend in which ``changes`` replace keys."""
    valid = {"database": DATABASE, "submits_to": ["tune"]}
    merged = {key: value for key, value in (valid | changes).items() if value is not None}
    return make_document(**{"jobs": JOBS, "backend": merged} | (document or {}))


def database(**changes: Any) -> dict[str, Any]:
    return backend(database=DATABASE | changes)


def identity(**keys: Any) -> dict[str, Any]:
    return backend(identity=keys)


ISSUER = "https://login.example.com"
OWN = "system:serviceaccounts:backend"
IMAGES = {"images": {"repositories": ["backend", "serving"]}}
RULES = {"job_keys": [], "rules": [{"name": "all", "types": ["tune"], "template": "tune"}]}
TAKEN = "any of which could take the backend's permissions"
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "nothing to submit": (
        backend(submits_to=None),
        "backend.submits_to: a backend that may launch nothing; name templates of jobs",
    ),
    "a service among the jobs": (
        backend(
            document={"jobs": JOBS | {"chat": {"kind": "service"}}}, submits_to=["tune", "chat"]
        ),
        "backend.submits_to[1]: a service, which has no end to wait for, got 'chat'; "
        "name templates of jobs that end",
    ),
    "a person's pod among the jobs": (
        backend(document={"jobs": JOBS | {"notes": {"kind": "dev"}}}, submits_to=["tune", "notes"]),
        "backend.submits_to[1]: a person's pod, which applications may not start, got 'notes'; "
        "name templates of jobs that end",
    ),
    "a job that is not there": (
        backend(submits_to=["tunes"]),
        "backend.submits_to[0]: not one of jobs, got 'tunes'; did you mean tune?",
    ),
    "a job twice": (
        backend(submits_to=["tune", "tune"]),
        "backend.submits_to[1]: stands in the list twice, got 'tune'; keep one",
    ),
    "the namespace of jobs": (
        backend(namespace="training"),
        f"backend.namespace: a namespace of jobs, {TAKEN}, got 'training'; choose another",
    ),
    "the namespace of a component": (
        backend(namespace="kube-public"),
        "backend.namespace: a namespace of the cluster's own components, got 'kube-public'; "
        "choose another",
    ),
    "Volcano's namespace": (
        backend(namespace="volcano-system"),
        "backend.namespace: a namespace of the cluster's own components, got 'volcano-system'; "
        "choose another",
    ),
    "its own namespace as a caller": (
        backend(allow_from=["web", "backend"]),
        "backend.allow_from[1]: the backend's own namespace, whose pods may reach it anyway, "
        "got 'backend'; leave it out",
    ),
    "an image of no repository": (
        backend(document=IMAGES, image="bakend:1"),
        "backend.image: not one of images.repositories, got 'bakend:1'; did you mean backend?; "
        "for another registry write its host too, as docker.io/…",
    ),
    "an image that nobody builds": (
        backend(document=IMAGES, image="serving"),
        "backend.image: no tag, and the backend is not built for that repository, got 'serving'; "
        "add :TAG of an image that you have pushed, or images.builds.serving: backend",
    ),
    "an application without a database": (
        backend(database=None, image="docker.io/acme/backend:1"),
        "backend.image: an application without the database that it records requests in, "
        "got 'docker.io/acme/backend:1'; add database, or deploy it by other means",
    ),
    "rules that nothing reads": (
        backend(rules={"rules": []}),
        "backend.rules: rules without an image that reads them; add image, or leave them out",
    ),
    "no such version": (
        database(version="12"),
        "backend.database.version: not a version of Aurora PostgreSQL, got '12'; use 16, 17, 18",
    ),
    "a version of RDS that Aurora skips": (
        database(version="17.8"),
        "backend.database.version: not a version of Aurora PostgreSQL, got '17.8'; "
        "use 17.4, 17.5, 17.6, 17.7, 17.9, 17.10, 17.11",
    ),
    "more capacity at least than at most": (
        database(min_capacity_acu=8),
        "backend.database.min_capacity_acu: a minimum of 8 above the maximum of 4; "
        "lower the one or raise the other",
    ),
    "less capacity at most than at least": (
        database(max_capacity_acu=1, min_capacity_acu=2.5),
        "backend.database.min_capacity_acu: a minimum of 2.5 above the maximum of 1; "
        "lower the one or raise the other",
    ),
    "half a step of capacity": (
        database(min_capacity_acu=0.75),
        "backend.database.min_capacity_acu: not a capacity of Aurora Serverless, got 0.75; "
        "write 0 to 256 in steps of 0.5",
    ),
    "more capacity than there is": (
        database(max_capacity_acu=300),
        "backend.database.max_capacity_acu: not a capacity of Aurora Serverless, got 300; "
        "write 1 to 256 in steps of 0.5",
    ),
    "a capacity for an instance": (
        database(service="rds", max_capacity_acu=8),
        "backend.database.max_capacity_acu: a setting of service: aurora-serverless, got 8; "
        "leave it out, or use service: aurora-serverless",
    ),
    "an instance for Aurora Serverless": (
        database(instance_type="db.m7g.large"),
        "backend.database.instance_type: a setting of service: rds, got 'db.m7g.large'; "
        "leave it out, or use service: rds",
    ),
    "no such instance class": (
        database(service="rds", instance_type="m7g.large"),
        "backend.database.instance_type: not an instance class of PostgreSQL on RDS, "
        "got 'm7g.large'; did you mean db.m7g.large?",
    ),
    "too little storage": (
        database(service="rds", storage_gib=5),
        "backend.database.storage_gib: not a size of gp3 storage, got 5; write 20 to 59578",
    ),
    "storage that cannot grow": (
        database(service="rds", storage_gib=65_536),
        "backend.database.storage_gib: too near to the 65536 GiB of gp3 storage for RDS to let it "
        "grow by itself, got 65536; write at most 59578",
    ),
    "no backups": (
        database(backup_retention_days=0),
        "backend.database.backup_retention_days: out of range, got 0; write 1 to 35",
    ),
    "no such login": (
        database(login="password"),
        "backend.database.login: unknown value, got 'password'; write secret or iam",
    ),
    "rules of the image for templates that it may not submit": (
        backend(document=IMAGES, image="backend"),
        "backend.rules: missing, and those in the image submit development, production, research "
        "too; add rules, or name all of that in submits_to",
    ),
    "a rule for a template that it may not submit": (
        backend(document=IMAGES, image="backend", rules={"rules": [{"template": "tunes"}]}),
        "backend.rules.rules[0].template: not one of submits_to, got 'tunes'; did you mean tune?",
    ),
    "rules that are none": (
        backend(document=IMAGES, image="backend", rules={"production": "tune"}),
        "backend.rules.rules: no rules; add them, as docs/backend.md shows",
    ),
    "an issuer that anybody on the way can be": (
        identity(issuer="http://login.example.com"),
        "backend.identity.issuer: not an https URL, got 'http://login.example.com'; "
        "write it as https://login.example.com",
    ),
    "an issuer with a query": (
        identity(issuer="https://login.example.com/?tenant=1"),
        "backend.identity.issuer: an issuer with a user, a query or a fragment, which OpenID "
        "Connect forbids, got 'https://login.example.com/?tenant=1'; write the URL alone, as its "
        "tokens have it in iss",
    ),
    "the issuer of the cluster": (
        identity(issuer="https://oidc.eks.us-west-2.amazonaws.com/id/0123456789ABCDEF"),
        "backend.identity.issuer: the issuer of an EKS cluster, whose service accounts need none, "
        "got 'https://oidc.eks.us-west-2.amazonaws.com/id/0123456789ABCDEF'; leave it out",
    ),
    "an audience of no issuer": (
        identity(audience="jobs"),
        "backend.identity.audience: of an issuer, and there is none, got 'jobs'; "
        "add issuer, or leave it out",
    ),
    "a group of no issuer": (
        identity(rights={"research.ml": {}}),
        "backend.identity.rights.research.ml: a group of an issuer, and there is none, "
        "got 'research.ml'; add issuer, or write system:serviceaccounts:NAMESPACE",
    ),
    "a user of the issuer": (
        identity(issuer=ISSUER, admins=[f"{ISSUER}#ada"]),
        "backend.identity.admins[0]: one user of the issuer, which has no rights of its own, "
        f"got '{ISSUER}#ada'; name a group",
    ),
    "a group that no service account has": (
        identity(admins=["system:masters"]),
        "backend.identity.admins[0]: not a name of service accounts, got 'system:masters'; "
        "write system:serviceaccounts:NAMESPACE or system:serviceaccount:NAMESPACE:NAME",
    ),
    "callers that the network keeps out": (
        identity(rights={"system:serviceaccount:web:web": {}}),
        "backend.identity.rights.system:serviceaccount:web:web: service accounts of a namespace "
        "whose pods may not reach the backend, got 'system:serviceaccount:web:web'; "
        "add web to backend.allow_from",
    ),
    "every pod as an administrator": (
        identity(admins=["system:serviceaccounts"]),
        "backend.identity.admins[0]: every pod of the cluster as an administrator, "
        "got 'system:serviceaccounts'; write system:serviceaccount:NAMESPACE:NAME",
    ),
    "the pods of jobs as administrators": (
        backend(allow_from=["training"], identity={"admins": ["system:serviceaccounts:training"]}),
        "backend.identity.admins[0]: an account of a namespace of jobs, any of which could cancel "
        "those of all, got 'system:serviceaccounts:training'; name one of another namespace",
    ),
    "a class that is not there": (
        identity(rights={OWN: {"priority": "hihg"}}),
        f"backend.identity.rights.{OWN}.priority: not one of scheduling.priority_classes, "
        "got 'hihg'; did you mean high?",
    ),
    "a kind that the backend does not submit": (
        identity(rights={OWN: {"kinds": ["service"]}}),
        f"backend.identity.rights.{OWN}.kinds[0]: unknown value, got 'service'; "
        "write training or batch",
    ),
    "kinds of no template": (
        identity(rights={OWN: {"kinds": ["batch"]}}),
        f"backend.identity.rights.{OWN}.kinds: no template of these kinds among tune, "
        "got [batch]; add the kind of one of them",
    ),
    "a right to nothing": (
        identity(rights={OWN: {"templates": []}}),
        f"backend.identity.rights.{OWN}.templates: empty, so a right to nothing; "
        "name some, or leave it out",
    ),
    "a template that it may not submit": (
        identity(rights={OWN: {"templates": ["tunes"]}}),
        f"backend.identity.rights.{OWN}.templates[0]: not one of submits_to, got 'tunes'; "
        "did you mean tune?",
    ),
    "another engine": (
        database(engine="mysql"),
        "backend.database.engine: unknown value, got 'mysql'; write postgres",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_mistake_is_named_with_its_key_and_what_to_do(case: str) -> None:
    document, line = BAD[case]

    assert mistakes_in(document) == [line]


def test_a_teams_namespace_is_not_the_backends() -> None:
    """Its own jobs could run under the backend's account there."""
    document = backend(document={"hyperpod": TEAMS}, namespace="hyperpod-ns-research")

    found = [line for line in mistakes_in(document) if line.startswith("backend.")]

    assert found == [
        f"backend.namespace: a namespace of jobs, {TAKEN}, got 'hyperpod-ns-research'; "
        "choose another"
    ]


def test_every_mistake_is_named_at_once() -> None:
    document = backend(
        submits_to=["tunes"],
        namespace="kube-system",
        database={"version": "12", "service": "rds", "instance_type": "db.x.tiny"},
    )

    assert len(mistakes_in(document)) == 4


@pytest.mark.parametrize(
    "changes",
    [
        {"image": "backend", "rules": RULES},
        {"image": "serving:1.2.3"},
        {"image": "serving:1.2.3", "rules": {"of": "its own"}},
        {"image": "backend@sha256:" + 64 * "0"},
        {"image": "123456789012.dkr.ecr.us-west-2.amazonaws.com/acme/backend:1"},
        {"database": DATABASE | {"service": "rds", "login": "iam", "multi_az": False}},
        {"database": DATABASE | {"min_capacity_acu": 0, "max_capacity_acu": 1}},
        {"database": DATABASE | {"version": "17.9"}},
        {"database": None},
        {"identity": {"issuer": ISSUER, "admins": ["platform"], "rights": {"all users": {}}}},
        {"identity": {"issuer": f"{ISSUER}:8443/realms/x/", "audience": "0a-1b", "admins": ["a"]}},
        {"allow_from": ["web"], "identity": {"rights": {"system:serviceaccount:web:a.b": {}}}},
        {
            "identity": {
                "admins": [OWN],
                "rights": {OWN: {"priority": "high", "kinds": ["training"]}},
            }
        },
    ],
)
def test_what_a_backend_may_be(changes: dict[str, Any]) -> None:
    assert mistakes_in(backend(document=IMAGES, **changes)) == []
