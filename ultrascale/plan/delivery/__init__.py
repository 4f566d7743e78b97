"""Delivery of a cluster: images, roles that deploy, and events of the pipeline."""
