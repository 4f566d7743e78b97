"""Events of a pipeline that are sent by e-mail: a waiting approval, a failed run."""

from collections.abc import Iterator, Mapping

from ultrascale.plan import names
from ultrascale.plan.model import EventPlan


def pipeline_events(name: str, region: str, account: str) -> Iterator[EventPlan]:
    """Yield the events of a pipeline that need somebody.

    The approval of permissions that grow is none of them: it waits in every run, until the check
    gives it itself where nothing grows. The check tells of the others.

    Source: https://docs.aws.amazon.com/codepipeline/latest/userguide/detect-state-changes-cloudwatch-events.html

    Args:
        name: Name of the pipeline.
        region: Region that it lies in.
        account: Account that it lies in.
    """
    where = f"CodePipeline in {region}, account {account}"
    yield EventPlan(
        name="approval-waits",
        pattern=_pattern(
            "Action",
            name,
            {
                "state": ["STARTED"],
                "action": [{"prefix": names.APPROVAL_PREFIX}],
                "type": {"category": ["Approval"]},
            },
        ),
        message=(
            f"The pipeline {name} waits for <action> in its stage <stage>: {where}. It shows there "
            "what changes. Unless somebody answers within seven days, the run <run> fails; until "
            "then no later one deploys the stage."
        ),
        paths={
            "action": "$.detail.action",
            "stage": "$.detail.stage",
            "run": "$.detail.execution-id",
        },
    )
    yield EventPlan(
        name="run-failed",
        pattern=_pattern("Pipeline", name, {"state": ["FAILED"]}),
        message=f"The run <run> of the pipeline {name} failed, and says there why: {where}.",
        paths={"run": "$.detail.execution-id"},
    )


def _pattern(of: str, pipeline: str, detail: Mapping[str, object]) -> Mapping[str, object]:
    return {
        "source": ["aws.codepipeline"],
        "detail-type": [f"CodePipeline {of} Execution State Change"],
        "detail": {"pipeline": [pipeline], **detail},
    }
