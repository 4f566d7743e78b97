"""SageMaker training plans: what is sold as one.

Sources:
    https://docs.aws.amazon.com/sagemaker/latest/dg/reserve-capacity-with-training-plans.html
    https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_SearchTrainingPlanOfferings.html
    https://github.com/boto/botocore/blob/1.44.5/botocore/data/sagemaker/2017-07-24/service-2.json
    (the instance types)
"""

from datetime import timedelta

INSTANCE_TYPES = frozenset(
    {
        *("p4d.24xlarge", "p4de.24xlarge"),
        *("p5.4xlarge", "p5.48xlarge", "p5e.48xlarge", "p5en.48xlarge"),
        *("p6-b200.48xlarge", "p6-b300.48xlarge", "p6e-gb200.36xlarge"),
        *("trn1.32xlarge", "trn2.48xlarge"),
    }
)
"""Types that plans are sold of, by their EC2 names."""

LONGEST_DAYS = 182
"""Most days of a plan; plans are sold by the day."""

MOST_INSTANCES = 256
"""Most instances that a search takes. Plans of more than 64 may not be on offer: the guide names
1, 2, 4, 8, 16, 32 and 64."""

LONGEST_AHEAD = timedelta(weeks=8)
"""How long before its start a plan is sold at the earliest."""

TARGET = "hyperpod-cluster"
"""What a plan is bought for. A plan serves one target only, and cannot be changed to another."""
