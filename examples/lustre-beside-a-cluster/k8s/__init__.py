"""Kubernetes objects of this app."""
