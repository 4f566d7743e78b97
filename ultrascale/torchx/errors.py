"""Former name of ``ultrascale_torchx.errors``."""

from ultrascale_torchx.errors import AppError

__all__ = ["AppError"]
