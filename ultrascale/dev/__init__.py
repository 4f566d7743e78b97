"""Program of a person's pod: it starts a notebook and stops the pod that nobody uses."""
