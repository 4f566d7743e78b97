"""Deletion of network interfaces that the VPC CNI of an ended node left in the VPC."""
