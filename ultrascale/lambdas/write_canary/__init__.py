"""Write canary: how long a client waits for a write to the API server, measured each second."""
