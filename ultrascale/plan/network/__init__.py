"""The VPC: subnets, address ranges and name resolution."""
