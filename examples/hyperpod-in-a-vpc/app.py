"""An EKS cluster and a HyperPod cluster on it, in a VPC of the network team."""

import aws_cdk as cdk
from stacks.cluster import ClusterStack
from stacks.hyperpod import HyperPodStack

app = cdk.App()
env = cdk.Environment(account="111122223333", region="us-west-2")
cluster = ClusterStack(app, "ResearchCluster", env=env)
HyperPodStack(app, "ResearchHyperPod", env=env, cluster=cluster.cluster, vpc=cluster.vpc)
app.synth()
