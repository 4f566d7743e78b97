"""Level `serving` of an acceptance: a service that runs answers a request, and counts its tokens.

The API server passes the request on to a pod, so only the connection to it is needed.
"""

from collections.abc import Iterator
from functools import partial

from ultrascale.accept import jobs
from ultrascale.accept.model import Check, Run
from ultrascale.cluster_api.objects import POD
from ultrascale.documents import number, objects, text
from ultrascale.errors import ClusterError, QuestionError
from ultrascale.jobs.serving_report import ready_pods
from ultrascale.plan import names
from ultrascale.plan.model import ClusterPlan, ServiceDemandPlan

_ANSWER_SECONDS = 60.0


def checks(plan: ClusterPlan) -> Iterator[Check]:
    """Yield the check of each service of vLLM in the file."""
    title = "a pod that runs answers a request with a count of tokens"
    for service in plan.services:
        if service.server == "vllm":
            act = partial(_ask, service)
            yield jobs.check("serving", "service", service.name, title, ("answers",), act)


def _ask(service: ServiceDemandPlan, run: Run) -> Iterator[jobs.Step]:
    selector = f"{names.JOB_LABEL}={service.name},{names.SERVER_LABEL}=vllm"
    path = POD.path(service.namespace)
    pods = [*run.cluster.items(path, {"labelSelector": selector})]
    place = next((place for _, place in ready_pods(pods, service.namespace)), None)
    if place is None:
        todo = f"`ultrascale submit FILE {service.name}`"
        raise QuestionError([f"none of its {len(pods)} pods is ready; {todo}"])
    api = f"{place}/proxy{names.OPENAI_PATHS}"
    models = objects(run.cluster.get(f"{api}/models"), "data")
    if not models:
        raise ClusterError("it serves no model")
    model = text(models[0], "id")
    body = {"model": model, "prompt": "1 2 3", "max_tokens": 1}
    answer = run.cluster.ask(f"{api}/completions", body, timeout_seconds=_ANSWER_SECONDS)
    prompt, generated = (
        number(answer, "usage", key) for key in ("prompt_tokens", "completion_tokens")
    )
    if not prompt or not generated:
        raise ClusterError(f"model {model} answered without a count of tokens")
    yield "pass", f"model {model} answered: {prompt} tokens read, {generated} generated"
