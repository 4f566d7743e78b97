"""Every name on which CloudFormation and Kubernetes, or two manifests, must agree."""

from hashlib import sha256

from ultrascale.catalog import eks, kubernetes, mountpoint, object_keys, registries
from ultrascale.config.pools import NODE_TYPE

_DESCRIPTION = "Part of the cluster {cluster}, made by ultrascale"
_SAGEMAKER_NAME = 63
_DIGITS = 8

LWS_NAMESPACE = "lws-system"
FRONT_NAMESPACE = "envoy-gateway-system"
SYSTEM_NAMESPACE = "kube-system"
TRAINING_NAMESPACE = "training"

POOL_LABEL = "ultrascale.dev/pool"
ROLE_LABEL = "ultrascale.dev/role"
CAPACITY_LABEL = "ultrascale.dev/capacity"
NODE_TYPE_LABEL = NODE_TYPE
# On the nodes of a pool with shards.
SHARD_LABEL = "ultrascale.dev/shard"
# Karpenter and EKS Auto Mode set it on their nodes; node groups get it from us.
CAPACITY_TYPE_LABEL = "karpenter.sh/capacity-type"
# Model and memory of a node's GPUs, such as ``a100-80gb``.
GPU_TYPE_LABEL = "gpu-type"
# Keys of the taints of HyperPod's nodes, and of Spot nodes with accelerators.
DEDICATED_TAINT = "dedicated"
SPOT_TAINT = "spot"
# Set only on nodes that have EFA interfaces, so that the EFA device plugin never starts on a node
# without one, where it crash-loops (aws/eks-charts#1239).
EFA_LABEL = "ultrascale.dev/efa"
# Karpenter leaves pods and nodes with it alone.
# Source: https://karpenter.sh/docs/concepts/disruption/#pod-level-controls
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
JOB_LABEL = object_keys.JOB_LABEL
CHECK_LABEL = "ultrascale.dev/check"
"""On a check of nodes, and its pods: the kind of check. Kueue's queues let it pass."""
# On pods of jobs, with a ledger: AWS's split cost allocation data takes them as tags.
TEAM_LABEL = "ultrascale.dev/team"
OWN_QUEUE_LABEL = "ultrascale.dev/queue"
COST_CENTER_LABEL = "ultrascale.dev/cost-center"
COMPONENT_LABEL = "app.kubernetes.io/component"
SERVER_LABEL = "ultrascale.dev/server"
"""On a service and its pods: the program that answers, whose metrics are known."""
ROUTED_LABEL = "ultrascale.dev/front"
"""On pods that get requests by a route. Others of their namespace do not reach them."""
SERVING_PORT = "serve"
"""Name of the port at which the pods of a service answer."""
# On the one pod of a large job at which the others meet.
RANK_ZERO_LABEL = "ultrascale.dev/rank-zero"
# Container of a job's command before its program. A name with "-" is no role's.
BEFORE_PROGRAM = "before-program"
# Volume of the token by which a pod reads the labels of its node, and the right to do so.
NODE_READER = "node-reader"
NODE_READER_ROLE = f"ultrascale-{NODE_READER}"
NODE_READER_FOLDER = f"/var/run/ultrascale/{NODE_READER}"
# Line of the first of these pods, before the indexes of the pods in the order of their ranks.
RANKS_TABLE = "ultrascale: {} pods by node rank: "
# Marks the namespaces whose pods may reach the rendezvous server.
TRAINING_LABEL = "ultrascale.dev/training"

# On nodes of a large fleet, set by hand: CloudWatch's agent and Fluent Bit run there as well.
SAMPLED_LABEL = "ultrascale.dev/sampled"

SYSTEM_ROLE = "system"

# Tags by which Karpenter and EKS Auto Mode select subnets and security groups. A security group of
# a pool carries `POOL_LABEL` as well.
DISCOVERY_TAG = "karpenter.sh/discovery"
SUBNET_KIND_TAG = "ultrascale.dev/subnet"
# EKS puts it on the cluster security group.
# Source: https://docs.aws.amazon.com/eks/latest/userguide/sec-group-reqs.html
CLUSTER_SECURITY_GROUP_TAG = "aws:eks:cluster-name"
# Value: the cluster's name, on the Auto Scaling groups that its Cluster Autoscaler scales.
AUTOSCALED_TAG = "ultrascale.dev/cluster-autoscaler"
# Prefix of the tag of resources that a Node Termination Handler drains: `drained_tag` is the key.
DRAINED_TAG = "ultrascale.dev/termination-handler"

# Placeholder for S3's name of the ledger's bucket.
LEDGER_BUCKET = "${LEDGER_BUCKET}"
# Kubernetes group of the function that measures the fleet.
FLEET_METRICS_GROUP = "ultrascale:fleet-metrics"
WRITE_CANARY_GROUP = "ultrascale:write-canary"
WRITE_CANARY_NAMESPACE = "write-canary"
WRITE_CANARY_LEASE = "write-canary"

