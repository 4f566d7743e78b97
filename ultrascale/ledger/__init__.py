"""Paid hours of accelerators: their owners, or the reasons why nobody used them, and their cost."""
