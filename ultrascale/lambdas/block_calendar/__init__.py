"""Block calendar: pools of Capacity Blocks have nodes only inside their window."""
