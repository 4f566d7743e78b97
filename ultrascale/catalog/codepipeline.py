"""AWS CodePipeline and CodeConnections, and the programs in the CDK's pipelines.

Sources:
    https://docs.aws.amazon.com/codepipeline/latest/userguide/limits.html
    https://docs.aws.amazon.com/dtconsole/latest/userguide/welcome-connections-how-it-works-global.html
    https://github.com/aws-cloudformation/cfn-lint/tree/v1.58.0/src/cfnlint/data/schemas/providers
    (CloudFormation's resource schemas of 2026-10-20: where AWS::CodeConnections::Connection exists)
"""

from collections.abc import Mapping
from types import MappingProxyType

CONNECTION_REGIONS = frozenset(
    {
        *("ap-northeast-1", "ap-northeast-2", "ap-south-1", "ap-southeast-1", "ap-southeast-2"),
        *("ca-central-1", "eu-central-1", "eu-north-1", "eu-south-1"),
        *("eu-west-1", "eu-west-2", "eu-west-3", "sa-east-1"),
        *("us-east-1", "us-east-2", "us-west-1", "us-west-2", "us-gov-east-1", "us-gov-west-1"),
    }
)
"""Regions where CloudFormation can create connections, which any Region can use."""

OWN_STAGES = frozenset({"source", "build", "updatepipeline", "assets", "checks"})
"""Names, in lower case, of the stages of each pipeline before the first stage of its file."""

STAGE_ACTIONS = 50
"""Most actions of a stage of CodePipeline."""

PIPELINE_STAGES = 50
"""Most stages of a pipeline."""

PIPELINE_ACTIONS = 500
"""Most actions of a pipeline, in all of its stages together."""

CDK_CLI_VERSION = "2.1148.1"
"""The CDK's command line, as in package.json. The npm tag `latest` points at a broken 3.0.0.

Source: https://github.com/aws/aws-cdk/issues/38113
"""

CDK_CLI_VARIABLES: Mapping[str, str] = MappingProxyType(
    {"CDK_DISABLE_CLI_TELEMETRY": "true", "CDK_NOTICES": "false"}
)
"""Variables that keep the CDK's command line from reporting its use to AWS and fetching notices.

Sources:
    https://docs.aws.amazon.com/cdk/v2/guide/cli-telemetry.html
    https://docs.aws.amazon.com/cdk/v2/guide/notices.html
"""

CDK_ASSETS_VERSION = "4.7.3"
"""Version of the program that uploads files from a pipeline: the newest, of 2026-09-18."""

CDK_ASSETS_SCHEMA = "54.0.0"
"""Newest schema of asset manifests that `CDK_ASSETS_VERSION` reads.

aws-cdk-lib 2.275.0 writes 55.0.0, which the program refuses; both schemas describe files alike.
"""

APPROVAL_COMMENT_LENGTH = 1000
"""Most characters of the comment of an approval, with its variables filled in.

Source: https://docs.aws.amazon.com/codepipeline/latest/userguide/action-reference-ApprovalAction.html
"""
