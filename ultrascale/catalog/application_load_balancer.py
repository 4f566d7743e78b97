"""Application Load Balancers: what they ask of subnets and certificates.

Sources:
    https://docs.aws.amazon.com/elasticloadbalancing/latest/application/application-load-balancers.html
    https://docs.aws.amazon.com/acm/latest/userguide/import-certificate-prerequisites.html
"""

SMALLEST_SUBNET_MASK = 27
"""Mask of the smallest subnet that a load balancer takes."""

FREE_ADDRESSES = 8
"""Addresses that have to be free in each of its subnets, by which it scales out."""

KEY_ALGORITHMS = frozenset(
    {
        *("RSA_1024", "RSA_2048", "RSA_3072", "RSA_4096"),
        *("EC_prime256v1", "EC_secp384r1", "EC_secp521r1"),
    }
)
"""Keys of certificates that it takes, by ACM's names."""
