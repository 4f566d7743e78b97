"""API server of a cluster: connection, objects, watches and refusals."""
