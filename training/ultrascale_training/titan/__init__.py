"""The TorchTitan engine: recipes for language models, from one node to the fleet.

``torchrun … -m ultrascale_training.titan --recipe NAME`` runs TorchTitan's trainer with a data
order, checkpoints, a stop vote and progress lines of this package. It needs the extra ``titan``.
"""
