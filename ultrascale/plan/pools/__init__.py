"""Pools: launch templates, NodePools, node groups and HyperPod instance groups."""
