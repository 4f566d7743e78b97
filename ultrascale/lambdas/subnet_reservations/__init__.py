"""Custom resource for ranges of subnets that are reserved for prefixes."""
