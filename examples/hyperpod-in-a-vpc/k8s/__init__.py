"""Kubernetes words of this app."""
