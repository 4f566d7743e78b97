"""The cluster file as types and the rules that judge it: `load` reports all mistakes at once."""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ultrascale import yaml_writer
from ultrascale.config import (
    _texts,
    access_rules,
    job_pod_rules,
    job_rules,
    label_rules,
    network_rules,
    pool_rules,
    pool_warnings,
    purchase_rules,
    repair_rules,
    service_rules,
    storage_rules,
)
from ultrascale.config._base import Section
from ultrascale.config._document import Document, KeyPath, dump, named, parse_yaml
from ultrascale.config._document import read as read_yaml
from ultrascale.config._errors import Mistake, Mistakes, near, note, refuse
from ultrascale.config._job_document import JobReading, TranslatedJob, read_job, with_changes
from ultrascale.config._own_images import RECORD as EJECTED
from ultrascale.config._own_images import own_folders, read_own_images, refuse_ejected
from ultrascale.config._parts import Every, Names, Parts, Readable
from ultrascale.config._placeholders import placeholders
from ultrascale.config._reading import (
    Reading,
    check,
    in_order_of_keys,
    read_document,
    reading_of_cluster,
    remarks,
    warnings,
)
from ultrascale.config._rules import RECORD_FACTS, Rules, rule
from ultrascale.config._stated import Stated, StatedReading, read_stated, spelled
from ultrascale.config._values import Distinct, Email, WrongValueError, known_in_schema
from ultrascale.config.access import Access, AccessLevel, RoleArn
from ultrascale.config.cluster import Cluster, cluster_type, kinds_of_job
from ultrascale.config.facts import Fact, future_facts, recorded_facts
from ultrascale.config.identity import Identity, is_account_id
from ultrascale.config.images import CachedRegistry, Images, Packages, is_own_folder
from ultrascale.config.jobs import (
    LONGEST_JOB_NAME,
    BatchJob,
    CompileCache,
    Job,
    PreflightCheck,
    Resources,
    Restarts,
    RoleSpec,
    Security,
    Toleration,
    TopologyLayer,
    TrainingJob,
    TrainingKind,
    Volume,
)
from ultrascale.config.karpenter import Karpenter
from ultrascale.config.key_arn import KeyArn, misplaced_key
from ultrascale.config.kubernetes import Endpoint, Kubernetes, whole_internet
from ultrascale.config.label_rules import owner_of_domain
from ultrascale.config.network import (
    AgreedLimits,
    Network,
    PodBlocks,
    blocks,
    is_shared,
    ranges_are_sound,
)
from ultrascale.config.network_rules import subnets_are_sound
from ultrascale.config.pool_rules import count_is_sound, fixed_group_mistakes
from ultrascale.config.pools import Nodes, Pool, Provisioner, Repair, Role, has_efa, zones_of
from ultrascale.config.purchase import CapacityBlock, Odcr, OnDemand, Purchase, Spot, TrainingPlan
from ultrascale.config.releases import PLACES, Release, may_read, release_of
from ultrascale.config.roles import (
    ROLE_INDEX_VARIABLE,
    ROLE_VARIABLE,
    hosts_variable,
    in_role,
    role_as_job,
    role_mistakes,
)
from ultrascale.config.scheduling import Queue, Rendezvous, Scheduling
from ultrascale.config.schema import Kind as SchemaKind
from ultrascale.config.schema import file_name as schema_file_name
from ultrascale.config.schema import modeline, schema_text
from ultrascale.config.services import (
    MODEL_NAME_PATTERN,
    Autoscale,
    Replicas,
    ScalingMetric,
    Server,
    ServiceJob,
    server_of,
)
from ultrascale.config.serving import Serving
from ultrascale.config.storage import (
    STAND_IN_SUFFIX,
    Claim,
    DefaultClaim,
    Lustre,
    LustreS3,
    Storage,
    default_claims,
    folder,
)
from ultrascale.config.teams import Team, Teams
from ultrascale.config.vpc import Endpoints, Subnet, SubnetRoute, SubnetUse, Vpc
from ultrascale.core.table import all_parts

if TYPE_CHECKING:
    from ultrascale.config.job_values import (
        ContainerResources,
        JobTemplate,
        JobValues,
        JobValuesReading,
        NodeTier,
        ResourceAmounts,
        default_job_values,
        read_job_values,
    )

# An import of a module registers its rules.
_RULES = (
    _texts,
    access_rules,
    job_pod_rules,
    job_rules,
    label_rules,
    pool_rules,
    pool_warnings,
    network_rules,
    purchase_rules,
    repair_rules,
    storage_rules,
    service_rules,
)
# They read values of the chart of jobs, which `submit --values` alone has.
_OF_JOB_VALUES = frozenset(
    {
        "ContainerResources",
        "JobTemplate",
        "JobValues",
        "JobValuesReading",
        "NodeTier",
        "ResourceAmounts",
        "default_job_values",
        "read_job_values",
    }
)

