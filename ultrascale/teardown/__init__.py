"""Takes a cluster down in an order that leaves nothing running, and tells what stays."""
