"""Custom resources of node groups: their size, their tags, and what no deploy may do to nodes."""
