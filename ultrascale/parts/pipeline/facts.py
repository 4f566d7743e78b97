"""AWS CodePipeline and CodeConnections, the builds of a pipeline, and the programs in them.

Sources:
    https://docs.aws.amazon.com/codepipeline/latest/userguide/limits.html
    https://docs.aws.amazon.com/dtconsole/latest/userguide/welcome-connections-how-it-works-global.html
    https://github.com/aws-cloudformation/cfn-lint/tree/v1.58.0/src/cfnlint/data/schemas/providers
    (CloudFormation's resource schemas of 2026-10-20: where AWS::CodeConnections::Connection exists)
"""

from ultrascale.catalog.build_environment import IMAGE, BuildEnvironment

CONNECTION_REGIONS = frozenset(
    {
        *("ap-northeast-1", "ap-northeast-2", "ap-south-1", "ap-southeast-1", "ap-southeast-2"),
        *("ca-central-1", "eu-central-1", "eu-north-1", "eu-south-1"),
        *("eu-west-1", "eu-west-2", "eu-west-3", "sa-east-1"),
        *("us-east-1", "us-east-2", "us-west-1", "us-west-2", "us-gov-east-1", "us-gov-west-1"),
    }
)
"""Regions where CloudFormation can create a connection; pipelines of any Region can use it."""

OWN_STAGES = frozenset({"source", "build", "updatepipeline", "assets", "checks", "facts"})
"""Names, in lower case, of a pipeline's stages beside those of its file."""

STAGE_ACTIONS = 50
"""Most actions of a stage of CodePipeline."""

PIPELINE_STAGES = 50
"""Most stages of a pipeline."""

PIPELINE_ACTIONS = 500
"""Most actions in all stages of a pipeline together."""

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

BUILD_ENVIRONMENT = BuildEnvironment(
    image=IMAGE,
    # Four processors: synthesis and the tests compute, and each build of a run waits for another.
    compute_type="BUILD_GENERAL1_MEDIUM",
    timeout_minutes=60,
    queued_timeout_minutes=60,
)

RUNTIMES = {"python": "3.11", "nodejs": "24"}
"""The runtimes of a pipeline's builds, with which our tests have run.

Without a version a build takes the newest runtime of its image, which changes with the image.

Source: https://docs.aws.amazon.com/codebuild/latest/userguide/available-runtimes.html
"""

CFN_LINT_VERSION = "1.58.0"
"""Version of cfn-lint that templates are tested with, as in pyproject.toml."""

CFN_LINT_IGNORED = ("W3005",)
"""Ignored rules of cfn-lint, as in .cfnlintrc.yaml: the CDK writes a DependsOn that a Ref implies.

Source: https://github.com/aws-cloudformation/cfn-lint/blob/main/docs/rules.md
"""

YAML_VERSION = "6.0.3"
"""Version of the YAML reader that cluster files are tested with, as in requirements.txt."""

# Files of a run: an approval waits a week at most, and a stage is tried again soon.
ARTIFACT_DAYS = 30
