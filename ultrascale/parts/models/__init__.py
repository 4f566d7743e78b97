"""Language models that services load: their memory, and the time until they answer."""
