"""Kubeflow's training operator, which AWS's HyperPod chart installs.

Sources:
    https://github.com/kubeflow/trainer/blob/v1.8.1/pkg/apis/kubeflow.org/v1/common_types.go
    https://github.com/kubeflow/trainer/blob/v1.8.1/pkg/apis/kubeflow.org/v1/pytorch_types.go
"""

# Labels that the operator sets on the pods of a job.
REPLICA_INDEX = "training.kubeflow.org/replica-index"
JOB_NAME = "training.kubeflow.org/job-name"

# The container by which the operator judges how a pod has ended. It refuses a job without one.
CONTAINER = "pytorch"

# Annotations with which HyperPod starts a job anew, from its last checkpoint, when a node fails.
# Source: https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-run-jobs-kubectl.html
AUTO_RESUME = "sagemaker.amazonaws.com/enable-job-auto-resume"
MOST_RESUMES = "sagemaker.amazonaws.com/job-max-retry-count"
