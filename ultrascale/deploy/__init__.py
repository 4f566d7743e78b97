"""Deploys the stacks of a cluster by `cdk deploy`, and says why one failed.

One `cdk deploy` runs for each stack: of several at once, the CDK CLI begins nothing more after one
that failed, and its exit status does not say which it was.
"""
