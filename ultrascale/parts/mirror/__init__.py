"""The mirror of public registries, from which a closed network takes every image and chart."""
