"""The security posture of a whole cluster: every rule, over its templates and its manifests."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path

from tests.support import posture_iam as iam
from tests.support import posture_pods as pods
from tests.support import posture_templates as templates
from tests.support.assembly import Assembly
from tests.support.kubernetes_schemas import Document, named
from tests.support.posture_exceptions import (
    ADMINISTRATORS,
    CONTAINERS,
    LOST,
    MANAGED_POLICIES,
    PRIVILEGED_BUILDS,
    RIGHTS,
)
from tests.support.posture_secrets import text_findings, value_findings


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """Templates and objects of one cluster file, with the permissions that the file asks for.

    Attributes:
        templates: Templates by stack name.
        metadata: What the CDK says of each stack's constructs.
        documents: The objects of every chart.
        public_cidrs: Ranges that the file lets reach the API server.
        admins: Roles that the file makes administrators.
        accounts: Accounts that the file names.
    """

    templates: Mapping[str, Document]
    metadata: Mapping[str, Document]
    documents: list[Document]
    public_cidrs: tuple[str, ...]
    admins: tuple[str, ...]
    accounts: tuple[str, ...]


def read(assembly: Assembly) -> Cluster:
    """Return the cluster of a synthesized file."""
    prefix = f"{assembly.plan.name}-"
    files = (assembly.folder / "cdk.out").glob("*.metadata.json")
    metadata = {
        path.name.removesuffix(".metadata.json").removeprefix(prefix): json.loads(path.read_text())
        for path in files
    }
    return Cluster(
        templates=assembly.templates,
        metadata=metadata,
        documents=assembly.documents,
        public_cidrs=assembly.plan.control_plane.public_cidrs,
        admins=assembly.plan.control_plane.admins,
        accounts=tuple(filter(None, [assembly.plan.account])),
    )


def _each(rule: Callable[[Document], Iterable[str]]) -> Callable[[Cluster], Iterator[str]]:
    return lambda cluster: chain.from_iterable(
        (f"{stack}: {finding}" for finding in rule(template))
        for stack, template in cluster.templates.items()
    )


def _acknowledged(
    rule: Callable[[Document, Document], Iterable[str]],
) -> Callable[[Cluster], Iterator[str]]:
    return lambda cluster: chain.from_iterable(
        (f"{stack}: {finding}" for finding in rule(template, cluster.metadata.get(stack, {})))
        for stack, template in cluster.templates.items()
    )


def _managed(template: Document, metadata: Document) -> Iterator[str]:
    for finding in iam.managed_policy_findings(template, metadata):
        if not any(f":policy/{name}" in finding for name in MANAGED_POLICIES):
            yield finding


def _principals(cluster: Cluster) -> Iterator[str]:
    for template in cluster.templates.values():
        yield from iam.principal_findings(template, accounts=cluster.accounts)


def _administrators(cluster: Cluster) -> Iterator[str]:
    for template in cluster.templates.values():
        yield from iam.administrator_findings(
            template, admins=cluster.admins, appliers="|".join(ADMINISTRATORS)
        )


def _endpoints(cluster: Cluster) -> Iterator[str]:
    for template in cluster.templates.values():
        yield from templates.endpoint_findings(template, public_cidrs=cluster.public_cidrs)


def _retained(template: Document) -> Iterator[str]:
    return templates.retention_findings(template, lost=tuple(LOST))


def _builds(template: Document) -> Iterator[str]:
    return templates.build_findings(template, privileged=tuple(PRIVILEGED_BUILDS))


def _containers(cluster: Cluster) -> Iterator[str]:
    for owner, container, rule in pods.container_findings(cluster.documents):
        if rule not in CONTAINERS.get(container, {}):
            yield f"{owner}: container {container}: {rule}"


def _rights(cluster: Cluster) -> Iterator[str]:
    for role, granted in pods.right_findings(cluster.documents):
        if (role, granted) not in RIGHTS:
            yield f"{role}: grants {granted}"


_WITHOUT_DATA = frozenset({"apiVersion", "kind", "metadata"})


def _secrets(cluster: Cluster) -> Iterator[str]:
    for stack, template in cluster.templates.items():
        yield from value_findings(template, stack)
    for document in cluster.documents:
        yield from value_findings(document, named(document))
        if document["kind"] == "Secret" and document.keys() - _WITHOUT_DATA:
            yield f"{named(document)}: a Secret is written out"


def _documents(
    rule: Callable[[list[Document]], Iterable[str]],
) -> Callable[[Cluster], Iterable[str]]:
    return lambda cluster: rule(cluster.documents)


RULES: Mapping[str, Callable[[Cluster], Iterable[str]]] = {
    "wildcards": _acknowledged(iam.wildcard_findings),
    "managed policies": _acknowledged(_managed),
    "principals": _principals,
    "roles handed on": _each(iam.pass_role_findings),
    "administrators": _administrators,
    "encryption": _each(templates.encryption_findings),
    "transport": _each(templates.transport_findings),
    "ingress": _each(templates.ingress_findings),
    "endpoints": _endpoints,
    "instance metadata": _each(templates.metadata_findings),
    "retention": _each(_retained),
    "runtimes": _each(templates.runtime_findings),
    "repositories": _each(templates.image_findings),
    "builds": _each(_builds),
    "secrets": _secrets,
    "containers": _containers,
    "admission": _documents(pods.admission_findings),
    "namespaces": _documents(pods.namespace_findings),
    "exposure": _documents(pods.exposure_findings),
    "images": _documents(pods.image_findings),
    "tokens": _documents(pods.token_findings),
    "rights": _rights,
    "node classes": _documents(pods.node_class_findings),
    "storage classes": _documents(pods.storage_class_findings),
}


def needless(folder: Path) -> set[tuple[str, str]]:
    """Return where something is acknowledged that nothing there breaks, and what.

    Args:
        folder: An assembly that tests synthesized.
    """
    files = [*folder.glob("*.metadata.json"), *folder.glob("assembly-*/*.metadata.json")]
    acknowledged = {
        (path.removeprefix("/"), finding)
        for file in files
        for path, entries in json.loads(file.read_text()).items()
        for entry in entries
        if entry["type"] == "aws:cdk:acknowledged-rules"
        for finding in entry["data"]
        # The CDK's own validation is off in tests.
        if finding.startswith(("AwsSolutions", "ultrascale"))
    }
    report = json.loads((folder / "validation-report.json").read_text())
    held_back = {
        (found["acknowledgedAt"], found["acknowledgedId"])
        for plugin in report["pluginReports"]
        for found in plugin.get("suppressedViolations", ())
    }
    return acknowledged - held_back


def asset_findings(folder: Path) -> Iterator[str]:
    """Find credentials in the files that a deploy uploads beside the templates."""
    for asset in sorted(folder.glob("asset.*")):
        for file in sorted(asset.rglob("*")) if asset.is_dir() else []:
            if file.is_file():
                yield from (f"{file}: {what}" for what in _asset(file.read_bytes()))


@cache
def _asset(content: bytes) -> tuple[str, ...]:
    """Judge a file once: every cluster has most of them."""
    return tuple(text_findings(content.decode(errors="ignore")))
