"""Deploys the stacks of a cluster by `cdk deploy`, and says why one failed."""
