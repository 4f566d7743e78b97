"""JobSet: its chart, and the limits of its objects.

Source: https://github.com/kubernetes-sigs/jobset/tree/v0.12.0/api/jobset/v1alpha2
"""

VERSION = "0.12.0"
"""Version of the chart, without a `v`."""

# Source: https://github.com/kubernetes-sigs/jobset/blob/v0.12.0/charts/jobset/README.md
CHART = "oci://registry.k8s.io/jobset/charts/jobset"

# The webhook adds a suffix of six characters to the name of the last pod.
# Source: https://github.com/kubernetes-sigs/jobset/blob/v0.12.0/pkg/webhooks/jobset_webhook.go
POD_SUFFIX_CHARACTERS = 6
"""Characters behind the name of a pod's Job and its index; the whole name has at most 63."""
