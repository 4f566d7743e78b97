"""The front: values of its charts, and the load balancer in front of it."""
