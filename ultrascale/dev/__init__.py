"""First process of a person's pod, whose source is sent with the pod."""
