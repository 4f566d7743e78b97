"""P5 nodes of a Capacity Block beside the stacks of a web team."""

import aws_cdk as cdk
from stacks.cluster import ClusterStack
from stacks.training import TrainingStack

app = cdk.App()
env = cdk.Environment(account="111122223333", region="us-west-2")
cluster = ClusterStack(app, "WebCluster", env=env)
TrainingStack(
    app,
    "Training",
    env=env,
    cluster=cluster.cluster,
    vpc=cluster.vpc,
    node_role=cluster.node_role,
)
app.synth()
