"""Our own validation at synthesis, and the findings that are accepted in every cluster."""

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

from ultrascale.documents import read_json
from ultrascale.hosts import ClosedNetwork, Use
from ultrascale.plan.model import ClusterPlan
from ultrascale_constructs.acknowledgment import acknowledge
from ultrascale_stacks.rules import RULES, violations

_CLOSED = "ClosedNetwork"


@jsii.implements(IPolicyValidationPlugin)
class OwnRules:
    """Plugin that checks the synthesized templates by the rules of `ultrascale_stacks.rules`."""

    def __init__(self, closed: ClosedNetwork | None = None) -> None:
        """Store the closed network whose hosts are checked; None for an open network."""
        self._closed = closed

    @property
    def name(self) -> str:
        """Name of the plugin in the validation report."""
        return "ultrascale"

    @property
    def version(self) -> str:
        """Version of the plugin in the validation report: the project's version."""
        return "0.1.0"

    @property
    def rule_ids(self) -> list[str]:
        """Names of the rules."""
        return [*(rule.name for rule in RULES), _CLOSED]

    @jsii.member(jsii_name="validate")
    def validate(self, context: IPolicyValidationContext) -> PolicyValidationPluginReport:
        """Return the violations in the templates."""
        found = [
            _violation(rule.name, rule.description, resource.logical_id, path)
            for path in context.template_paths
            for rule, resource in violations(read_json(Path(path)))
        ]
        if self._closed is not None:
            found += [
                _host_violation(use, logical_id, path)
                for path in context.template_paths
                for logical_id, use in self._closed.unreached(Path(path))
            ]
        return PolicyValidationPluginReport(success=not found, violations=found)


def _violation(
    rule: str, description: str, logical_id: str, path: str, *, file: str = "", fix: str = ""
) -> PolicyViolation:
    return PolicyViolation(
        rule_name=rule,
        description=description,
        severity="error",
        fix=fix or None,
        violating_resources=[
            PolicyViolatingResource(
                resource_logical_id=logical_id,
                template_path=path,
                locations=[file] if file else [],
            )
        ],
    )


def _host_violation(use: Use, logical_id: str, path: str) -> PolicyViolation:
    return _violation(
        f"{_CLOSED}[Host::{use.host}]",
        f"network.egress is none, and neither an endpoint nor the mirror leads to {use.host}",
        logical_id,
        path,
        file=use.file,
        fix="take it from images.mirror, or give its service an endpoint in network.endpoints; if "
        "another way leads there, or nothing connects to it, say so in a comment of the cluster "
        "file that names the host",
    )


def closed_network(plan: ClusterPlan, file: Path) -> ClosedNetwork | None:
    """Return a cluster's closed network, whose hosts are checked; None for an open network."""
    return ClosedNetwork(plan, file) if plan.network.egress == "none" else None


def write_templates(app: App, closed: ClosedNetwork | None = None, *, validated: bool) -> None:
    """Write the templates of ``app``, and check them where that is asked, as `validate` does."""
    acknowledge_findings(app)
    if validated:
        validate(app, closed)
    app.synth()


def validate(app: App, closed: ClosedNetwork | None = None) -> None:
    """Check ``app`` by the AwsSolutions rules and by our own rules.

    Args:
        app: The app.
        closed: The cluster's network if it is closed; else None.
    """
    # Imported late: the 150 rules take a sixth of a synthesis to load and run.
    from cdk_nag import AwsSolutionsChecks

    Validations.of(app).add_plugins(AwsSolutionsChecks(app), OwnRules(closed))


def acknowledge_findings(app: App) -> None:
    """Accept the findings that every cluster has, each with the reason."""
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
