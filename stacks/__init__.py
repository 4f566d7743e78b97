"""The CDK stacks: units of deployment, one for each lifecycle."""

from stacks.assembly import define_stacks
from stacks.pipeline import define_pipeline, share_files

__all__ = ["define_pipeline", "define_stacks", "share_files"]
