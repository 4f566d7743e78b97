"""Day 2: the sizes of pools, the renewal of their nodes, and the way to a private cluster."""
