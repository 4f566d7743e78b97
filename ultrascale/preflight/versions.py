"""Versions of Kubernetes and its add-ons, control-plane tier and machine images of the plan.

Sources:
    https://docs.aws.amazon.com/eks/latest/APIReference/API_DescribeClusterVersions.html
    https://docs.aws.amazon.com/eks/latest/userguide/kubernetes-versions.html
    https://docs.aws.amazon.com/eks/latest/userguide/retrieve-ami-id.html
    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_Image.html
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from jsonschema.exceptions import SchemaError
from jsonschema.validators import validator_for

from ultrascale import config
from ultrascale.catalog import eks
from ultrascale.catalog.recorded import VersionFacts
from ultrascale.documents import Json, mapping, parse_json
from ultrascale.errors import UnansweredError
from ultrascale.findings import Difference, Finding, Issue, as_text, finding, unknown
from ultrascale.plan.model import AddonPlan, PoolPlan
from ultrascale.preflight.model import Check, Context
from ultrascale.preflight.reservation_fields import in_utc

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import FilterTypeDef
    from mypy_boto3_ec2.type_defs import ImageTypeDef as Image
    from mypy_boto3_eks.type_defs import AddonInfoTypeDef as Addon
    from mypy_boto3_eks.type_defs import AddonVersionInfoTypeDef as AddonVersion
    from mypy_boto3_eks.type_defs import ClusterVersionInformationTypeDef as ClusterVersion
    from mypy_boto3_eks.type_defs import CompatibilityTypeDef as Compatibility
    from mypy_boto3_eks.type_defs import ControlPlaneScalingTierInfoTypeDef as ScalingTier

    from ultrascale.account import Account


_VERSION, _IMAGES = "kubernetes-version", "machine-images"
_VERSIONS_ACTION = "eks:DescribeClusterVersions"
_PARAMETERS, _DESCRIBE_IMAGES = "ssm:GetParameters", "ec2:DescribeImages"
# Our own figure: it takes weeks to test and upgrade all nodes.
_SOON = timedelta(days=60)
# The most names of one GetParameters request.
# Source: https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_GetParameters.html
_PARAMETERS_AT_ONCE = 10
_UPGRADE = "choose another kubernetes.version before you build on this one"
# EKS writes the Kubernetes release into the description of its images: ``(k8s: 1.35.8, …)``.
_RELEASE = re.compile(r"k8s: (\d+\.\d+\.\d+)")


def _run_version(context: Context) -> Iterator[Finding]:
    plan = context.plan.control_plane
    versions_on_offer = context.account.ask_all(
        context.account.client("eks").describe_cluster_versions,
        lambda page: page["clusterVersions"],
        clusterVersions=[plan.version],
    )
    answer = next(
        (offer for offer in versions_on_offer if offer.get("clusterVersion") == plan.version), None
    )
    if answer is None:
        evidence = f"EKS offers no version {plan.version} in {context.plan.region}"
        yield Finding(
            check=_VERSION, subject=plan.version, state="fail", evidence=evidence, fix=_UPGRADE
        )
        return
    standard = in_utc(answer.get("endOfStandardSupportDate"))
    fine = f"{answer.get('versionStatus', '')}, standard support to {_day_text(standard)}"
    yield finding(_VERSION, plan.version, version_issues(answer, context.at), fine=fine)
    yield tier_finding(plan.tier, plan.facts, answer)


def version_issues(answer: "ClusterVersion", at: datetime) -> Iterator[Issue]:
    """Yield the issues of a Kubernetes version.

    Args:
        answer: The version, as EKS describes it.
        at: The time that counts as now, in UTC.
    """
    status = answer.get("versionStatus")
    standard, extended = (
        in_utc(answer.get("endOfStandardSupportDate")),
        in_utc(answer.get("endOfExtendedSupportDate")),
    )
    if status == "UNSUPPORTED" or (extended is not None and extended <= at):
        evidence = f"versionStatus is {status}, extended support to {_day_text(extended)}"
        yield Issue(state="fail", evidence=evidence, fix=_UPGRADE)
    elif status is None and standard is None:
        evidence = "EKS reports neither versionStatus nor an end of support"
        yield Issue(state="unknown", evidence=evidence, fix="look at the page of EKS's versions")
    elif status == "EXTENDED_SUPPORT" or (standard is not None and standard <= at):
        evidence = (
            f"standard support ended {_day_text(standard)}: the cluster costs more by the hour, to "
            f"{_day_text(extended)}"
        )
        yield Issue(state="warn", evidence=evidence, fix=_UPGRADE)
    elif standard is not None and standard - at < _SOON:
        days = (standard - at).days
        evidence = f"standard support ends {_day_text(standard)}, in {days} days"
        yield Issue(state="warn", evidence=evidence, fix=_UPGRADE)


def tier_finding(tier: str, facts: VersionFacts, answer: "ClusterVersion") -> Finding:
    """Return the finding whether EKS offers a control-plane tier with the plan's limits.

    Args:
        tier: EKS's name of the tier.
        facts: The limits that the plan counts with.
        answer: The Kubernetes version, as EKS describes it.
    """
    if tier not in facts.tiers:
        return Finding(
            check=_VERSION,
            subject=f"tier {tier}",
            state="pass",
            evidence="every cluster may have it; it has no fixed limits",
        )
    offered = offered_tiers(answer)
    offer = offered.get(tier)
    if offer is None:
        listed = ", ".join(sorted(offered))
        return Finding(
            check=_VERSION,
            subject=f"tier {tier}",
            state="fail" if offered else "unknown",
            evidence=f"EKS offers {listed}" if offered else "EKS says no controlPlaneScalingTiers",
            fix="choose another kubernetes.control_plane_tier, or ask your account team",
        )
    differences = tuple(_tier_differences(facts.tiers[tier], offer))
    if not differences:
        evidence = "EKS says the limits that the plan counts with"
        return Finding(check=_VERSION, subject=f"tier {tier}", state="pass", evidence=evidence)
    # A cluster that is planned for more than its tier has stands still under load.
    is_less = any(int(difference.found) < int(difference.wanted) for difference in differences)
    return Finding(
        check=_VERSION,
        subject=f"tier {tier}",
        state="fail" if is_less else "warn",
        evidence=as_text(differences, ours="the plan", theirs="EKS"),
        fix=f"{config.RECORD_FACTS}: the plan counts with EKS's limits then",
    )


def offered_tiers(answer: "ClusterVersion") -> "Mapping[str, ScalingTier]":
    """Return the control-plane tiers of a Kubernetes version by the catalog's names."""
    # No page says whether tier names begin with ``tier-`` here, too.
    return {
        f"tier-{_tier_number(each.get('tierName', ''))}": each
        for each in answer.get("controlPlaneScalingTiers", ())
    }


