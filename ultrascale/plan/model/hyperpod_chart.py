"""AWS's HyperPod chart, and what keeps other pods off HyperPod's nodes."""

from collections.abc import Mapping
from dataclasses import dataclass

from ultrascale.catalog.build_environment import BuildEnvironment
from ultrascale.plan.model.images import BuildMirrorPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteChartPlan:
    """A chart that AWS's chart takes from a chart repository.

    Attributes:
        name: Its name.
        version: Its version.
        sha256: Of its archive; None: whatever the repository has under that version.
    """

    name: str
    version: str
    sha256: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartCopyPlan:
    """The chart with its dependencies in a mirror, from which it is installed.

    Attributes:
        repository: Location, ``oci://HOST/PATH``.
        version: Version of the copy, which names the commit.
        digest: Digest of the copy; None where none is recorded.
        images: Images of its pods, as it names them, each with its copy.
        renamed: Repositories of others that it names, each with the one that stands in for it:
            of the Region, or of a copy that no pod asks for.
        registries: Patterns of what its images begin with then, before a slash; the build installs
            no other.
        login: How the build logs in to the mirror; None where it asks for no login.
    """

    repository: str
    version: str
    digest: str | None
    images: Mapping[str, str]
    renamed: Mapping[str, str]
    registries: tuple[str, ...]
    login: BuildMirrorPlan | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HyperPodChartPlan:
    """The release of AWS's HyperPod chart.

    Attributes:
        repository: URL of the Git repository.
        commit: Full id of the commit.
        folder: The chart's folder in the repository.
        folder_sha256: Of the sums of its files; None: the commit's id alone says what they are.
        remote_charts: Every dependency that the repository does not hold.
        release: Name of the release.
        namespace: Namespace of the release.
        operator_namespace: Namespace of the operators that it brings, which must become available.
        values: The chart's values.
        controller_node_selector: Nodes that its controllers run on, any where it is empty; the
            chart has no value for it.
        daemon_set_types: Instance types of the nodes that a DaemonSet of the chart runs on, by its
            name, where the chart has no value for them.
        governance_addon: Add-on of task governance, which no Kueue of one's own may be beside; None
            without task governance.
        build: Build that installs it.
        log_retention_days: How long the logs of builds are kept, in days.
        plugin_taints: Keys of taints that its DaemonSets tolerate beside those of the chart.
        copy: The chart in a mirror; None: it comes from its publishers.
    """

    repository: str
    commit: str
    folder: str
    folder_sha256: str | None
    remote_charts: tuple[RemoteChartPlan, ...]
    release: str
    namespace: str
    operator_namespace: str
    values: Mapping[str, object]
    controller_node_selector: Mapping[str, str]
    daemon_set_types: Mapping[str, tuple[str, ...]]
    governance_addon: str | None
    build: BuildEnvironment
    log_retention_days: int
    plugin_taints: tuple[str, ...]
    copy: ChartCopyPlan | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolationPlan:
    """Rules that keep pods without accelerators off nodes that can have no taints.

    Attributes:
        node_labels: Values that each label has on these nodes, by key. Every one of the nodes has
            every key.
        accelerator_prefixes: How the names of extended resources begin that belong on them.
        exempt_namespaces: Namespaces whose pods may run anywhere.
        suggested_labels: Labels of nodes that a refused pod may select instead.
    """

    node_labels: Mapping[str, tuple[str, ...]]
    accelerator_prefixes: tuple[str, ...]
    exempt_namespaces: tuple[str, ...]
    suggested_labels: Mapping[str, str]
