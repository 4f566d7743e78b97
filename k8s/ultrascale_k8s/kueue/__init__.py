"""Kueue's objects of a cluster, and what keeps pods from passing its queues by."""
