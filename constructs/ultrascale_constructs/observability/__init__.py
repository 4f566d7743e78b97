"""Metrics, dashboard and alerts."""