LIMITS: Mapping[str, str] = {
    "apiRequestConcurrency": "api_seats",
    "podSchedulingRatePerSecond": "pods_per_second",
    "clusterDatabaseSizeGb": "database_gb",
}
"""The catalog's name of each limit of a tier, by EKS's name."""


def _tier_differences(limits: eks.TierLimits, answer: "ScalingTier") -> Iterator[Difference]:
    for field, name in LIMITS.items():
        found, wanted = answer.get(field), getattr(limits, name)
        if found is not None and found != wanted:
            yield Difference(field=field, found=str(found), wanted=str(wanted))


def _run_images(context: Context) -> Iterator[Finding]:
    pools = pinned_images(context.plan.all_pools)
    names = list(pools)
    ids: dict[str, str] = {}
    for start in range(0, len(names), _PARAMETERS_AT_ONCE):
        some = names[start : start + _PARAMETERS_AT_ONCE]
        answer = context.account.ask(context.account.client("ssm").get_parameters, Names=some)
        ids |= {parameter["Name"]: parameter["Value"] for parameter in answer.get("Parameters", ())}
    images: dict[str, Image] = {}
    if ids:
        filters: list[FilterTypeDef] = [{"Name": "image-id", "Values": sorted(set(ids.values()))}]
        described = context.account.ask_all(
            context.account.client("ec2").describe_images,
            lambda page: page["Images"],
            Filters=filters,
            IncludeDeprecated=True,
        )
        images = {image["ImageId"]: image for image in described}
    for name, pool in pools.items():
        id = ids.get(name)
        yield image_finding(name, pool, id, images.get(id or ""), context.at)


def pinned_images(pools: Sequence[PoolPlan]) -> Mapping[str, PoolPlan]:
    """Return the public parameters of the images of ``pools``, with a pool that uses the image.

    EKS Auto Mode and HyperPod choose their own images.
    """
    own = [pool_plan for pool_plan in pools if pool_plan.facts.runs_pinned_image]
    return {pool.ami_parameter: pool for pool in reversed(own)}


