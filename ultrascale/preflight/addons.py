"""EKS add-ons of the plan: the versions that EKS offers, and the configuration that EKS accepts.

Sources:
    https://docs.aws.amazon.com/eks/latest/APIReference/API_DescribeAddonVersions.html
    https://docs.aws.amazon.com/eks/latest/APIReference/API_DescribeAddonConfiguration.html
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from jsonschema.exceptions import SchemaError
from jsonschema.validators import validator_for

from ultrascale.documents import Json, mapping
from ultrascale.errors import UnansweredError
from ultrascale.plan.model import AddonPlan
from ultrascale.preflight.model import Check, Context, Finding, unknown

if TYPE_CHECKING:
    from mypy_boto3_eks.type_defs import AddonInfoTypeDef as Addon
    from mypy_boto3_eks.type_defs import AddonVersionInfoTypeDef as AddonVersion
    from mypy_boto3_eks.type_defs import CompatibilityTypeDef as Compatibility

_NAME = "addons"
_ACTION = "eks:DescribeAddonVersions"
_SHOWN = 3
_CONFIGURATION = "addon-configuration"
_CONFIGURATION_ACTION = "eks:DescribeAddonConfiguration"


def _addon_findings(context: Context) -> Iterator[Finding]:
    version = context.plan.control_plane.version
    for addon in context.plan.addons:
        try:
            addons = context.account.ask_all(
                context.account.client("eks").describe_addon_versions,
                lambda page: page["addons"],
                addonName=addon.name,
                kubernetesVersion=version,
            )
        except UnansweredError as error:
            yield unknown(_NAME, addon.name, error)
        else:
            yield addon_finding(addon, version, addons)


def addon_finding(addon: AddonPlan, version: str, addons: "Sequence[Addon]") -> Finding:
    """Return the finding whether EKS offers an add-on in the planned version.

    Args:
        addon: The add-on.
        version: Kubernetes version of the cluster.
        addons: EKS's offers of the add-on for that version.
    """
    offered = [
        version_info
        for entry in addons
        if entry["addonName"] == addon.name
        for version_info in entry.get("addonVersions", ())
        if any(_suits(fits, version) for fits in version_info.get("compatibilities", ()))
    ]
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
        document = dict(mapping(json.loads(schema)))
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
    return json.loads(json.dumps(configuration))


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