KARPENTER_ACCOUNT = "karpenter"
CLUSTER_AUTOSCALER_ACCOUNT = "cluster-autoscaler"
TERMINATION_HANDLER_ACCOUNT = "aws-node-termination-handler"

FRONT_GATEWAY = "front"
"""Gateway, proxies and Service of the front of all models."""
FRONT_PORT = 80
FRONT_HEALTH_PATH = "/healthz"
"""Path at which a proxy reports that it takes requests; an ending one refuses them there first."""
MODEL_HEADER = "x-ultrascale-model"
"""Header that names the model of a request, which the front reads from its body."""
OPENAI_PATHS = "/v1"
"""Paths of OpenAI's API. Servers have others, such as those of metrics."""
CLOSED_PATHS = ("/v1/load_lora_adapter", "/v1/unload_lora_adapter")
"""Paths below it by which a client would change the models of a server of vLLM.

Source: https://docs.vllm.ai/en/stable/features/lora/#dynamically-serving-lora-adapters
"""
MODELS_ANNOTATION = "gateway.envoyproxy.io/models"
"""Models of an HTTPRoute, separated by spaces. Envoy Gateway gives proxies annotations of its
domain.

Source: https://github.com/envoyproxy/gateway/blob/v1.9.0/internal/gatewayapi/route.go
"""
MODELS_METADATA = "models"
"""The models in the metadata of a proxy's cluster, where the annotation has no domain."""
CLIENT_MODELS = "ultrascale.dev/models-by-client"
"""Annotation of the front's policy with the models of each client, in JSON; ``null``: all."""

CLIENT_HEADER = "x-ultrascale-client"
"""Header with the name of the client whose key came with a request."""

ETCD_SERVER_SERVICE = "etcd-server"
ETCD_CLIENT_SERVICE = "etcd-client"
CHECKPOINTS_BUCKET = "checkpoints"
"""Bucket of the cluster file into which jobs without a file system write their checkpoints."""
OUTPUT_ACCOUNT = "training-output"
"""Service account of each job namespace whose pods may write to that bucket."""
BUCKET_NAME_KEY = "name"
"""Key of a bucket's ConfigMap, with S3's name of the bucket."""
ETCD_CLIENT_PORT = 2379
ETCD_PEER_PORT = 2380


def bucket_config(bucket: str) -> str:
    """Return the name of the ConfigMap that holds S3's name of a bucket, in each job namespace.

    A ConfigMap for each bucket can be immutable, so that no kubelet watches it: S3's name of a
    bucket stays as long as the bucket is in the cluster file. One for all would change with each
    added bucket.
    """
    return f"ultrascale-bucket-{bucket}"


KEPT_OF_STACK = 20
"""Characters of a stack's name that CloudFormation surely keeps in its generated names.

It cuts longer ones. No page says how much it leaves; names in the field keep 24 characters.
"""

CDK_QUALIFIER = "cdk-hnb659fds"
"""Prefix of the names of the CDK's bootstrap in an account.

Source: https://docs.aws.amazon.com/cdk/v2/guide/bootstrapping-customizing.html
"""


def stack(cluster: str, layer: str) -> str:
    """Return the name of the stack that holds ``layer``: a lifecycle, or a pool's name."""
    return f"{cluster}-{layer}"


def stack_description(cluster: str) -> str:
    """Return the description of each stack of ``cluster``.

    A name alone does not show its cluster: the layer ``addons`` of a cluster ``x-node`` and
    ``node-addons`` of a cluster ``x`` have the same.
    """
    return _DESCRIPTION.format(cluster=cluster)


def described_cluster(description: str) -> str | None:
    """Return the cluster in a stack's description; None where it is none of ours."""
    before, after = _DESCRIPTION.split("{cluster}")
    ours = description.startswith(before) and description.endswith(after)
    return description.removeprefix(before).removesuffix(after) if ours else None


def repository(cluster: str, name: str) -> str:
    """Return the ECR repository behind ``images.repositories``; clusters must not share one."""
    return f"{cluster}/{name}"


def registry(account: str, region: str) -> str:
    """Return the host of an account's ECR registry."""
    return registries.ecr_registry(account, region)


def image_uri(*, account: str, region: str, cluster: str, repository: str, tag: str) -> str:
    """Return the value of a container's ``image`` field for an image of the cluster's own.

    Args:
        account: AWS account of the cluster, 12 digits.
        region: Its Region; the registry's domain follows from it, in China ``amazonaws.com.cn``.
        cluster: Its name, the prefix of its repositories.
        repository: One of ``images.repositories``.
        tag: Tag of the image. Tags of these repositories never move.

    Source: https://docs.aws.amazon.com/AmazonECR/latest/userguide/docker-pull-ecr-image.html
    """
    return f"{registry(account, region)}/{cluster}/{repository}:{tag}"


