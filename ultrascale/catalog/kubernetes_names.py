"""Names that Kubernetes and the device plugins chose: extended resources and node labels."""

from typing import Final

# Source: https://awsdocs-neuron.readthedocs-hosted.com/en/latest/containers/kubernetes-getting-started.html
NEURON_DEVICE: Final = "aws.amazon.com/neuron"
NEURON_CORE: Final = "aws.amazon.com/neuroncore"
# Source: https://docs.aws.amazon.com/eks/latest/userguide/device-management-efa.html
EFA_INTERFACE: Final = "vpc.amazonaws.com/efa"
# Source: https://kubernetes.io/docs/tasks/manage-hugepages/scheduling-hugepages/
HUGE_PAGES: Final = "hugepages-2Mi"

# Source: https://kubernetes.io/docs/reference/labels-annotations-taints/
HOSTNAME_LABEL: Final = "kubernetes.io/hostname"
