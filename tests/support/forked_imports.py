"""Slow imports that `tests.support.forked` does once, before it forks."""

# Here torch may be missing, and its types are partial.
# pyright: basic, reportMissingImports=false, reportPrivateImportUsage=false

import torch
import torch.distributed.fsdp
import torch.distributed.launcher.api
import torch.utils.tensorboard

import tests.support.rendezvous_node
import ultrascale_bert.training

# The first optimizer of a process imports torch's compiler.
torch.optim.AdamW([torch.zeros(1)])

__all__ = ["tests", "torch", "ultrascale_bert"]