def cache_prefix(cluster: str, kind: str) -> str:
    """Return the prefix of repositories that cache a public registry's images.

    A registry has each prefix once, for all clusters of an account and Region, and no prefix has
    more than 30 characters: a hash stands for the cluster.
    """
    return f"cache-{sha256(cluster.encode()).hexdigest()[:_DIGITS]}/{kind}"


def image_builder(cluster: str) -> str:
    """Return the CodeBuild project of a cluster's images."""
    return f"{cluster}-images"


def build_command(cluster: str, region: str) -> str:
    """Return the command that builds the images of a cluster."""
    project = image_builder(cluster)
    return f"aws codebuild start-build --project-name {project} --region {region}"


def control_plane_logs(cluster: str) -> str:
    """Return the log group of EKS's control-plane logs, whose name EKS chose."""
    return f"/aws/eks/{cluster}/cluster"


def node_role(cluster: str, region: str, *, by_id: bool = False) -> str:
    """Return the name of the IAM role of Karpenter's and Auto Mode's nodes: node classes name it.

    IAM is global, so the Region is part of it.

    Args:
        cluster: Name of the cluster.
        region: Its Region.
        by_id: Whether Karpenter's nodes are named by their instance ids, for which they need a
            role of their own: its access entry is of another type, which can never change.
    """
    return f"{cluster}-{'instance' if by_id else 'node'}-{region}"


def interruption_queue(cluster: str) -> str:
    """Return the SQS queue of interruptions, which Karpenter reads."""
    return f"{cluster}-karpenter"


def termination_queue(cluster: str) -> str:
    """Return the SQS queue that the Node Termination Handler reads."""
    return f"{cluster}-termination"


def drained_tag(cluster: str) -> str:
    """Return the key of the tag of the groups and instances that a cluster's handler drains.

    The Node Termination Handler asks for a key and for no value, and events come from the whole
    account. It knows the node by its private DNS name, which two clusters may both have. So the key
    is the cluster's own.

    Source: https://github.com/aws/aws-node-termination-handler/issues/380
    """
    return f"{DRAINED_TAG}/{cluster}"


def team_namespace(team: str) -> str:
    """Return the namespace of a team of HyperPod task governance, which chose the name."""
    return f"hyperpod-ns-{team}"


def compute_quota(cluster: str, team: str) -> str:
    """Return the name of a team's quota. No page says whether clusters of an account share them.

    A name that would be too long for SageMaker ends in a digest of it.

    Source: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_CreateComputeQuota.html
    """
    name = f"{cluster}-{team}"
    if len(name) <= _SAGEMAKER_NAME:
        return name
    digest = sha256(name.encode()).hexdigest()[:_DIGITS]
    return f"{name[: _SAGEMAKER_NAME - _DIGITS - 1].rstrip('-')}-{digest}"


def team_queue(team: str) -> str:
    """Return the queue that jobs of a team of HyperPod task governance name.

    Source:
    https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-operate-console-ui-governance-cli.html
    """
    return f"{team_namespace(team)}-localqueue"


QUEUE_LABEL = object_keys.QUEUE_LABEL
# Source: https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-operate-console-ui-governance-tasks-scheduling.html
QUEUE_PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"
# Kueue puts it on the pods of a job when it admits the job, and takes it off when it stops the job.
# Source: https://github.com/kubernetes-sigs/kueue/blob/v0.19.2/pkg/constants/constants.go
QUEUED_POD_LABEL = "kueue.x-k8s.io/podset"
# Kueue holds back the pods of a LeaderWorkerSet by it until it has admitted their replica.
# Source: https://github.com/kubernetes-sigs/kueue/blob/v0.19.2/pkg/controller/jobs/pod/constants/constants.go
QUEUE_GATE = "kueue.x-k8s.io/admission"
QUEUED_PODS_POLICY = "ultrascale-queued-pods"
NODE_ISOLATION_POLICY = "ultrascale-node-isolation"


def queue_priority(priority_class: str) -> str:
    """Return task governance's own name of a priority class."""
    return f"{priority_class}-priority"


def alarm_topic(cluster: str) -> str:
    """Return the SNS topic of a cluster's alarms; each stack's alarms name it."""
    return f"{cluster}-alarms"


def dashboard(cluster: str, region: str) -> str:
    """Return the name of a cluster's CloudWatch dashboard.

    Dashboards are the account's, not a Region's: one of the same name would be overwritten.

    Source: https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutDashboard.html
    """
    return f"{cluster}-{region}"


