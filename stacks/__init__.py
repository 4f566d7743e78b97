"""The CDK stacks: units of deployment, one for each lifecycle."""

from stacks.assembly import define_stacks

__all__ = ["define_stacks"]
