"""SageMaker training plans: what is sold as one.

Sources:
    https://docs.aws.amazon.com/sagemaker/latest/dg/reserve-capacity-with-training-plans.html
    https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_SearchTrainingPlanOfferings.html
    https://github.com/boto/botocore/blob/1.44.5/botocore/data/sagemaker/2017-07-24/service-2.json
    (the instance types)
"""

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

SIZES = (1, 2, 4, 8, 16, 32, 64)
"""Instances of a plan, by the guide. The API takes other counts too; whether it ever offers them is
not documented."""

TARGET = "hyperpod-cluster"
"""What a plan is bought for. A plan serves one target only, and cannot be changed to another."""
