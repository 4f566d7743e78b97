"""Volcano's eleven kinds as compact CustomResourceDefinitions of our own.

They serve the same API as those of Volcano 1.15.1: the same groups, versions, names, printer
columns, defaults, enumerations and bounds. Three things differ. They keep every field they do not
name, they leave pod templates, volume claims and `status` to the kinds that own them, and they are
a tenth of the size, since each travels whole in a manifest.

Source: https://github.com/volcano-sh/volcano/tree/v1.15.1/config/crd
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal

import cdk8s
from constructs import Construct

from ultrascale.documents import Json
from ultrascale.frozen import Frozen
from ultrascale_k8s.objects import define_object
from ultrascale_k8s.volcano import job_schemas, scheduling_schemas
from ultrascale_k8s.volcano.schema import Schema

Column = tuple[str, str, str] | tuple[str, str, str, int]

_AGE: Column = ("AGE", "date", ".metadata.creationTimestamp")
_QUEUE: Column = ("QUEUE", "string", ".spec.queue", 1)

# Deleting a CRD deletes every object of its kind, so neither Helm nor Argo CD may do it.
KEEP_ON_DELETE: Mapping[str, str] = MappingProxyType(
    {
        "helm.sh/resource-policy": "keep",
        "argocd.argoproj.io/sync-options": "Prune=false,Delete=false",
    }
)


class _Kind(Frozen):
    """Properties in which the CustomResourceDefinitions differ."""

    group: str  # API group, without ``.volcano.sh``
    version: str = "v1alpha1"  # The one version, both served and stored
    scope: Literal["Namespaced", "Cluster"] = "Namespaced"  # Whether objects live in a namespace
    schema: Callable[[], Schema]  # Makes the schema of an object's own fields
    plural: str = ""  # Resource name; the kind in lower case with an ``s`` where it is empty
    short_names: tuple[str, ...] = ()  # What kubectl takes instead
    has_status: bool = True  # Whether `status` is a subresource
    # What kubectl prints: name, type and path, then the priority where it is not 0.
    columns: tuple[Column, ...] = ()


def crd(kind: str) -> dict[str, Json]:
    """Return the CustomResourceDefinition of ``kind``, which is one of `KINDS`."""
    facts = _KINDS[kind]
    singular = kind.lower()
    plural = facts.plural or f"{singular}s"
    group = f"{facts.group}.volcano.sh"
    names: dict[str, Json] = {
        "kind": kind,
        "listKind": f"{kind}List",
        "plural": plural,
        "singular": singular,
    }
    if facts.short_names:
        names["shortNames"] = list(facts.short_names)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}", "annotations": dict(KEEP_ON_DELETE)},
        "spec": {
            "group": group,
            "names": names,
            "scope": facts.scope,
            "versions": [_version(facts)],
        },
    }


def _version(facts: _Kind) -> dict[str, Json]:
    version: dict[str, Json] = {
        "name": facts.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": facts.schema()},
    }
    if facts.has_status:
        version["subresources"] = {"status": {}}
    if facts.columns:
        version["additionalPrinterColumns"] = [_column(column) for column in facts.columns]
    return version


def _column(column: Column) -> dict[str, Json]:
    name, column_type, path, *priority = column
    printed: dict[str, Json] = {"name": name, "type": column_type, "jsonPath": path}
    if priority:
        printed["priority"] = priority[0]
    return printed


_KINDS: Mapping[str, _Kind] = MappingProxyType(
    {
        "Job": _Kind(
            group="batch",
            schema=job_schemas.job,
            short_names=("vcjob", "vj"),
            columns=(
                ("STATUS", "string", ".status.state.phase"),
                ("minAvailable", "integer", ".status.minAvailable"),
                ("RUNNINGS", "integer", ".status.running"),
                _AGE,
                _QUEUE,
            ),
        ),
        "CronJob": _Kind(
            group="batch", schema=job_schemas.cron_job, short_names=("cronvcjob", "cronvj")
        ),
        "JobFlow": _Kind(
            group="flow",
            schema=job_schemas.job_flow,
            short_names=("jf",),
            columns=(
                ("Status", "string", ".status.state.phase"),
                ("Age", "date", ".metadata.creationTimestamp"),
            ),
        ),
        "JobTemplate": _Kind(group="flow", schema=job_schemas.job, short_names=("jt",)),
        "PodGroup": _Kind(
            group="scheduling",
            version="v1beta1",
            schema=scheduling_schemas.pod_group,
            short_names=("pg", "podgroup-v1beta1"),
            # The scheduler writes a PodGroup's status by an ordinary update, which a status
            # subresource would discard.
            has_status=False,
            columns=(
                ("STATUS", "string", ".status.phase"),
                ("minMember", "integer", ".spec.minMember"),
                ("RUNNINGS", "integer", ".status.running"),
                _AGE,
                _QUEUE,
            ),
        ),
        "Queue": _Kind(
            group="scheduling",
            version="v1beta1",
            scope="Cluster",
            schema=scheduling_schemas.queue,
            short_names=("q", "queue-v1beta1"),
            columns=(("PARENT", "string", ".spec.parent"),),
        ),
        "HyperNode": _Kind(
            group="topology",
            scope="Cluster",
            schema=scheduling_schemas.hyper_node,
            short_names=("hn",),
            columns=(
                ("Tier", "string", ".spec.tier"),
                ("TierName", "string", ".spec.tierName"),
                ("NodeCount", "integer", ".status.nodeCount"),
                ("Age", "date", ".metadata.creationTimestamp"),
            ),
        ),
        "Command": _Kind(group="bus", schema=scheduling_schemas.command, has_status=False),
        "Numatopology": _Kind(
            group="nodeinfo",
            scope="Cluster",
            schema=scheduling_schemas.numatopology,
            plural="numatopologies",
            short_names=("numatopo",),
            has_status=False,
        ),
        "NodeShard": _Kind(
            group="shard",
            scope="Cluster",
            schema=scheduling_schemas.node_shard,
            short_names=("nsh",),
            columns=(_AGE,),
        ),
        "ColocationConfiguration": _Kind(
            group="config", schema=scheduling_schemas.colocation_configuration
        ),
    }
)
KINDS: tuple[str, ...] = tuple(_KINDS)


class VolcanoCrdsChart(cdk8s.Chart):
    """Defines Volcano's CustomResourceDefinitions. Applied before everything else of Volcano."""

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id, disable_resource_name_hashes=True)
        for kind in KINDS:
            define_object(self, kind, crd(kind))
