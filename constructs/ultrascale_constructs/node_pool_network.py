"""Security groups and placement groups of NodePools."""

from collections.abc import Mapping, Sequence

from aws_cdk import CfnOutput
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from ultrascale.plan import names
from ultrascale.plan.model import PoolPlan
from ultrascale_constructs.cluster_context import ClusterContext
from ultrascale_constructs.efa_security_group import EfaSecurityGroup


class NodePoolNetwork(Construct):
    """Defines the EFA security group of a pool and the placement group of each of its shards.

    Node classes find the security group by its tags, and name a placement group by a placeholder.

    Attributes:
        placement_groups: Names of placement groups, by placeholder.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster: ClusterContext,
        shards: Sequence[PoolPlan],
    ) -> None:
        """Define them.

        Args:
            scope: Parent.
            id: Construct id.
            cluster: Cluster of the pool.
            shards: The pool, or all of its shards.
        """
        super().__init__(scope, id)
        if any(shard.efa_interfaces for shard in shards):
            pool = shards[0].pool
            tags = {names.DISCOVERY_TAG: cluster.name, names.POOL_LABEL: pool}
            EfaSecurityGroup(self, "EfaSecurityGroup", vpc=cluster.vpc, pool=pool, tags=tags)
        placement_groups: dict[str, str] = {}
        for shard in shards:
            if shard.placement_group:
                placeholder = names.placement_group(shard.name)
                placement_groups[placeholder] = self._placement_group(shard, placeholder)
        self.placement_groups: Mapping[str, str] = placement_groups

    def _placement_group(self, shard: PoolPlan, placeholder: str) -> str:
        # EC2 makes up its name: every property is create-only, and a name of ours would collide.
        group = ec2.CfnPlacementGroup(
            self, f"PlacementGroup{shard.shard or ''}", strategy="cluster"
        )
        CfnOutput(group, "Name", value=group.ref, description=f"{placeholder} in the manifests")
        return group.ref