def image_finding(
    parameter: str, pool: PoolPlan, id: str | None, image: "Image | None", at: datetime
) -> Finding:
    """Return the finding whether a pinned image can be launched.

    Args:
        parameter: Public parameter with the image's id.
        pool: A pool that uses it.
        id: Value of the parameter; None where the parameter does not exist.
        image: The image, as EC2 describes it; None where EC2 knows no such id.
        at: The time that counts as now, in UTC.
    """
    subject = f"{pool.ami_type} {pool.ami_release}"
    newer = "set a newer release in ultrascale/catalog/ami_releases.csv"
    if id is None:
        evidence = f"there is no public parameter {parameter}"
        return Finding(check=_IMAGES, subject=subject, state="fail", evidence=evidence, fix=newer)
    wrong: list[Issue] = []
    if image is None or image.get("State", "available") != "available":
        state = "not there" if image is None else image["State"]
        wrong.append(Issue(state="fail", evidence=f"the image {id} is {state}", fix=newer))
    else:
        wrong += _image_issues(pool, id, image, at)
    return finding(_IMAGES, subject, wrong, fine=f"{id} for {pool.ami_alias}")


def _image_issues(pool: PoolPlan, id: str, image: "Image", at: datetime) -> Iterator[Issue]:
    release = pool.ami_release.partition("-")[0]
    said = _RELEASE.search(image.get("Description", ""))
    if said is not None and said[1] != release:
        evidence = f"the image {id} has Kubernetes {said[1]}, the plan pins {release}"
        fix = "set the release in ultrascale/catalog/ami_releases.csv to the image's"
        yield Issue(state="fail", evidence=evidence, fix=fix)
    deprecated = image.get("DeprecationTime")
    if deprecated and datetime.fromisoformat(deprecated) <= at:
        evidence = f"the image {id} is deprecated since {deprecated}: it gets no security fixes"
        fix = "set a newer release in ultrascale/catalog/ami_releases.csv"
        yield Issue(state="warn", evidence=evidence, fix=fix)


def _tier_number(tier: str) -> str:
    return tier.lower().removeprefix("tier-")


def _day_text(time: datetime | None) -> str:
    return "a day that EKS does not say" if time is None else f"{time:%Y-%m-%d}"


KUBERNETES_VERSION = Check(
    name=_VERSION,
    title="EKS offers the Kubernetes version and the control-plane tier",
    actions=(_VERSIONS_ACTION,),
    run=_run_version,
)
MACHINE_IMAGES = Check(
    name=_IMAGES,
    title="the nodes' pinned machine images are there",
    actions=(_PARAMETERS, _DESCRIBE_IMAGES),
    run=_run_images,
    resources={_PARAMETERS: "arn:{partition}:ssm:{region}::parameter/aws/service/*"},
)


# --- EKS add-ons of the plan: the versions that EKS offers, and the configuration that EKS accepts
# Sources:
#     https://docs.aws.amazon.com/eks/latest/APIReference/API_DescribeAddonVersions.html
#     https://docs.aws.amazon.com/eks/latest/APIReference/API_DescribeAddonConfiguration.html


_NAME = "addons"
_ACTION = "eks:DescribeAddonVersions"
_SHOWN = 3
_CONFIGURATION = "addon-configuration"
_CONFIGURATION_ACTION = "eks:DescribeAddonConfiguration"


def _addon_findings(context: Context) -> Iterator[Finding]:
    version = context.plan.control_plane.version
    for addon in context.plan.addons:
        try:
            addons = offered_addons(context.account, addon.name, version)
        except UnansweredError as error:
            yield unknown(_NAME, addon.name, error)
        else:
            yield addon_finding(addon, version, addons)


def offered_addons(account: "Account", name: str, version: str) -> "Sequence[Addon]":
    """Return EKS's offers of an add-on for a Kubernetes version.

    Raises:
        UnansweredError: EKS did not answer.
    """
    return account.ask_all(
        account.client("eks").describe_addon_versions,
        lambda page: page["addons"],
        addonName=name,
        kubernetesVersion=version,
    )


