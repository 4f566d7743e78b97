"""A Lustre file system and a canary beside an EKS cluster of another owner."""

import aws_cdk as cdk
from stacks.data import DataStack

app = cdk.App()
DataStack(app, "Data", env=cdk.Environment(account="111122223333", region="us-west-2"))
app.synth()
