"""Feature flags of aws-cdk-lib: they choose the templates, so the product carries them itself.

Every recommended flag of aws-cdk-lib 2.275.0 stands in `feature_flags.json` as recommended, so an
upgrade of the library changes nothing by itself. An app gets them as
``App(post_cli_context=…)``, which takes precedence over `cdk.json` and options: the templates are
the same from any folder.

Source: https://github.com/aws/aws-cdk/blob/v2.275.0/packages/aws-cdk-lib/recommended-feature-flags.json
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from ultrascale.documents import parse_json

FlagValue = bool | str | Sequence[str]

_OWN: Mapping[str, FlagValue] = {
    # A stack is updated before the stacks that read its outputs, and cannot drop an output in use.
    "@aws-cdk/core:defaultCrossStackReferences": "strong",
    # Reason: the flag adds a custom resource with a function; nothing here uses the default group.
    "@aws-cdk/aws-ec2:restrictDefaultSecurityGroup": False,
    # CloudFormation's own findings are errors at synth.
    "@aws-cdk/core:validateAgainstDefaultRules": True,
}
"""Flags with values of our own, each with the reason."""

FLAGS: Mapping[str, FlagValue] = {
    **parse_json(Path(__file__).with_suffix(".json").read_text(encoding="utf-8")),
    **_OWN,
}
"""The flags of every app of the product, by name."""
