"""Builds: the environment of AWS CodeBuild, and the CDK's command line that a pipeline pins.

Sources:
    https://docs.aws.amazon.com/codebuild/latest/userguide/build-env-ref-available.html
    https://docs.aws.amazon.com/codebuild/latest/userguide/build-env-ref-compute-types.html
"""

from collections.abc import Mapping
from types import MappingProxyType

from ultrascale.frozen import Frozen

# The only Region where Amazon ECR Public gives logins, for every Region.
# Source: https://docs.aws.amazon.com/AmazonECR/latest/public/public-registry-auth.html
PUBLIC_REGION = "us-east-1"


class BuildEnvironment(Frozen):
    """Environment of a build in CodeBuild."""

    image: str  # Build image; AWS keeps its Docker and AWS CLI patched under the same name
    compute_type: str  # CodeBuild's name for its size
    timeout_minutes: int  # Minutes after which a build is stopped
    queued_timeout_minutes: int  # Minutes after which a waiting build is dropped


# Amazon Linux 2023, x86-64.
IMAGE = "aws/codebuild/amazonlinux-x86_64-standard:6.0"

BUILD_ENVIRONMENT = BuildEnvironment(
    image=IMAGE,
    # The smallest size with 128 GB of disk: the Neuron and CUDA bases are above 10 GB, packed. A
    # build waits for the network; more processors would not make it shorter.
    compute_type="BUILD_GENERAL1_MEDIUM",
    timeout_minutes=180,
    queued_timeout_minutes=60,
)

CHART_BUILD_ENVIRONMENT = BuildEnvironment(
    image=IMAGE,
    # A small size: Helm and Git wait for the network.
    compute_type="BUILD_GENERAL1_SMALL",
    # Together less than the 15 minutes that the function which waits for it may run.
    # Source: https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
    timeout_minutes=9,
    # CodeBuild's minimum is five.
    queued_timeout_minutes=5,
)

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
