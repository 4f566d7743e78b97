"""`hyperpod`: settings of SageMaker HyperPod."""

from ultrascale import config


class FileKeys(config.Section):
    """The keys of HyperPod."""
