"""Load balancers that controllers of Kubernetes made, found by their tags.

Sources:
    https://kubernetes-sigs.github.io/aws-load-balancer-controller/latest/guide/service/annotations/
    https://docs.aws.amazon.com/eks/latest/userguide/auto-elb-example.html
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ultrascale.account import Account
from ultrascale.plan import ClusterPlan
from ultrascale.teardown import prices
from ultrascale.teardown.model import Left, Thing

if TYPE_CHECKING:
    from mypy_boto3_resourcegroupstaggingapi.type_defs import TagFilterTypeDef

_BALANCER = "AWS::ElasticLoadBalancingV2::LoadBalancer"
_CLASSIC = "AWS::ElasticLoadBalancing::LoadBalancer"
_NAME = "loadbalancer/"


def balancers(account: Account, cluster: str) -> Iterator[str]:
    """Yield the ARNs of the load balancers of a cluster.

    Args:
        account: The account.
        cluster: Name of the cluster.
    """
    owners: tuple[TagFilterTypeDef, ...] = (
        {"Key": f"kubernetes.io/cluster/{cluster}"},
        {"Key": "elbv2.k8s.aws/cluster", "Values": [cluster]},
        {"Key": "eks:eks-cluster-name", "Values": [cluster]},
    )
    for wanted in owners:
        found = account.ask_all(
            account.client("resourcegroupstaggingapi").get_resources,
            lambda page: page["ResourceTagMappingList"],
            TagFilters=[wanted],
            ResourceTypeFilters=["elasticloadbalancing:loadbalancer"],
        )
        yield from (each["ResourceARN"] for each in found)


def name_of(arn: str) -> str:
    """Return what the network interfaces of a load balancer name it by, of its ARN."""
    return arn.partition(_NAME)[2]


def left_balancers(account: Account, plan: ClusterPlan) -> Iterator[Left]:
    """Yield the load balancers that are left of a cluster."""
    for arn in balancers(account, plan.name):
        name = name_of(arn)
        if "/" in name:
            kind, remove = _BALANCER, f"elbv2 delete-load-balancer --load-balancer-arn {arn}"
        else:
            kind, remove = _CLASSIC, f"elb delete-load-balancer --load-balancer-name {name}"
        price, hourly = prices.of_type(kind)
        yield Left(
            thing=Thing(kind=kind, id=arn),
            why="its Service or Ingress went while its controller did not run",
            command=f"aws {remove} --region {plan.region}",
            price=price,
            usd_per_hour=hourly,
        )
