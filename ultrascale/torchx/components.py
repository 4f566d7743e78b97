"""Former name of ``ultrascale_torchx.components``."""

from ultrascale_torchx.components import Launch, ddp

__all__ = ["Launch", "ddp"]
