"""Fleet metrics: what a cluster's nodes and pods say together, and no vended metric tells."""
