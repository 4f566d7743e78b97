"""Stacks of this app."""
