"""JobSet: its chart, labels of its pods, and the limits of its objects.

Sources:
    https://github.com/kubernetes-sigs/jobset/blob/v0.12.0/api/jobset/v1alpha2/jobset_types.go
    https://github.com/kubernetes-sigs/jobset/blob/v0.12.0/pkg/controllers/jobset_controller.go
"""

from ultrascale.catalog.versions import chart

NAMESPACE = "jobset-system"
"""Namespace of its controller."""
CERTIFICATE = "jobset-webhook-server-cert"
"""Name of the Secret of its webhooks' certificate."""

VERSION = chart("jobset").version
"""Version of the chart, without a `v`."""

# Source: https://github.com/kubernetes-sigs/jobset/blob/v0.12.0/charts/jobset/README.md
CHART = "oci://registry.k8s.io/jobset/charts/jobset"
# Its releases use the image's published name; the chart in the sources names a staging image.
# Source: https://github.com/kubernetes-sigs/jobset/blob/v0.12.0/.github/ISSUE_TEMPLATE/new-release.md
IMAGE = "registry.k8s.io/jobset/jobset"
"""Image of the controller; its tag is the chart's version behind a `v`."""

# It promises the three newest minors, which were 1.34 to 1.36, and is built with the libraries of
# the newest.
# Source: https://github.com/kubernetes-sigs/jobset/blob/v0.12.0/site/content/en/docs/installation/_index.md
LATEST_KUBERNETES_VERSION = "1.36"
"""Latest Kubernetes minor that it promises to support."""

# The webhook adds a suffix of six characters to the name of the last pod.
# Source: https://github.com/kubernetes-sigs/jobset/blob/v0.12.0/pkg/webhooks/jobset_webhook.go
POD_SUFFIX_CHARACTERS = 6
"""Characters behind the name of a pod's Job and its index."""
POD_NAME_CHARACTERS = 63
"""Most characters of the name of a pod, which is a host name."""

# Keys on every Job and pod, as label and as annotation.
NAME_LABEL = "jobset.sigs.k8s.io/jobset-name"
UID_LABEL = "jobset.sigs.k8s.io/jobset-uid"
ROLE_LABEL = "jobset.sigs.k8s.io/replicatedjob-name"
RESTART_LABEL = "jobset.sigs.k8s.io/restart-attempt"

DISRUPTED = "has condition DisruptionTarget"
"""Part of the message of a Job that failed because a pod was evicted, preempted or lost its node.

Source: https://github.com/kubernetes/kubernetes/blob/v1.35.0/pkg/controller/job/pod_failure_policy.go
"""


def host(jobset: str, role: str, index: int) -> str:
    """Return the host name of a pod, as the pods of its JobSet resolve it.

    A role has one Job, of index 0.
    """
    return f"{jobset}-{role}-0-{index}.{jobset}"
