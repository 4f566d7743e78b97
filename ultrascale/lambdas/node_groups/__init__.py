"""Custom resources of managed node groups: the size to deploy, and tags on what EKS makes."""
