"""A version, image or add-on that AWS has withdrawn fails a deployment half way."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.fake_aws import Refusal
from tests.support.preflight_context import NOW, file_plan, found, make_context, pools_plan, states
from ultrascale.catalog import eks
from ultrascale.catalog.recorded import VersionFacts
from ultrascale.findings import Finding
from ultrascale.plan.model import AddonPlan, ClusterPlan
from ultrascale.preflight.versions import (
    ADDON_CONFIGURATION,
    ADDONS,
    KUBERNETES_VERSION,
    MACHINE_IMAGES,
    configuration_finding,
    pinned_images,
    tier_finding,
)

VERSIONS, OFFERED = "eks:DescribeClusterVersions", "eks:DescribeAddonVersions"
CONFIGURATION = "eks:DescribeAddonConfiguration"
PARAMETERS, IMAGES = "ssm:GetParameters", "ec2:DescribeImages"
DAY = timedelta(days=1)


def version(**changes: Any) -> dict[str, Any]:
    """Return what EKS says of 1.35; None leaves a field out."""
    answer = {
        "clusterVersion": "1.35",
        "versionStatus": "STANDARD_SUPPORT",
        "endOfStandardSupportDate": datetime(2027, 3, 27, tzinfo=UTC),
        "endOfExtendedSupportDate": datetime(2028, 3, 27, tzinfo=UTC),
    } | changes
    return {key: value for key, value in answer.items() if value is not None}


@pytest.mark.parametrize(
    ("changes", "state", "text"),
    [
        ({}, "pass", "STANDARD_SUPPORT, standard support to 2027-03-27"),
        (
            {"endOfStandardSupportDate": NOW + 59 * DAY},
            "warn",
            "standard support ends 2027-01-19, in 59 days",
        ),
        (
            {"versionStatus": "EXTENDED_SUPPORT", "endOfStandardSupportDate": NOW - DAY},
            "warn",
            "standard support ended 2026-11-20: the cluster costs more by the hour, to 2028-03-27",
        ),
        ({"endOfStandardSupportDate": NOW}, "warn", "standard support ended 2026-11-21"),
        ({"versionStatus": "UNSUPPORTED"}, "fail", "versionStatus is UNSUPPORTED"),
        ({"endOfExtendedSupportDate": NOW}, "fail", "extended support to 2026-11-21"),
        (
            {"versionStatus": None, "endOfStandardSupportDate": None},
            "unknown",
            "EKS reports neither versionStatus nor an end of support",
        ),
    ],
)
def test_the_support_of_the_kubernetes_version_is_held_against_the_time(
    changes: dict[str, Any], state: str, text: str
) -> None:
    answers = {VERSIONS: {"clusterVersions": [version(**changes)]}}
    finding, tier = found(KUBERNETES_VERSION, pools_plan(), answers)
    assert (finding.subject, finding.state, tier.state) == ("1.35", state, "pass")
    assert text in finding.evidence


def tier(name: str, **changes: int) -> dict[str, Any]:
    limits = eks.TIER_LIMITS["tier-8xl"]
    return {
        "tierName": name,
        "apiRequestConcurrency": limits.api_seats,
        "podSchedulingRatePerSecond": limits.pods_per_second,
        "clusterDatabaseSizeGb": limits.database_gb,
    } | changes


@pytest.mark.parametrize(
    ("tiers", "state", "text"),
    [
        (
            [tier("tier-xl"), tier("tier-8xl")],
            "pass",
            "EKS says the limits that the plan counts with",
        ),
        ([tier("8XL")], "pass", "EKS says the limits"),
        ([tier("tier-xl")], "fail", "EKS offers tier-xl"),
        ([], "unknown", "EKS says no controlPlaneScalingTiers"),
        (
            [tier("tier-8xl", apiRequestConcurrency=9, clusterDatabaseSizeGb=20)],
            "fail",
            "apiRequestConcurrency is 9 in EKS, 16000 in the plan; "
            "clusterDatabaseSizeGb is 20 in EKS, 16 in the plan",
        ),
        ([tier("tier-8xl", clusterDatabaseSizeGb=20)], "warn", "clusterDatabaseSizeGb is 20"),
    ],
)
def test_the_tier_is_held_against_those_that_eks_offers(
    tiers: list[dict[str, Any]], state: str, text: str
) -> None:
    told: Any = version(controlPlaneScalingTiers=tiers)
    finding = tier_finding("tier-8xl", VersionFacts(), told)
    assert finding.state == state
    assert finding.evidence.startswith(text)
    assert (finding.fix is None) == (state == "pass")


# --- machine images -----------------------------------------------------------------------------


def images(plan: ClusterPlan, **changes: Any) -> list[Finding]:
    """Return what is found where each parameter holds an image, with ``changes`` of each."""
    names = list(pinned_images(plan.all_pools))
    release = plan.all_pools[0].ami_release.partition("-")[0]
    image = {
        "State": "available",
        "Description": f"EKS-optimized Kubernetes node based on AL2023, (k8s: {release}, x: y)",
        "DeprecationTime": "2028-11-21T00:00:00.000Z",
    }
    there = [{"ImageId": f"ami-{number}"} | image | changes for number, _ in enumerate(names)]
    return found(
        MACHINE_IMAGES,
        plan,
        {
            PARAMETERS: {
                "Parameters": [
                    {"Name": name, "Value": f"ami-{number}"} for number, name in enumerate(names)
                ]
            },
            IMAGES: {"Images": there if changes.get("State") != "none" else []},
        },
    )


@pytest.mark.parametrize(
    ("changes", "state", "text"),
    [
        ({}, "pass", "ami-0 for al2023@v20260930"),
        ({"State": "none"}, "fail", "the image ami-0 is not there"),
        ({"State": "deregistered"}, "fail", "the image ami-0 is deregistered"),
        (
            {"Description": "(k8s: 1.35.2, x)"},
            "fail",
            "has Kubernetes 1.35.2, the plan pins 1.35.8",
        ),
        ({"Description": "something else"}, "pass", "ami-0 for"),
        ({"DeprecationTime": "2026-11-20T00:00:00.000Z"}, "warn", "ami-0 is deprecated since"),
    ],
)
def test_a_pinned_image_is_looked_up(changes: dict[str, Any], state: str, text: str) -> None:
    (finding,) = images(pools_plan(), **changes)
    assert finding.state == state
    assert text in finding.evidence


def test_each_image_of_a_plan_is_asked_for_and_one_that_is_missing_fails() -> None:
    plan = file_plan("mixed-capacity")
    arm, nvidia, neuron = (
        next(name for name in pinned_images(plan.all_pools) if f"/{variant}/" in name)
        for variant in ("standard", "nvidia", "neuron")
    )
    there = [{"Name": nvidia, "Value": "ami-1"}]
    answers = {
        PARAMETERS: {"Parameters": there, "InvalidParameters": [arm, neuron]},
        IMAGES: {"Images": [{"ImageId": "ami-1", "State": "available"}]},
    }
    context, aws = make_context(plan, answers)

    findings = [*MACHINE_IMAGES.run(context)]

    assert set(aws.parameters(PARAMETERS)[0]["Names"]) == {arm, nvidia, neuron}
    assert sorted(each.state for each in findings) == ["fail", "fail", "pass"]
    assert any(neuron in each.evidence for each in findings)


# --- add-ons ------------------------------------------------------------------------------------


def offers(request: dict[str, Any], *versions: str) -> dict[str, Any]:
    fits = [{"clusterVersion": request["kubernetesVersion"], "defaultVersion": False}]
    others = [{"clusterVersion": "1.29", "defaultVersion": True}]
    listed = [{"addonVersion": each, "compatibilities": fits} for each in versions]
    other = {"addonVersion": "v0.0.1-eksbuild.1", "compatibilities": others}
    return {"addons": [{"addonName": request["addonName"], "addonVersions": [*listed, other]}]}


def test_each_addon_is_found_in_its_pinned_version() -> None:
    plan = file_plan("hybrid-hyperpod")
    pinned = {addon.name: addon.version for addon in plan.addons}

    findings = found(
        ADDONS, plan, {OFFERED: lambda asked: offers(asked, pinned[asked["addonName"]])}
    )

    assert {each.subject for each in findings} == set(pinned)
    assert {"amazon-cloudwatch-observability", "amazon-sagemaker-hyperpod-taskgovernance"} <= set(
        pinned
    )
    assert {each.state for each in findings} == {"pass"}


def test_an_addon_version_that_is_withdrawn_fails_with_one_that_is_offered() -> None:
    findings = found(
        ADDONS, pools_plan(), {OFFERED: lambda asked: offers(asked, "v9.9.9-eksbuild.1")}
    )
    cni = next(each for each in findings if each.subject == "vpc-cni")
    assert cni.state == "fail"
    assert "for Kubernetes 1.35; it offers v9.9.9-eksbuild.1" in cni.evidence
    assert cni.fix == 'set kubernetes.addons: {vpc-cni: "v9.9.9-eksbuild.1"}'


def test_the_default_is_what_is_named_where_there_is_one() -> None:
    def answer(asked: dict[str, Any]) -> dict[str, Any]:
        told = offers(asked, "v9.0.2-eksbuild.1", "v9.0.1-eksbuild.1")
        told["addons"][0]["addonVersions"][1]["compatibilities"] = [
            {"clusterVersion": "1.35", "defaultVersion": True}
        ]
        return told

    findings = found(ADDONS, pools_plan(), {OFFERED: answer})

    assert findings[0].fix == 'set kubernetes.addons: {vpc-cni: "v9.0.1-eksbuild.1"}'


def test_an_addon_that_may_not_be_asked_for_hides_no_other() -> None:
    def answer(asked: dict[str, Any]) -> dict[str, Any]:
        if asked["addonName"] == "coredns":
            raise Refusal("ThrottlingException", "Rate exceeded")
        return offers(asked)

    findings = states(found(ADDONS, pools_plan(), {OFFERED: answer}))

    assert findings.pop("coredns") == "unknown"
    assert set(findings.values()) == {"fail"}


_CNI_SCHEMA = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "env": {
            "type": "object",
            "properties": {"WARM_PREFIX_TARGET": {"type": "string", "pattern": "^[0-9]+$"}},
        },
        "enableNetworkPolicy": {"type": "string"},
    },
}


def configured(**values: Any) -> AddonPlan:
    cni = next(each for each in pools_plan().addons if each.name == "vpc-cni")
    return replace(cni, configuration=values)


def test_one_wrong_value_of_an_addon_fails_before_it_rolls_a_stack_back() -> None:
    addon = configured(env={"WARM_PREFIX_TARGET": "one"}, mode="nftables")
    finding = configuration_finding(addon, json.dumps(_CNI_SCHEMA))
    assert (finding.subject, finding.state) == ("vpc-cni", "fail")
    assert "env.WARM_PREFIX_TARGET: 'one' does not match" in finding.evidence
    assert "'mode' was unexpected" in finding.evidence


@pytest.mark.parametrize("schema", ["", "no JSON", '{"type": "nothing"}', "[]"])
def test_an_answer_without_a_schema_is_no_pass(schema: str) -> None:
    assert configuration_finding(configured(mode="nftables"), schema).state == "unknown"


@pytest.mark.parametrize("name", ["mixed-capacity", "hybrid-hyperpod", "ultra-100k"])
def test_eks_is_asked_about_every_addon_that_we_write_values_for(name: str) -> None:
    plan = file_plan(name)
    written = {each.name: each.version for each in plan.addons if each.configuration}
    asked: dict[str, str] = {}

    def answer(question: dict[str, Any]) -> dict[str, Any]:
        asked[question["addonName"]] = question["addonVersion"]
        return {"configurationSchema": '{"type": "object"}'}

    findings = found(ADDON_CONFIGURATION, plan, {CONFIGURATION: answer})

    assert asked == written
    assert states(findings) == dict.fromkeys(written, "pass")


def test_a_version_that_eks_does_not_offer_fails() -> None:
    (finding,) = found(KUBERNETES_VERSION, pools_plan(), {VERSIONS: {"clusterVersions": []}})
    assert (finding.state, finding.evidence) == ("fail", "EKS offers no version 1.35 in us-west-2")
