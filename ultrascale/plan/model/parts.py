"""Plans of parts, as the core sees them: its questions and a part's answers."""

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import ClassVar, Literal

from ultrascale.catalog.endpoints import Feature
from ultrascale.catalog.quotas import QuotaKey
from ultrascale.frozen import Frozen
from ultrascale.plan.model.addons import AddonPlan
from ultrascale.plan.model.decisions import Decision
from ultrascale.plan.model.images import CopiesPlan, GitChartPlan
from ultrascale.plan.model.jobs import TeamPlan
from ultrascale.plan.model.metrics import AlarmTopicPlan
from ultrascale.plan.model.placement import PlacementPlan
from ultrascale.plan.model.platform import NamespacePlan
from ultrascale.plan.model.pool import IsolationPlan

KeyUse = Literal["volumes", "secrets", "storage", "registry", "logs"]
"""Data that a KMS key encrypts: volumes of nodes and claims; data of the Kubernetes API; file
systems, buckets and the database; images; log groups, metrics and the topic of alarms.
"""


class ControllerVersion(Frozen):
    """A controller of a part, and the minors of Kubernetes that it supports."""

    name: str  # Its name
    version: str  # Its version
    latest: str  # Latest minor that its publisher names
    # Whether a later one is beyond its publisher's promise; else it is untested there.
    is_limit: bool = True


class QuotaUse(Frozen):
    """Use of a service quota."""

    quota: QuotaKey  # The quota
    value: float  # Amount, in the quota's unit
    formula: str  # Formula of the amount


class StandingItem(Frozen):
    """A paid thing, by its row of the price list."""

    name: str  # Its name in the table
    service: str  # Service of the price list
    item: str  # Item of the service
    # Amount, in the unit of the price, for as long as it stands; None: it is paid by use.
    quantity: float | None
    words: str  # Words of the counted thing; of one paid by use, its unit
    # Rows of the core behind which it stands.
    follows: Literal["network", "storage"] = "network"


class WayIn(Frozen):
    """Subnets that the internet has to reach."""

    subnets: tuple[str, ...]  # Ids of the existing ones
    clients: str  # Words for the clients that come through them
    instead: str  # Key to write where they cannot be reached


class KeyPrincipal(Frozen):
    """A principal that has to be able to use a key of the user's own."""

    use: KeyUse  # Use of the key
    name: str  # Name of its statement
    does: str  # Action that fails without it
    actions: str  # Name of its actions among those that AWS documents
    layer: str = ""  # Layer with its roles; empty: it is the role of CloudFormation
    who: str = ""  # Name of these roles, for the user
    # Prefix of the host of the service that asks KMS in its name; None for several services.
    via: str | None = None
    certain: bool = True  # Whether AWS documents that it needs them


class DaemonSetPlan(Frozen):
    """A DaemonSet."""

    name: str  # Its name
    pools: frozenset[str]  # Names of the pools, or shards of them, whose nodes run it


