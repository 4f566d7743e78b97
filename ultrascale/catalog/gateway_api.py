"""Limits of the Gateway API's kinds.

Source: https://github.com/kubernetes-sigs/gateway-api/blob/v1.6.1/apis/v1/httproute_types.go
"""

MATCHES_OF_A_RULE, MATCHES_OF_A_ROUTE = 64, 128
"""Most matches of one rule of an HTTPRoute, and of all of its rules."""
