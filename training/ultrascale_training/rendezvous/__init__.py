"""How the nodes of an elastic job find each other."""
