"""Custom resource of ranges of subnets that are reserved for prefixes."""
