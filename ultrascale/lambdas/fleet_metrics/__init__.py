"""Fleet metrics: sums over the nodes and pods of a cluster that no vended metric has."""