__all__ = [
    "EJECTED",
    "LONGEST_JOB_NAME",
    "MODEL_NAME_PATTERN",
    "PLACES",
    "RECORD_FACTS",
    "ROLE_INDEX_VARIABLE",
    "ROLE_VARIABLE",
    "STAND_IN_SUFFIX",
    "Access",
    "AccessLevel",
    "AgreedLimits",
    "Autoscale",
    "BatchJob",
    "CachedRegistry",
    "CapacityBlock",
    "Claim",
    "Cluster",
    "CompileCache",
    "ContainerResources",
    "DefaultClaim",
    "Distinct",
    "Document",
    "Email",
    "Endpoint",
    "Endpoints",
    "Every",
    "Fact",
    "Identity",
    "Images",
    "Job",
    "JobReading",
    "JobTemplate",
    "JobValues",
    "JobValuesReading",
    "Karpenter",
    "KeyArn",
    "KeyPath",
    "Kubernetes",
    "Lustre",
    "LustreS3",
    "Mistake",
    "Mistakes",
    "Names",
    "Network",
    "NodeTier",
    "Nodes",
    "Odcr",
    "OnDemand",
    "Packages",
    "Parts",
    "PodBlocks",
    "Pool",
    "PreflightCheck",
    "Provisioner",
    "Purchase",
    "Queue",
    "Readable",
    "Reading",
    "Release",
    "Rendezvous",
    "Repair",
    "Replicas",
    "ResourceAmounts",
    "Resources",
    "Restarts",
    "Role",
    "RoleArn",
    "RoleSpec",
    "Rules",
    "ScalingMetric",
    "Scheduling",
    "SchemaKind",
    "Section",
    "Security",
    "Server",
    "ServiceJob",
    "Serving",
    "Spot",
    "Stated",
    "StatedReading",
    "Storage",
    "Subnet",
    "SubnetRoute",
    "SubnetUse",
    "Team",
    "Teams",
    "Toleration",
    "TopologyLayer",
    "TrainingJob",
    "TrainingKind",
    "TrainingPlan",
    "TranslatedJob",
    "Volume",
    "Vpc",
    "WrongValueError",
    "blocks",
    "check",
    "cluster_type",
    "count_is_sound",
    "default_claims",
    "default_job_values",
    "dump",
    "fixed_group_mistakes",
    "folder",
    "future_facts",
    "has_efa",
    "hosts_variable",
    "in_order_of_keys",
    "in_role",
    "is_account_id",
    "is_own_folder",
    "is_shared",
    "kinds_of_job",
    "known_in_schema",
    "load",
    "loads",
    "may_read",
    "misplaced_key",
    "modeline",
    "named",
    "near",
    "note",
    "own_folders",
    "owner_of_domain",
    "placeholders",
    "ranges_are_sound",
    "read",
    "read_job",
    "read_job_values",
    "read_stated",
    "reading_of",
    "reads",
    "recorded_facts",
    "refuse",
    "release_of",
    "remarks",
    "role_as_job",
    "role_mistakes",
    "rule",
    "schema_file_name",
    "schema_text",
    "server_of",
    "spelled",
    "subnets_are_sound",
    "text_of",
    "warnings",
    "whole_internet",
    "with_changes",
    "zones_of",
]


def read(path: Path) -> Reading:
    """Read the cluster file at ``path`` as far as it can be read, and the records beside it.

    Raises:
        ConfigError: The file cannot be read, or is no YAML mapping; the record of a part
            cannot be read; or a record of copies lies there, which nothing reads any more.
    """
    folder = path.parent
    refuse_ejected(folder)
    reading = read_document(read_yaml(path))
    own_images, mistakes = read_own_images(reading.document, folder)
    records = (part.read_record(folder) for part in all_parts())
    return replace(
        reading,
        mistakes=(*reading.mistakes, *mistakes),
        own_images=own_images,
        records=tuple(record for record in records if record is not None),
    )


def reading_of(cluster: Cluster) -> Reading:
    """Return the reading of a file that describes ``cluster``; its error lines name no file."""
    return reading_of_cluster(cluster, parse_yaml(dump(_stated_keys(cluster)), source="", own=True))


def text_of(cluster: Cluster) -> str:
    """Return the text of a file that describes ``cluster`` by the keys that its own file states."""
    return yaml_writer.dump(_stated_keys(cluster))


def _stated_keys(cluster: Cluster) -> dict[str, object]:
    return cluster.model_dump(mode="json", by_alias=True, exclude_unset=True)


def load(path: Path) -> Cluster:
    """Read and check the cluster file at ``path``.

    Raises:
        ConfigError: The file cannot be read, or has mistakes. It carries one line for each,
            ``file: key.path: what is wrong, got VALUE; what to do``.
    """
    return check(read(path))


def loads(text: str, *, source: str = "cluster file") -> Cluster:
    """Read and check the cluster file that ``text`` holds.

    Args:
        text: The file's content.
        source: Name of the file in error lines.

    Raises:
        ConfigError: As `load`.
    """
    return check(reads(text, source=source))


def reads(text: str, *, source: str) -> Reading:
    """Read the cluster file that ``text`` holds, as far as it can be read.

    Raises:
        ConfigError: The text is no YAML mapping.
    """
    return read_document(parse_yaml(text, source=source))


def __getattr__(name: str) -> object:
    """Return a name whose module is imported at its first use."""
    if name not in _OF_JOB_VALUES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.job_values"), name)
