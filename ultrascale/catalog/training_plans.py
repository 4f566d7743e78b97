"""SageMaker training plans: lengths and sizes for sale.

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
"""Instance counts of a plan, by the guide. The API takes other counts too; no page says whether AWS
offers them.
"""

TYPE_PREFIX = "ml."
"""Prefix of the instance type in every API of SageMaker."""

RECLAIMED_EARLY_MINUTES = 60
"""Minutes before the end of a plan at which HyperPod takes its instances back."""

TARGET = "hyperpod-cluster"
"""Purchase target of a training plan; it cannot be changed after the purchase."""