class PlannedPart(Frozen):
    """The plan of a part. Each method's neutral answer changes nothing of the core's."""

    # Module of `ultrascale_k8s` whose `charts` renders its plan; None where it has no objects.
    renderer: ClassVar[str | None] = None
    installs_charts: ClassVar[bool] = False  # Whether its stacks install charts by Helm
    # Whether the platform applies its objects before people's rights and volumes.
    is_applied_early: ClassVar[bool] = False
    # Whether its agents run on each node, or on some nodes alone where the fleet is large.
    has_agents: ClassVar[bool] = False

    def key(self, use: KeyUse) -> str | None:
        """Return the ARN of the user's own key for ``use``; None where it names none."""
        return None

    @property
    def copies(self) -> CopiesPlan | None:
        """Copies of all images and charts; None: pods pull the publishers' own."""
        return None

    @property
    def placement(self) -> PlacementPlan | None:
        """Times of placing gangs by topology; None where it places none."""
        return None

    @property
    def features(self) -> Sequence[Feature]:
        """Features of its programs that call AWS from within the VPC."""
        return ()

    @property
    def hosts(self) -> Mapping[str, str]:
        """Other hosts that it calls from within the VPC, with the purpose."""
        return {}

    @property
    def log_groups(self) -> Mapping[str, str]:
        """Log groups with names of its own, and the layer that makes each."""
        return {}

    @property
    def identities(self) -> Sequence[str]:
        """Names of its pods that have identities in AWS, for the user."""
        return ()

    @property
    def submitter(self) -> tuple[str, str] | None:
        """Namespace and service account of its pods that submit jobs; None without any."""
        return None

    @property
    def database_version(self) -> str | None:
        """Engine and version of its database; None without one."""
        return None

    @property
    def alarm_topic(self) -> AlarmTopicPlan | None:
        """Topic that the alarms of all stacks notify; None: no topic."""
        return None

    @property
    def pods(self) -> Mapping[str, int]:
        """Most pods of its Deployments on system nodes, by name."""
        return {}

    @property
    def images(self) -> Mapping[str, int]:
        """Images of its programs that no chart names, each with its pods."""
        return {}

    @property
    def untied(self) -> Mapping[str, str]:
        """Images of its programs that no page ties to a minor of Kubernetes, by their names."""
        return {}

    @property
    def quota_uses(self) -> Sequence[QuotaUse]:
        """Its use of service quotas."""
        return ()

    @property
    def standing(self) -> Iterable[StandingItem]:
        """Its paid things beside nodes."""
        return ()

    @property
    def versions(self) -> Iterable[ControllerVersion]:
        """Its controllers that support certain minors of Kubernetes."""
        return ()

    @property
    def linked_roles(self) -> Sequence[str]:
        """Service principals whose service-linked role it needs."""
        return ()

    @property
    def way_in(self) -> WayIn | None:
        """Subnets by which clients reach it from the internet; None: it has no such clients."""
        return None

    @property
    def addons(self) -> Sequence[AddonPlan]:
        """EKS add-ons that its own stacks install."""
        return ()

    @property
    def daemon_sets(self) -> Sequence[DaemonSetPlan]:
        """Its DaemonSets outside add-ons, each with the pools whose nodes run it."""
        return ()

    @property
    def git_charts(self) -> Sequence[GitChartPlan]:
        """Releases of charts that are in no registry."""
        return ()

    @property
    def teams(self) -> Sequence[TeamPlan]:
        """Teams that share nodes by quotas."""
        return ()

    @property
    def namespaces_of_teams(self) -> Sequence[NamespacePlan]:
        """Namespaces of teams, which its controller makes, in their final form."""
        return ()

    @property
    def isolation(self) -> IsolationPlan | None:
        """Rules in place of taints on nodes that can have none; None without such nodes."""
        return None

    @property
    def key_principals(self) -> Sequence[KeyPrincipal]:
        """Principals of it that use keys of the user's own."""
        return ()

    @property
    def bucket_names(self) -> Mapping[str, str]:
        """Patterns of names of other owners' buckets that its nodes read, with their contents."""
        return {}

    @property
    def log_prefixes(self) -> Sequence[str]:
        """Prefixes of the log groups that services make for it."""
        return ()

    @property
    def decisions(self) -> Sequence[Decision]:
        """Choices that the file leaves open to it."""
        return ()

    def renewals(self, region: str) -> Sequence[str]:
        """Return steps of an upgrade that renew its nodes, once the control plane is upgraded."""
        return ()

    def image_warnings(self, images: Set[str]) -> Iterable[str]:
        """Return a synthesis' warnings on the images of pods, by their publishers' names."""
        return ()

    @property
    def files(self) -> Mapping[str, str]:
        """Files beside the cluster file that change its plan, by name."""
        return {}


def copies_of(parts: Iterable[PlannedPart]) -> CopiesPlan | None:
    """Return the copies of all images and charts; None without any."""
    return next((part.copies for part in parts if part.copies is not None), None)


def key_for(use: KeyUse, parts: Iterable[PlannedPart]) -> str | None:
    """Return the ARN of the user's own key for ``use``; None where no part names one."""
    return next((arn for part in parts if (arn := part.key(use)) is not None), None)


class PartNeeds(Frozen):
    """A part's table of `ultrascale plan`, and the text beside it."""

    name: str  # Name of the table, and key in `plan --json`
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]  # Rows; empty leaves the table out
    remarks: tuple[str, ...]  # Sentences below the tables
    needs: tuple[Frozen, ...] | Frozen | None  # Its value in `plan --json`
    answers: tuple[Mapping[str, object], ...]  # Its value in `plan NAME --json`
