"""Language models that are served: their memory, and the time until they answer."""
