"""Block calendar: pools of Capacity Blocks have nodes inside their window and none outside."""
