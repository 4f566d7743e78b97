"""Deployment of a cluster's stacks by `cdk deploy`, and the causes of failures.

Each stack has a `cdk deploy` of its own: a joint `cdk deploy` starts nothing more after a
failure, and its exit status does not tell which stack failed.
"""

from ultrascale.deploy.deployment import Deployment, Ending, View, deploy

__all__ = ["Deployment", "Ending", "View", "deploy"]
