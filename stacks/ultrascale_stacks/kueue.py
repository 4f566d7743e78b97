"""Kueue and JobSet, and the queues of the cluster file."""

from collections.abc import Mapping

from ultrascale.parts.kueue import Plan, facts, jobset
from ultrascale.plan.stacks import LayerId, StackName
from ultrascale_constructs.kueue import certificate_without_owner, jobset_values, kueue_values
from ultrascale_constructs.platform import ManifestApplier
from ultrascale_stacks.cluster import Builder, ClusterStacks, LayerStack

# The chart has no value for the priority class.
_PRIORITY = "/spec/template/spec/priorityClassName"


class SchedulingStack(LayerStack):
    """Installs the two charts, then applies the queues.

    Both charts stay when the stack is deleted: Kueue's has its CRDs, with which every queue and
    waiting job would be deleted.

    No job may run when the stack is deleted. Kueue keeps a queue as long as a job has its quota,
    and CloudFormation gives up after 15 minutes.
    """

    def __init__(self, cluster: ClusterStacks, name: StackName) -> None:
        super().__init__(cluster, name)
        kueue = cluster.part(Plan)
        manifests = ManifestApplier(self, "Manifests", cluster=cluster.context)
        manifests.patch(
            "JobSetCertificate",
            f"secret/{jobset.CERTIFICATE}",
            certificate_without_owner(kueue),
            namespace=jobset.NAMESPACE,
        )
        # Kueue looks for JobSet's kind at its start.
        manifests.install_chart(
            "JobSet",
            repository=kueue.jobset_chart,
            version=kueue.jobset_version,
            namespace=jobset.NAMESPACE,
            values=jobset_values(kueue),
            retain=True,
            wait=True,
        )
        # Users' pods of higher priority could take the place of its pods otherwise, and no JobSet
        # could be made meanwhile.
        manifests.patch(
            "JobSetPriority",
            "deployment/jobset-controller",
            [{"op": "add", "path": _PRIORITY, "value": "system-cluster-critical"}],
            namespace=jobset.NAMESPACE,
        )
        manifests.install_chart(
            "Kueue",
            repository=kueue.chart,
            version=kueue.version,
            namespace=facts.NAMESPACE,
            values=kueue_values(kueue),
            retain=True,
            # It is ready once it serves its webhooks, which check every queue.
            wait=True,
        )
        for chart in cluster.charts.of_layers["scheduling"]:
            manifests.apply(chart.name, chart.manifests, retain=chart.retained)


STACKS: Mapping[LayerId, Builder] = {"scheduling": SchedulingStack}
