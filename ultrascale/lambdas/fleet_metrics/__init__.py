"""Fleet metrics: sums over a cluster's nodes and pods that no AWS metric provides."""