def offered_builds(name: str, version: str, addons: "Sequence[Addon]") -> "Sequence[AddonVersion]":
    """Return the builds of an add-on that suit a Kubernetes version, the newest first."""
    return [
        build
        for entry in addons
        if entry["addonName"] == name
        for build in entry.get("addonVersions", ())
        if any(_suits(fits, version) for fits in build.get("compatibilities", ()))
    ]


def addon_finding(addon: AddonPlan, version: str, addons: "Sequence[Addon]") -> Finding:
    """Return the finding whether EKS offers an add-on in the planned version.

    Args:
        addon: The add-on.
        version: Kubernetes version of the cluster.
        addons: EKS's offers of the add-on for that version.
    """
    offered = offered_builds(addon.name, version, addons)
    if any(version_info["addonVersion"] == addon.version for version_info in offered):
        evidence = f"{addon.version} is offered for Kubernetes {version}"
        return Finding(check=_NAME, subject=addon.name, state="pass", evidence=evidence)
    defaults = [
        version_info["addonVersion"]
        for version_info in offered
        if _is_default(version_info, version)
    ]
    newest = [version_info["addonVersion"] for version_info in offered[:_SHOWN]]
    listed = f"it offers {', '.join(newest)}" if newest else "it offers none"
    best = (defaults or newest or [None])[0]
    fix = f'set kubernetes.addons: {{{addon.name}: "{best}"}}' if best else None
    return Finding(
        check=_NAME,
        subject=addon.name,
        state="fail",
        evidence=f"EKS does not offer {addon.version} for Kubernetes {version}; {listed}",
        fix=fix or "choose another kubernetes.version or Region",
    )


def _suits(compatibility: "Compatibility", version: str) -> bool:
    return compatibility.get("clusterVersion") == version


def _is_default(offer: "AddonVersion", version: str) -> bool:
    fits = offer.get("compatibilities", ())
    return any(fit.get("defaultVersion") for fit in fits if _suits(fit, version))


def _run_configuration(context: Context) -> Iterator[Finding]:
    for addon in context.plan.addons:
        if not addon.configuration:
            continue
        try:
            answer = context.account.ask(
                context.account.client("eks").describe_addon_configuration,
                addonName=addon.name,
                addonVersion=addon.version,
            )
        except UnansweredError as error:
            yield unknown(_CONFIGURATION, addon.name, error)
        else:
            yield configuration_finding(addon, answer.get("configurationSchema", ""))


def configuration_finding(addon: AddonPlan, schema: str) -> Finding:
    """Return the finding whether an add-on's schema allows the planned configuration.

    EKS refuses values that the schema does not allow, and CloudFormation rolls the stack back.

    Args:
        addon: The add-on.
        schema: JSON schema that EKS gives for the add-on's version; empty where it gives none.
    """
    try:
        document = dict(mapping(parse_json(schema)))
        if not document:
            raise ValueError(schema)
        validator = validator_for(document)
        validator.check_schema(document)
        errors = [*validator(document).iter_errors(_plain_json(addon.configuration))]
    except (ValueError, SchemaError):
        return Finding(
            check=_CONFIGURATION,
            subject=addon.name,
            state="unknown",
            evidence=f"EKS gives no JSON schema for {addon.version}",
            fix="compare the add-on's values with its documentation before you deploy",
        )
    wrong = [f"{error.json_path.removeprefix('$.')}: {error.message}" for error in errors]
    if not wrong:
        evidence = f"{addon.version} takes {', '.join(sorted(addon.configuration))}"
        return Finding(check=_CONFIGURATION, subject=addon.name, state="pass", evidence=evidence)
    more = f"; and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
    return Finding(
        check=_CONFIGURATION,
        subject=addon.name,
        state="fail",
        evidence=f"{addon.version} refuses {'; '.join(wrong[:_SHOWN])}{more}",
        fix="pin a version that takes them in kubernetes.addons, or report it: we write the values",
    )


def _plain_json(configuration: Mapping[str, object]) -> Json:
    """Return a configuration as plain JSON values: the schema's check takes no tuples for lists."""
    return parse_json(json.dumps(configuration))


ADDONS = Check(
    name=_NAME,
    title="EKS offers the add-ons in their pinned versions",
    actions=(_ACTION,),
    run=_addon_findings,
)

ADDON_CONFIGURATION = Check(
    name=_CONFIGURATION,
    title="EKS takes the configuration of the add-ons",
    actions=(_CONFIGURATION_ACTION,),
    run=_run_configuration,
)
