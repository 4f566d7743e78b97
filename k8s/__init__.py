"""The cdk8s charts: what the cluster runs. They render plans and decide nothing."""

from k8s.platform import PlatformChart, define_charts, write_manifests

__all__ = ["PlatformChart", "define_charts", "write_manifests"]
