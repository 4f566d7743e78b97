"""HyperPod's training operator, its jobs, and the agent that images of its jobs must hold.

The operator is an EKS add-on without public source. The fields of its jobs are known from AWS's
own client; the agent's source is on PyPI.

Sources:
    https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-eks-operator-install.html
    https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-eks-operator-usage.html
    https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-eks-elastic-training.html
    https://github.com/aws/sagemaker-hyperpod-cli/blob/main/src/sagemaker/hyperpod/training/config/hyperpod_pytorch_job_unified_config.py
    https://pypi.org/project/hyperpod-elastic-agent/1.1.3/
"""

NAMESPACE = "aws-hyperpod"
SERVICE_ACCOUNT = "hp-training-operator-controller-manager"

# AWS's policy lets the operator describe nodes only of HyperPod clusters with this tag.
# Source: https://docs.aws.amazon.com/aws-managed-policy/latest/reference/AmazonSageMakerHyperPodTrainingOperatorAccess.html
CLUSTER_TAG = ("SageMaker", "true")

API_VERSION = "sagemaker.amazonaws.com/v1"
KIND = "HyperPodPyTorchJob"
# Label that the operator sets on the pods of a job, which are named JOB-REPLICAS-INDEX.
# Source: https://github.com/aws/sagemaker-hyperpod-cli/blob/main/src/sagemaker/hyperpod/training/hyperpod_pytorch_job.py
JOB_NAME = "HPJob"

# The agent is torchrun with the operator as rendezvous: the operator starts it by HTTP.
AGENT = "hyperpod-elastic-agent"
LAUNCHER = "hyperpodrun"
AGENT_PORT = 8080
AGENT_TORCH = "PyTorch 2.4 to 2.11"
# Without this option the agent's `elastic_event_detected` is always false.
ELASTIC_EVENTS = ("HYPERPOD_SIGNAL_COORDINATION", "distributed")

# Window in which restarts are counted, as in all of AWS's examples.
RESTART_PERIOD_SECONDS = 21_600

# Seconds, as in AWS's example of elastic training: for a checkpoint, before the operator adds
# nodes, and for a missing node before it goes on with fewer.
GRACEFUL_SHUTDOWN_SECONDS = 600
SCALING_SECONDS = 60
FAULTY_SCALE_DOWN_SECONDS = 30

# The agent of each pod reads its processes' output. If a rule has matched in a process and then
# does not match for this time, the process counts as hung, and the operator restarts the job; a
# process without any match is left alone. A step, a validation and a checkpoint are shorter.
# Source: https://pypi.org/project/hyperpod-elastic-agent/1.1.3/ (logagent/log_agent.py)
HANG_SECONDS = 1800
PROGRESS_PATTERN = r".*progress step=\d+.*"
"""Pattern of the line that our programs print on rank 0 once a log interval."""
STRAGGLER_PATTERN = r".*straggler step=\d+ node=.* ratio=(\d+\.\d+).*"
"""Pattern of the line that our programs print once for a slow node, with its slowdown factor.

The operator shows the line, with the node, in the state of the job.
"""
STRAGGLER_RATIO = 1  # each such line: the program has judged it against the noise

# The agent writes the output of processes to files, and reads only the first process's of each pod.
# Source: the same (elastic_agent/hyperpod_elastic_agent.py)
WATCHED_OUTPUT = "0:1"  # of the first process, its stdout, which goes to the pod's log as well
LOG_FOLDER = "/tmp/hyperpod"  # as in the agent's own images

# Types whose nodes task governance places by topology.
# Source: https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-operate-console-ui-governance-tasks-scheduling.html
PLACED_TYPES = frozenset(
    {
        *("p4d.24xlarge", "p4de.24xlarge", "p5.48xlarge", "p5e.48xlarge", "p5en.48xlarge"),
        *("p6e-gb200.36xlarge", "trn1.2xlarge", "trn1.32xlarge", "trn1n.32xlarge"),
        *("trn2.48xlarge", "trn2u.48xlarge", "p3dn.24xlarge"),
    }
)
# Layers that task governance knows, the broadest first.
NETWORK_LAYERS = 3
