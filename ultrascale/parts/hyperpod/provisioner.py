"""HyperPod's row of the table of provisioners."""

from ultrascale.catalog import hyperpod
from ultrascale.catalog.provisioners import ProvisionerFacts

# Its image, and the device plugins, are its own or come with AWS's chart.
# Source: https://github.com/aws/sagemaker-hyperpod-cli/tree/main/helm_chart
# Its instances are in an account of AWS.
# Source: https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-operate-cli-command-update-cluster-software.html
FACTS = ProvisionerFacts(
    name="SageMaker HyperPod",
    word="HyperPod",
    in_account=False,
    type_prefix=hyperpod.TYPE_PREFIX,
    runs_pinned_image=False,
    brings_plugins=True,
    is_fixed=True,
    nodes_per_group=hyperpod.INSTANCES_PER_GROUP,
    types_per_group=hyperpod.TYPES_PER_GROUP,
    needs_controllers=True,
    keeps_subnets=True,
    is_dedicated=True,
    has_single_addresses=True,
    is_set_up_by_build=True,
    states_kernel=False,
    # AWS's example for ml.p5.48xlarge asks for them, but no page says whether every release of the
    # image sets any aside.
    sets_huge_pages_aside=False,
    are_shared=True,
    have_claims=True,
    labels={hyperpod.COMPUTE_TYPE: hyperpod.COMPUTE_TYPE_HYPERPOD},
    well=(hyperpod.HEALTH_STATUS, hyperpod.HEALTHY),
    passed=(hyperpod.DEEP_HEALTH_STATUS, hyperpod.DEEP_HEALTHY),
    window="training plan",
    repairs="HyperPod reboots or replaces it, by the fault",
    keeps_slots="kept: SageMaker replaces instances within the plan",
    renewed_by="HyperPod renews its nodes itself: aws sagemaker update-cluster-software, or "
    "batch-replace-cluster-nodes",
    upgraded_by="HyperPod renews its image by a call of its own, which drains no pods and replaces "
    "root volumes: `aws sagemaker update-cluster-software` between jobs, once the control "
    "plane is upgraded",
    resized_by="HyperPod keeps the count of the file; write it there as nodes.static, and deploy",
)
