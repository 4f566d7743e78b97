"""Level `serving` of an acceptance: the front refuses a request without a key.

The API server passes the request on, and takes the user's own credentials out of it. Source:
https://kubernetes.io/docs/tasks/access-application-cluster/access-cluster-services/
"""

from collections.abc import Iterator
from functools import partial
from http import HTTPStatus

from ultrascale.accept import jobs
from ultrascale.accept.model import Check, Run
from ultrascale.cluster_api.objects import SERVICE
from ultrascale.errors import ClusterError, RefusedError
from ultrascale.parts.front.model import Plan
from ultrascale.parts.front.report import front_problems
from ultrascale.plan import names
from ultrascale.plan.model import ClusterPlan

_ANSWER_SECONDS = 30.0
_REFUSALS = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)


def checks(plan: ClusterPlan) -> Iterator[Check]:
    """Yield the check of a front whose clients have keys or tokens."""
    front, title = plan.part(Plan), "a request without a key or token is refused"
    if front is not None and front.knows_clients and front.services:
        act = partial(_refused, front)
        yield jobs.check("serving", "front", names.FRONT_GATEWAY, title, ("key",), act)


def _refused(front: Plan, run: Run) -> Iterator[jobs.Step]:
    if problems := [*front_problems(run.cluster)]:
        raise ClusterError(*problems)
    service = SERVICE.path(names.FRONT_NAMESPACE, f"{names.FRONT_GATEWAY}:{names.FRONT_PORT}")
    path = f"{service}/proxy{names.OPENAI_PATHS}/completions"
    body = {"model": front.services[0].models[0], "prompt": "1 2 3", "max_tokens": 1}
    try:
        run.cluster.ask(path, body, timeout_seconds=_ANSWER_SECONDS)
    except RefusedError as error:
        # A refusal of the API server itself, which says nothing of the front, gives a reason.
        if error.status not in _REFUSALS or error.reason:
            raise
        yield "pass", f"it answers a request without a key with {error.status}"
        return
    raise ClusterError("it answers a request without a key")
