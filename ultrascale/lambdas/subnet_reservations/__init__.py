"""A custom resource: the parts of subnets that only prefixes are taken from."""
