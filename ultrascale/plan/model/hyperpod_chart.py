"""AWS's HyperPod chart, and what keeps other pods off HyperPod's nodes."""

from collections.abc import Mapping

from ultrascale.catalog.build_environment import BuildEnvironment
from ultrascale.frozen import Frozen
from ultrascale.plan.model.images import BuildLoginPlan


class RemoteChartPlan(Frozen):
    """A chart that AWS's chart takes from a chart repository."""

    name: str  # Its name
    version: str  # Its version
    sha256: str | None  # Of its archive; None: whatever the repository has under that version


class ChartCopyPlan(Frozen):
    """The chart with its dependencies in a mirror, from which it is installed."""

    repository: str  # Location, ``oci://HOST/PATH``
    version: str  # Version of the copy, which names the commit
    digest: str | None  # Digest of the copy; None where none is recorded
    images: Mapping[str, str]  # Images of its pods, as it names them, each with its copy
    # Repositories of others that it names, each with the one that stands in for it: of the Region,
    # or of a copy that no pod asks for.
    renamed: Mapping[str, str]
    # Patterns of what its images begin with then, before a slash; the build installs no other.
    registries: tuple[str, ...]
    # How the build logs in to the mirror; None where it asks for no login.
    login: BuildLoginPlan | None


class HyperPodChartPlan(Frozen):
    """The release of AWS's HyperPod chart."""

    repository: str  # URL of the Git repository
    commit: str  # Full id of the commit
    folder: str  # The chart's folder in the repository
    # Of the sums of its files; None: the commit's id alone says what they are.
    folder_sha256: str | None
    remote_charts: tuple[RemoteChartPlan, ...]  # Every dependency that the repository does not hold
    release: str  # Name of the release
    namespace: str  # Namespace of the release
    # Namespace of the operators that it brings, which must become available.
    operator_namespace: str
    values: Mapping[str, object]  # The chart's values
    # Nodes that its controllers run on, any where it is empty; the chart has no value for it.
    controller_node_selector: Mapping[str, str]
    # Instance types of the nodes that a DaemonSet of the chart runs on, by its name, where the
    # chart has no value for them.
    daemon_set_types: Mapping[str, tuple[str, ...]]
    # Add-on of task governance, which no Kueue of one's own may be beside; None without task
    # governance.
    governance_addon: str | None
    build: BuildEnvironment  # Build that installs it
    log_retention_days: int  # How long the logs of builds are kept, in days
    # Keys of taints that its DaemonSets tolerate beside those of the chart.
    plugin_taints: tuple[str, ...]
    copy: ChartCopyPlan | None = None  # The chart in a mirror; None: it comes from its publishers


class IsolationPlan(Frozen):
    """Rules that keep pods without accelerators off nodes that can have no taints."""

    # Values that each label has on these nodes, by key. Every one of the nodes has every key.
    node_labels: Mapping[str, tuple[str, ...]]
    # How the names of extended resources begin that belong on them.
    accelerator_prefixes: tuple[str, ...]
    exempt_namespaces: tuple[str, ...]  # Namespaces whose pods may run anywhere
    suggested_labels: Mapping[str, str]  # Labels of nodes that a refused pod may select instead
