"""The needs of a cluster: nodes, addresses, quotas, time and money."""
