"""Metrics, dashboards and alarms."""
