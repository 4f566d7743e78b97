"""Jobs: rendered as the objects that Kubernetes gets, sent there, and watched."""
