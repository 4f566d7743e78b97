"""Constructs of SageMaker HyperPod."""
