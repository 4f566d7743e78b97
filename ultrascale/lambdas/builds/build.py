"""A build of AWS CodeBuild, from its start to its end."""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_boto3_codebuild import CodeBuildClient
    from mypy_boto3_codebuild.type_defs import BuildTypeDef

_POLL_SECONDS = 5
# Time for the answer to CloudFormation once a build is given up.
_RESERVE_SECONDS = 45
_RUNNING = "IN_PROGRESS"
_SUCCEEDED = "SUCCEEDED"


class BuildError(Exception):
    """A build that did not succeed."""


def run(
    codebuild: "CodeBuildClient",
    project: str,
    *,
    remaining_seconds: Callable[[], float],
    sleep: Callable[[float], None],
) -> str:
    """Run a build of ``project`` and return its id.

    A build that takes too long is stopped: otherwise it would change the cluster after
    CloudFormation heard of its failure.

    Args:
        codebuild: CodeBuild client.
        project: Name of the project.
        remaining_seconds: Returns the seconds that are left.
        sleep: Waits.

    Raises:
        BuildError: It failed, was stopped, or took too long. The message says where its log is.
        ClientError: CodeBuild refused.
    """
    build = codebuild.start_build(projectName=project)["build"]
    while build["buildStatus"] == _RUNNING:
        if remaining_seconds() < _RESERVE_SECONDS:
            codebuild.stop_build(id=build["id"])
            raise BuildError(f"build {build['id']} took too long and was stopped{_log(build)}")
        sleep(_POLL_SECONDS)
        (build,) = codebuild.batch_get_builds(ids=[build["id"]])["builds"]
    if build["buildStatus"] != _SUCCEEDED:
        raise BuildError(f"build {build['id']}: {_why(build)}{_log(build)}")
    return build["id"]


def _why(build: "BuildTypeDef") -> str:
    """Return the status, and CodeBuild's messages of the failed phase."""
    said = [
        f"{phase['phaseType']}: {context['message']}"
        for phase in build.get("phases", [])
        for context in phase.get("contexts", [])
        if context.get("message")
    ]
    return "; ".join([build["buildStatus"], *said])


def _log(build: "BuildTypeDef") -> str:
    logs = build.get("logs", {})
    if "groupName" not in logs:
        return ""
    return f"; aws logs tail {logs['groupName']} --log-stream-names {logs.get('streamName', '')}"
