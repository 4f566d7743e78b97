"""Amazon VPC CNI: tags of the network interfaces that it makes.

Source: https://github.com/aws/amazon-vpc-cni-k8s/blob/master/pkg/awsutils/awsutils.go
"""

CLUSTER_TAG = "cluster.k8s.amazonaws.com/name"
"""Name of the cluster."""
MADE_TAG = "node.k8s.amazonaws.com/createdAt"
"""Time of its creation, as RFC 3339 has it."""
