"""Exceptions of the posture tests, each with its reason.

A test fails on an exception that nothing needs any more.
"""

from collections.abc import Mapping

_OWN_SOCKETS = "the kubelet's sockets for plugins belong to root"
_SOCKET = "the plugin's socket"
_VENDOR = "not in the vendor's own manifest; a device that it could not open would idle a node"

# Rules of `tests.support.posture_pods` that a container breaks, by its name.
CONTAINERS: Mapping[str, Mapping[str, str]] = {
    "neuron-device-plugin": {
        "non-root": _OWN_SOCKETS,
        "read-only root": _VENDOR,
        "seccomp": _VENDOR,
        "host path /var/lib/kubelet/device-plugins": _SOCKET,
        "host path /run": "the state of the devices, which the vendor's manifest mounts so",
        "host path /opt/aws": "how many physical cores make one logical core",
    },
    "neuron-monitor": {
        "non-root": "it opens the Neuron devices, which belong to root",
        "read-only root": _VENDOR,
        "seccomp": "a privileged container has no profile",
        "escalation": "Kubernetes refuses a privileged container that must not escalate",
        "capabilities": "a privileged container has them all",
        "privileged": "without a device plugin's share it sees devices only so; AWS runs it so",
    },
    "neuron-scheduler": {
        "non-root": "no page says which user AWS's image runs as",
        "read-only root": "no page says that it writes nothing",
    },
    "nvidia-device-plugin": {
        "non-root": _OWN_SOCKETS,
        "read-only root": _VENDOR,
        "seccomp": _VENDOR,
        "host path /var/lib/kubelet/device-plugins": _SOCKET,
    },
    "dcgm-exporter": {
        "non-root": "it asks the kubelet by a socket of root's which pod has which GPU",
        "read-only root": _VENDOR,
        "seccomp": _VENDOR,
        "host path /var/lib/kubelet/pod-resources": "the kubelet's socket for pods' resources",
    },
    "aws-efa-k8s-device-plugin": {
        "non-root": _OWN_SOCKETS,
        "read-only root": _VENDOR,
        "seccomp": "a privileged container has no profile",
        "escalation": "Kubernetes refuses a privileged container that must not escalate",
        "capabilities": "a privileged container has them all",
        "privileged": "it opens the EFA devices; AWS's chart runs it so",
        "host namespace hostNetwork": "it lists EFA devices among the node's own interfaces",
        "host path /var/lib/kubelet/device-plugins": _SOCKET,
        "host path /dev/infiniband": "the devices that it hands out",
        "host path /opt/aws/neuron": "which EFA interface is near which Neuron device",
    },
    "access": {
        "non-root": "only root may open the root of a new file system to those who mount it",
    },
    "node-cache": {
        "non-root": "it gives its node an interface and listens on port 53",
        "capabilities NET_ADMIN": "it gives its node an interface",
        "capabilities NET_BIND_SERVICE": "it listens on port 53",
        "host namespace hostNetwork": "it answers on an address of its node",
    },
}

# Rights of service accounts and groups that reach beyond their own objects, by role and resource.
RIGHTS: Mapping[tuple[str, str], str] = {
    (
        "neuron-device-plugin",
        "nodes/proxy",
    ): "AWS's chart grants it, and nobody has shown the plugin to work without",
    (
        "volcano-controllers",
        "secrets",
    ): "the ssh plugin keeps a job's keys in a Secret of the job's namespace",
    (
        "volcano-admission-init",
        "secrets",
    ): "makes the certificate of the webhooks, in Volcano's own namespace",
    (
        "volcano-admission",
        "mutatingwebhookconfigurations",
    ): "writes its certificate into its own webhooks, by name",
    (
        "volcano-admission",
        "validatingwebhookconfigurations",
    ): "writes its certificate into its own webhooks, by name",
}

# AWS's policies on roles of the CDK's own, which cdk-nag does not see: behind a condition, or on
# a role that is no construct of `aws_iam`.
MANAGED_POLICIES: Mapping[str, str] = {
    "AmazonElasticContainerRegistryPublicReadOnly": "the CDK's function pulls public charts",
    "service-role/AWSLambdaBasicExecutionRole": "AWS keeps it in step with what Lambda calls",
}

# Roles, by the logical id of the role, that administer the cluster though the file names them not.
ADMINISTRATORS: Mapping[str, str] = {
    "ProviderHandlerServiceRole": "applies manifests: CRDs, roles and namespaces among them",
    "ChartRole": "installs AWS's HyperPod chart: CRDs, roles and namespaces among them",
}

# Data that may go with its stack, by the beginning of its logical id.
LOST: Mapping[str, str] = {
    "HyperPodLifecycle": "its one script is part of this project, and comes back by a deploy",
    "Cache": "copies of public images, which come from their publishers again",
}

# Builds that are root on their host, by the beginning of the project's logical id.
PRIVILEGED_BUILDS: Mapping[str, str] = {
    "Builder": "Docker builds take it; nothing but this project's own Dockerfiles runs there",
}
