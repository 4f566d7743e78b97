"""The front: values of its charts, and the load balancer before it."""
