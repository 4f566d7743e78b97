"""HyperPod's training operator, its jobs, and the agent that has to be in their images.

The operator is an EKS add-on without public source. Fields of its jobs are those of AWS's own
client; the agent's source is on PyPI.

Sources:
    https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-eks-operator-install.html
    https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-eks-operator-usage.html
    https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-eks-elastic-training.html
    https://github.com/aws/sagemaker-hyperpod-cli/blob/main/src/sagemaker/hyperpod/training/config/hyperpod_pytorch_job_unified_config.py
    https://pypi.org/project/hyperpod-elastic-agent/1.1.3/
"""

NAMESPACE = "aws-hyperpod"
SERVICE_ACCOUNT = "hp-training-operator-controller-manager"

# AWS's policy for the operator describes nodes of HyperPod clusters with this tag alone.
# Source: https://docs.aws.amazon.com/aws-managed-policy/latest/reference/AmazonSageMakerHyperPodTrainingOperatorAccess.html
CLUSTER_TAG = ("SageMaker", "true")

API_VERSION = "sagemaker.amazonaws.com/v1"
KIND = "HyperPodPyTorchJob"
# Label that it sets on the pods of a job, which it calls JOB-REPLICAS-INDEX.
# Source: https://github.com/aws/sagemaker-hyperpod-cli/blob/main/src/sagemaker/hyperpod/training/hyperpod_pytorch_job.py
JOB_NAME = "HPJob"

# The agent is torchrun with the operator for a rendezvous, which tells it by HTTP when to start.
AGENT = "hyperpod-elastic-agent"
LAUNCHER = "hyperpodrun"
AGENT_PORT = 8080
AGENT_TORCH = "PyTorch 2.4 to 2.11"
# Without it the agent's `elastic_event_detected` is always false.
ELASTIC_EVENTS = ("HYPERPOD_SIGNAL_COORDINATION", "distributed")

# Window in which restarts are counted, as in each of AWS's examples.
RESTART_PERIOD_SECONDS = 21_600

# As in AWS's example of elastic training: how long a checkpoint may take, how long the operator
# waits before it adds nodes, and how long for a node before it goes on with fewer.
GRACEFUL_SHUTDOWN_SECONDS = 600
SCALING_SECONDS = 60
FAULTY_SCALE_DOWN_SECONDS = 30

# The agent of each pod reads what its processes print. A rule that has matched once in a process
# and then no more for this time calls that process hung, and the operator restarts; processes that
# never match are left alone. A step, a validation and a checkpoint are shorter.
# Source: https://pypi.org/project/hyperpod-elastic-agent/1.1.3/ (logagent/log_agent.py)
HANG_SECONDS = 1800
PROGRESS_PATTERN = r".*progress step=\d+.*"
"""Line that our programs print on rank 0 once a log interval."""
STRAGGLER_PATTERN = r".*straggler step=\d+ node=.* ratio=(\d+\.\d+).*"
"""Line that they print once for a node that has become slow; its number is how many times slower.

The operator shows the line in the state of the job, and with it the node.
"""
STRAGGLER_RATIO = 1  # each such line: the program has judged it against the noise

# The agent reads the files that it has the output of processes written to, and of each pod the
# first process's alone. Source: the same (elastic_agent/hyperpod_elastic_agent.py)
WATCHED_OUTPUT = "0:1"  # of the first process, its stdout, which goes to the pod's log as well
LOG_FOLDER = "/tmp/hyperpod"  # as in the agent's own images

# Types whose nodes task governance places by AWS's network.
# Source: https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-operate-console-ui-governance-tasks-scheduling.html
PLACED_TYPES = frozenset(
    {
        *("p4d.24xlarge", "p4de.24xlarge", "p5.48xlarge", "p5e.48xlarge", "p5en.48xlarge"),
        *("p6e-gb200.36xlarge", "trn1.2xlarge", "trn1.32xlarge", "trn1n.32xlarge"),
        *("trn2.48xlarge", "trn2u.48xlarge", "p3dn.24xlarge"),
    }
)
# Layers that it knows, the broadest first.
NETWORK_LAYERS = 3
