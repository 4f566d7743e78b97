"""The quota that a purchase counts against."""

from ultrascale import catalog
from ultrascale.account import Account
from ultrascale.catalog import quotas
from ultrascale.errors import UnansweredError
from ultrascale.offers.model import Offer

ACTION = "servicequotas:GetServiceQuota"
_NOT_SET = "NoSuchResourceException"


def quota_of(offer: Offer, account: Account) -> str:
    """Return what is known of the quota on concurrent Capacity Blocks, or on training plans.

    Args:
        offer: What is to be bought.
        account: Who asks.
    """
    if offer.option == "training-plan":
        return (
            "SageMaker's on training plans, by instance type, of which no codes are published: "
            f"`aws service-quotas list-service-quotas --service-code sagemaker --region "
            f"{offer.region}`"
        )
    spec = catalog.lookup(offer.instance_type)
    if not spec.knows("capacity_block_quota_code"):
        return f"unknown: no quota is published for Capacity Blocks of {offer.instance_type}"
    quota = quotas.service_quota(spec.capacity_block_quota_code)
    name = f"{quota.name} ({quota.code})"
    try:
        told = account.ask(
            account.client("service-quotas", offer.region).get_service_quota,
            ServiceCode=quota.service,
            QuotaCode=quota.code,
        )
    except UnansweredError as error:
        if error.code != _NOT_SET:
            return f"{name}: unknown: {error}"
        value, known = quota.default or 0, f"{quota.default} unless AWS has raised it"
    else:
        value = told["Quota"]["Value"]
        # Whether it counts blocks or vCPUs, AWS's pages do not say.
        known = f"{value:g} in all, what is held already included"
    if value:
        return f"{name}: {known}"
    return (
        f"{name}: {known}; AWS refuses the purchase until it is raised: `aws service-quotas "
        f"request-service-quota-increase --service-code {quota.service} --quota-code {quota.code} "
        f"--region {offer.region} --desired-value NUMBER`"
    )
