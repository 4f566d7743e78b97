"""Write canary: latency of writes to the API server, measured each second."""
