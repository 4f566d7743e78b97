"""The Cluster Autoscaler on AWS: the tags of an Auto Scaling group that it reads.

Sources:
    https://github.com/kubernetes/autoscaler/blob/cluster-autoscaler-1.36.1/cluster-autoscaler/cloudprovider/aws/README.md
    https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-tagging.html
    https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_Tag.html
"""

_NODE_TEMPLATE = "k8s.io/cluster-autoscaler/node-template"
# Prefixes of tag keys, before a label, a taint's key, a resource or an option. The first three
# count only while the group has no node to look at.
LABEL_TAG = f"{_NODE_TEMPLATE}/label/"
TAINT_TAG = f"{_NODE_TEMPLATE}/taint/"
RESOURCE_TAG = f"{_NODE_TEMPLATE}/resources/"
OPTION_TAG = f"{_NODE_TEMPLATE}/autoscaling-options/"

# Share of a node's CPU, memory or GPUs that its pods request. A node below the threshold may go;
# with a threshold of 0 none may, not even an empty node.
# Source: https://github.com/kubernetes/autoscaler/blob/cluster-autoscaler-1.36.1/cluster-autoscaler/core/scaledown/eligibility/eligibility.go
UTILIZATION_THRESHOLDS = ("scaledownutilizationthreshold", "scaledowngpuutilizationthreshold")
UNNEEDED_TIME = "scaledownunneededtime"

TAGS_PER_GROUP = 50
TAG_KEY_CHARACTERS = 128
# Room for the tags that EKS and the group itself need.
TAGS_OF_OTHERS = 10
