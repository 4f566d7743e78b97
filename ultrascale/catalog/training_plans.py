"""SageMaker training plans: lengths and sizes that are sold.

Sources:
    https://docs.aws.amazon.com/sagemaker/latest/dg/reserve-capacity-with-training-plans.html
    https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_SearchTrainingPlanOfferings.html
"""

from datetime import time

LONGEST_DAYS = 182
"""Most days of a plan; plans are sold by the day."""

ENDS_AT = time(11, 30)
"""Time of day at which every plan ends, in UTC."""

SIZES = (1, 2, 4, 8, 16, 32, 64)
"""Instances of a plan, by the guide. The API takes other counts too; whether it ever offers them is
not documented."""

TARGET = "hyperpod-cluster"
"""Target that a training plan is bought for; it cannot be changed to another one."""
