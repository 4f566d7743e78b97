"""Kueue and JobSet, and the queues of the cluster file."""

from collections.abc import Sequence

from aws_cdk import Stack
from constructs import Construct

from ultrascale.plan import names
from ultrascale.plan.model import ClusterPlan
from ultrascale_constructs.cluster_context import ClusterContext
from ultrascale_constructs.platform import ManifestApplier
from ultrascale_constructs.queueing import certificate_without_owner, jobset_values, kueue_values
from ultrascale_k8s import PlatformChart
from ultrascale_stacks.deployment import stack_properties

# The chart has no value for the priority class.
_PRIORITY = "/spec/template/spec/priorityClassName"


class SchedulingStack(Stack):
    """Installs the two charts, then applies the queues.

    Both charts stay when the stack is deleted: Kueue's has its CRDs, with which every queue and
    waiting job would be deleted.

    No job may run when the stack is deleted. Kueue keeps a queue as long as a job has its quota,
    and CloudFormation gives up after 15 minutes.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        plan: ClusterPlan,
        cluster: ClusterContext,
        charts: Sequence[PlatformChart],
    ) -> None:
        """Define the stack.

        Args:
            scope: Parent.
            id: Name of the stack.
            plan: The cluster.
            cluster: The cluster's context for constructs.
            charts: The queues, in the order they are applied.
        """
        super().__init__(scope, id, **stack_properties(plan))
        kueue = plan.kueue
        assert kueue is not None, "a cluster without Kueue has no such stack"
        manifests = ManifestApplier(self, "Manifests", cluster=cluster)
        manifests.patch(
            "JobSetCertificate",
            f"secret/{names.JOBSET_CERTIFICATE}",
            certificate_without_owner(kueue),
            namespace=names.JOBSET_NAMESPACE,
        )
        # Kueue looks for JobSet's kind at its start.
        manifests.install_chart(
            "JobSet",
            repository=kueue.jobset_chart,
            version=kueue.jobset_version,
            namespace=names.JOBSET_NAMESPACE,
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
            namespace=names.JOBSET_NAMESPACE,
        )
        manifests.install_chart(
            "Kueue",
            repository=kueue.chart,
            version=kueue.version,
            namespace=names.KUEUE_NAMESPACE,
            values=kueue_values(kueue),
            retain=True,
            # It is ready once it serves its webhooks, which check every queue.
            wait=True,
        )
        for chart in charts:
            manifests.apply(chart.name, chart.manifests, retain=chart.retained)
