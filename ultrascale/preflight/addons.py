"""EKS add-ons of the plan, compared with the versions that EKS offers.

Source: https://docs.aws.amazon.com/eks/latest/APIReference/API_DescribeAddonVersions.html
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ultrascale.errors import UnansweredError
from ultrascale.plan.model import AddonPlan, ClusterPlan
from ultrascale.preflight.model import Check, Context, Finding, unknown

if TYPE_CHECKING:
    from mypy_boto3_eks.type_defs import AddonInfoTypeDef as Addon
    from mypy_boto3_eks.type_defs import AddonVersionInfoTypeDef as AddonVersion
    from mypy_boto3_eks.type_defs import CompatibilityTypeDef as Compatibility

_NAME = "addons"
_ACTION = "eks:DescribeAddonVersions"
_SHOWN = 3


def _run(context: Context) -> Iterator[Finding]:
    version = context.plan.control_plane.version
    for addon in addons_of(context.plan):
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


def addons_of(plan: ClusterPlan) -> tuple[AddonPlan, ...]:
    """Return the add-ons that ``plan`` installs."""
    addons = [*plan.control_plane.node_addons, *plan.control_plane.workload_addons]
    if plan.hyperpod is not None and plan.hyperpod.governance is not None:
        addons.append(plan.hyperpod.governance.addon)
    if plan.observability is not None:
        addons.append(plan.observability.addon)
        if plan.observability.hyperpod_addon is not None:
            addons.append(plan.observability.hyperpod_addon)
    return tuple(addons)


def addon_finding(addon: AddonPlan, version: str, addons: "Sequence[Addon]") -> Finding:
    """Return whether EKS offers an add-on in the version of the plan.

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


ADDONS = Check(
    name=_NAME,
    title="EKS offers the add-ons in their pinned versions",
    actions=(_ACTION,),
    run=_run,
)
