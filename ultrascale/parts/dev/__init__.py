"""People's pods: a notebook or a shell on a part of a node, which ends when nobody uses it."""
