"""Custom resources of node groups: size, tags, zones, and the guard of running nodes."""
