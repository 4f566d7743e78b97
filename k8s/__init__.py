"""The cdk8s charts: what the cluster runs. They render plans and decide nothing."""

from k8s.platform import Charts, PlatformChart, define_charts, write_manifests

__all__ = ["Charts", "PlatformChart", "define_charts", "write_manifests"]
