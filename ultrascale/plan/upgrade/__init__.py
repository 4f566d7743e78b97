"""Upgrades of Kubernetes: obstacles, steps and nodes that are replaced."""
