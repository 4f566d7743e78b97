"""An AWS account that answers what a test tells it to, and nothing else.

Clients are botocore's own: what is sent and what is answered has to fit the service's model.
"""

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, cast

from boto3.session import Session
from botocore.awsrequest import AWSResponse
from botocore.client import BaseClient
from botocore.config import Config
from botocore.model import OperationModel
from botocore.validate import ParamValidator

from tests.support.pools import as_text, make_document
from ultrascale import config
from ultrascale.account import Account
from ultrascale.plan import ClusterPlan, plan_cluster
from ultrascale.plan.model import ClusterNeeds
from ultrascale.plan.needs.report import plan_needs
from ultrascale.preflight.model import Context

ID = "918273645546"
ARN = f"arn:aws:iam::{ID}:role/Platform"
REGION = "us-west-2"
AT = datetime(2026, 12, 1, tzinfo=UTC)

PREFIXES = {
    "amp": "aps",
    "resourcegroupstaggingapi": "tag",
    "service-quotas": "servicequotas",
}
"""IAM's prefix of each service that boto3 calls by another name."""

Answer = Mapping[str, Any]
# One answer for each time, several in turn, what follows from the parameters, or an error.
Told = Answer | list[Answer | Exception] | Callable[[dict[str, Any]], Answer] | Exception


class Refusal(Exception):  # noqa: N818 it is an answer
    """What AWS answers to a request that it refuses."""

    def __init__(self, code: str, message: str = "no") -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message


def denied(action: str) -> Refusal:
    """Return the answer to a request that no policy allows."""
    return Refusal(
        "AccessDeniedException",
        f"User: {ARN} is not authorized to perform: {action} because no identity-based policy "
        f"allows the {action} action",
    )


THROTTLED = Refusal("ThrottlingException", "Rate exceeded")


@dataclass
class FakeAws:
    """What makes clients of services that answer by `answers`.

    Attributes:
        answers: By action, such as ``ec2:DescribeVpcs``.
        calls: What was asked, each with its parameters and the Region.
        attempts: How often a request may be sent, by action.
    """

    answers: Mapping[str, Told]
    calls: list[tuple[str, dict[str, Any], str]] = field(
        default_factory=list[tuple[str, dict[str, Any], str]]
    )
    attempts: dict[str, int] = field(default_factory=dict[str, int])
    _turns: dict[str, int] = field(default_factory=dict[str, int])

    def client(self, service_name: str, *, region_name: str, config: Config) -> BaseClient:
        client = _copied(_made(service_name, region_name, config))
        events: Any = client.meta.events
        events.register("provide-client-params.*.*", self._note(service_name, region_name, config))
        events.register("before-call.*.*", self._answer(service_name))
        return client

    @property
    def actions(self) -> set[str]:
        """Every action that was asked for."""
        return {action for action, *_ in self.calls}

    def parameters(self, action: str) -> list[dict[str, Any]]:
        """Return what each request of ``action`` asked."""
        return [parameters for each, parameters, _ in self.calls if each == action]

    def _note(self, service: str, region: str, config: Config) -> Callable[..., None]:
        most = cast("dict[str, int]", cast("Any", config).retries)["total_max_attempts"]

        def note(
            *, params: dict[str, Any], model: OperationModel, context: dict[str, Any], **_: object
        ) -> None:
            context["asked"] = params
            self.attempts[_action(service, model)] = most
            self.calls.append((_action(service, model), params, region))

        return note

    def _answer(self, service: str) -> Callable[..., object]:
        def answer(*, model: OperationModel, context: dict[str, Any], **_: object) -> object:
            action = _action(service, model)
            assert action in self.answers, f"the test does not say what {action} answers"
            try:
                found = self._next(action, context["asked"])
            except Refusal as refusal:
                error = {"Code": refusal.code, "Message": refusal.message}
                return _response(400), {"Error": error, "ResponseMetadata": {}}
            if model.output_shape is not None:
                report = cast("Any", ParamValidator()).validate(dict(found), model.output_shape)
                assert not report.has_errors(), f"{action} answers so: {report.generate_report()}"
            return _response(200), {**found, "ResponseMetadata": {"HTTPStatusCode": 200}}

        return answer

    def _next(self, action: str, asked: dict[str, Any]) -> Answer:
        told = self.answers[action]
        if isinstance(told, list):
            turn = self._turns.get(action, 0)
            self._turns[action] = turn + 1
            told = cast("list[Answer | Exception]", told)[turn]
        if isinstance(told, Exception):
            raise told
        return told(asked) if callable(told) else told


def fake_account(
    answers: Mapping[str, Told] | None = None, *, region: str = REGION
) -> tuple[Account, FakeAws]:
    """Return an account that gives ``answers``, and what notes the questions."""
    aws = FakeAws({} if answers is None else answers)
    return Account(id=ID, arn=ARN, region=region, session=aws), aws


def make_context(answers: Mapping[str, Told], **changes: object) -> Context:
    """Return what checks look at: an account that gives ``answers``, and a cluster.

    Args:
        answers: As those of `FakeAws`.
        changes: Keys of a valid cluster file to replace, as `make_cluster` takes them.
    """
    plan, needs = _planned(as_text(make_document(**changes)))
    account, _ = fake_account(answers, region=plan.region)
    return Context(plan=plan, needs=needs, account=account, at=AT)


@lru_cache(maxsize=4)
def _planned(text: str) -> tuple[ClusterPlan, ClusterNeeds]:
    plan = plan_cluster(config.loads(text))
    return plan, plan_needs(plan)


_MADE: dict[tuple[object, ...], Any] = {}
# It keeps what it has read of a service for the other Regions.
_SESSION = cast("Any", Session())


def _made(service: str, region: str, config: Config) -> Any:
    """Return a client to copy: making one takes longer than all that a test asks of it."""
    options = cast("Any", config)
    key = (service, region, options.read_timeout, str(options.retries))
    if key not in _MADE:
        _MADE[key] = _SESSION.client(
            service,
            region_name=region,
            config=config,
            aws_access_key_id="x",
            aws_secret_access_key="x",
        )
    return _MADE[key]


def _copied(client: Any) -> Any:
    """Return a client whose events are its own."""
    own: Any = object.__new__(cast("type[Any]", type(client)))
    vars(own).update(vars(client), meta=copy(client.meta))
    own.meta.events = copy(own.meta.events)
    return own


def _action(service: str, model: OperationModel) -> str:
    return f"{PREFIXES.get(service, service)}:{model.name}"


def _response(status: int) -> AWSResponse:
    return AWSResponse("https://aws.test", status, cast("Any", {}), None)
