"""Validation at synth beside that of CloudFormation, and findings accepted everywhere."""

import json
from pathlib import Path

import jsii
from aws_cdk import (
    App,
    IPolicyValidationContext,
    IPolicyValidationPlugin,
    PolicyValidationPluginReport,
    PolicyViolatingResource,
    PolicyViolation,
    Validations,
)

from ultrascale_constructs.acknowledgment import acknowledge
from ultrascale_stacks.rules import RULES, violations


@jsii.implements(IPolicyValidationPlugin)
class OwnRules:
    """Checks the synthesized templates by the rules of `ultrascale_stacks.rules`."""

    @property
    def name(self) -> str:
        """Name in the validation report."""
        return "ultrascale"

    @property
    def version(self) -> str:
        """Version in the validation report: that of the project."""
        return "0.1.0"

    @property
    def rule_ids(self) -> list[str]:
        """Names of the rules."""
        return [rule.name for rule in RULES]

    @jsii.member(jsii_name="validate")
    def validate(self, context: IPolicyValidationContext) -> PolicyValidationPluginReport:
        """Return the violations in the templates."""
        found = [
            PolicyViolation(
                rule_name=rule.name,
                description=rule.description,
                severity="error",
                violating_resources=[
                    PolicyViolatingResource(
                        resource_logical_id=resource.logical_id, template_path=path, locations=[]
                    )
                ],
            )
            for path in context.template_paths
            for rule, resource in violations(json.loads(Path(path).read_text(encoding="utf-8")))
        ]
        return PolicyValidationPluginReport(success=not found, violations=found)


def validate(app: App) -> None:
    """Check ``app`` by the AwsSolutions rules and by our own as well."""
    # Its 150 rules take a sixth of a synthesis to load and run, where nothing else is validated.
    from cdk_nag import AwsSolutionsChecks

    Validations.of(app).add_plugins(AwsSolutionsChecks(app), OwnRules())


def acknowledge_findings(app: App) -> None:
    """State why findings that every cluster has are accepted."""
    acknowledge(
        app,
        {
            "CloudFormation-Validate::W3010": (
                "the cluster file names its zones: capacity and file systems are zonal"
            ),
            "Annotation::@aws-cdk/aws-ec2:noSubnetRouteTableId": (
                "subnets are handed on by id; nothing reads their route tables there"
            ),
        },
    )