def placement_group(pool: str) -> str:
    """Return the placeholder for the name of a pool's placement group, which EC2 makes up."""
    return f"${{PLACEMENT_GROUP_{pool.upper().replace('-', '_')}}}"


def calendar_group(pool: str) -> str:
    """Return the Kubernetes group of the function that keeps the calendar of a NodePool."""
    return f"ultrascale:block-calendar:{pool}"


# Kubernetes groups of people: of all people in the file, and by their rights in a namespace.
ACCESS_GROUP = "ultrascale:access"
READER_ROLE = "ultrascale-access-reader"
VIEW_ROLE, QUEUE_ROLE, EDIT_ROLE = (
    f"ultrascale-jobs-{level}" for level in ("view", "queue", "edit")
)
# The weakest first.
_JOB_ROLES = (VIEW_ROLE, QUEUE_ROLE, EDIT_ROLE)


def access_group(role: str, namespace: str | None, queue: str | None = None) -> str:
    """Return the Kubernetes group of people with a ClusterRole for jobs.

    Args:
        role: The ClusterRole.
        namespace: Namespace of their rights; None: the whole cluster.
        queue: The queue that their jobs may name; None: any.
    """
    return ":".join(filter(None, (ACCESS_GROUP, role, namespace, queue)))


def is_access_group(group: str) -> bool:
    """Return whether a Kubernetes group is one of people in the file."""
    return group == ACCESS_GROUP or group.startswith(f"{ACCESS_GROUP}:")


def group_includes(group: str, other: str) -> bool:
    """Return whether a Kubernetes group has all rights of another one, by their names."""
    if not all(name.startswith(f"{ACCESS_GROUP}:") for name in (group, other)):
        return group == other
    (role, has), (wanted_role, wanted) = _role_and_scope(group), _role_and_scope(other)
    # A role with one queue reads all jobs of the namespace.
    reads = (role, wanted_role) == (QUEUE_ROLE, VIEW_ROLE) and has[:1] == wanted
    stronger = _JOB_ROLES.index(role) >= _JOB_ROLES.index(wanted_role)
    return reads or (stronger and wanted[: len(has)] == has)


def _role_and_scope(group: str) -> tuple[str, list[str]]:
    role, *bounds = group.removeprefix(f"{ACCESS_GROUP}:").split(":")
    return role, bounds


# Stands for the account, which CloudFormation alone knows.
ACCOUNT_ID = "${AWS_ACCOUNT_ID}"

# Stands for the URL of the termination queue, which has the account's number in it.
TERMINATION_QUEUE_URL = "${TERMINATION_QUEUE_URL}"

# The access policy of a cluster's administrators.
CLUSTER_ADMIN_POLICY = eks.CLUSTER_ADMIN_POLICY
# Service account of the driver of Mountpoint for S3, which all mounts of a node share.
MOUNTPOINT_ACCOUNT = mountpoint.SERVICE_ACCOUNT

INSTANCE_TYPE_LABEL = eks.INSTANCE_TYPE_LABEL
ZONE_LABEL = eks.ZONE_LABEL
HOSTNAME_LABEL = kubernetes.HOSTNAME_LABEL
NEURON_DEVICE = kubernetes.NEURON_DEVICE
NEURON_CORE = kubernetes.NEURON_CORE
NVIDIA_GPU = "nvidia.com/gpu"
# NVIDIA's charts look for it where no program discovers a node's devices. Ours sets it on every
# pool with NVIDIA GPUs, and its plugin and exporter run nowhere else.
GPU_PRESENT_LABEL = "nvidia.com/gpu.present"
# The Cluster Autoscaler takes it as a sign that a node's GPUs are still to come, and launches no
# second node meanwhile. A Neuron node with it would never count as ready.
# Source: https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/cloudprovider/aws/README.md#gpu-node-groups
AUTOSCALER_GPU_LABEL = "k8s.amazonaws.com/accelerator"
# Source: https://kubernetes.io/docs/reference/labels-annotations-taints/
ARCHITECTURE_LABEL = "kubernetes.io/arch"
# Version of the document in a node's user data for nodeadm.
NODE_CONFIG_API_VERSION = eks.NODE_CONFIG_API_VERSION
# The device plugin's resource, and the key of the taint that reserves nodes for it.
EFA_INTERFACE = kubernetes.EFA_INTERFACE
HUGE_PAGES = kubernetes.HUGE_PAGES
# On a claim: its path in a job's containers, for other writers of job pods.
MOUNT_PATH_ANNOTATION = "ultrascale.dev/mount-path"


def network_layer_label(layer: int) -> str:
    """Return the label of a node's group in a layer of AWS's network, 1 the broadest.

    Source:
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-topology-prerequisites.html
    """
    return f"topology.k8s.aws/network-node-layer-{layer}"
