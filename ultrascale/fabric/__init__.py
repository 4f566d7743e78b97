"""The fabric check: measurements between pairs of nodes, run by a pod on each node.

The modules here are the program of those pods, so they import nothing but the standard library of
Python 3.10 and each other. The control side imports them too: `jobs.gate` sends their source.
"""
