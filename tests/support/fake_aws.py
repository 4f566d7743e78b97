"""The stub of AWS: clients that answer what a test tells them to, and nothing else.

Clients are botocore's own: requests and answers have to fit the model of the service.
"""

from collections import deque
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, NamedTuple, NoReturn, cast

from boto3.session import Session
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from botocore.model import OperationModel
from botocore.validate import ParamValidator

ID = "918273645546"
ARN = f"arn:aws:iam::{ID}:role/Platform"
REGION = "us-west-2"

PREFIXES = {
    "amp": "aps",
    "elbv2": "elasticloadbalancing",
    "resourcegroupstaggingapi": "tag",
    "service-quotas": "servicequotas",
}
"""IAM's prefix of each service that boto3 calls by another name."""

IAM_ACTIONS = {
    "s3:HeadObject": "s3:GetObject",
    "s3:HeadBucket": "s3:ListBucket",
    "s3:ListObjectsV2": "s3:ListBucket",
    "s3:GetBucketEncryption": "s3:GetEncryptionConfiguration",
}
"""IAM's names of operations that it calls otherwise."""

Answer = Mapping[str, Any]
# One answer for each time, several in turn, what follows from the parameters, or an error.
Told = Answer | list[Answer | Exception] | Callable[[dict[str, Any]], Answer] | Exception


class Refusal(Exception):  # noqa: N818 it is an answer
    """The answer of AWS to a request that it refuses."""

    def __init__(self, code: str, message: str = "no", *, status: int = 400) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.status = status


def denied(action: str) -> Refusal:
    """Return the answer to a request that no policy allows."""
    return Refusal(
        "AccessDeniedException",
        f"User: {ARN} is not authorized to perform: {action} because no identity-based policy "
        f"allows the {action} action",
    )


THROTTLED = Refusal("ThrottlingException", "Rate exceeded")
# Of a page that a proxy gives in place of AWS botocore makes an answer without keys.
PROXY_PAGE: Answer = {}
CONFIG = Config(retries={"total_max_attempts": 1})


class Expected(NamedTuple):
    """A request that a test foresees."""

    action: str  # Its name, such as ``ec2:DescribeVpcs``
    parameters: Mapping[str, Any] | None  # Its parameters; None takes any
    answer: Answer | Exception  # What it is answered, or the error that it raises


@dataclass
class FakeAws:
    """Makes clients of services that answer by `answers`, or in the order that is expected."""

    # Answers by action, such as ``ec2:DescribeVpcs``
    answers: Mapping[str, Told] = field(default_factory=dict[str, Told])
    # Each request: its action, parameters and Region
    calls: list[tuple[str, dict[str, Any], str]] = field(
        default_factory=list[tuple[str, dict[str, Any], str]]
    )
    # How often a request may be sent, by action
    attempts: dict[str, int] = field(default_factory=dict[str, int])
    mistakes: list[str] = field(default_factory=list[str])  # Requests that the test did not foresee
    _turns: dict[str, int] = field(default_factory=dict[str, int])
    _expected: dict[str, deque[Expected]] = field(default_factory=dict[str, deque[Expected]])

    def client(
        self, service_name: str, *, region_name: str = REGION, config: Config = CONFIG
    ) -> Any:
        return _copied(_made(service_name, region_name, config), self)

    def expect(
        self, action: str, answer: Answer | Exception, parameters: Mapping[str, Any] | None = None
    ) -> None:
        """Foresee a request, after those of the same service that are foreseen already."""
        service = action.partition(":")[0]
        self._expected.setdefault(service, deque()).append(Expected(action, parameters, answer))

    def verify(self) -> None:
        """Check that each request that was foreseen was sent, and none besides."""
        assert self.mistakes == []
        assert [each.action for queue in self._expected.values() for each in queue] == []

    @property
    def actions(self) -> set[str]:
        """Every action that was asked for."""
        return {action for action, *_ in self.calls}

    def parameters(self, action: str) -> list[dict[str, Any]]:
        """Return the parameters of each request of ``action``."""
        return [parameters for each, parameters, _ in self.calls if each == action]

    def note(self, action: str, parameters: dict[str, Any], region: str, config: Config) -> None:
        """Note a request."""
        self.attempts[action] = cast("Any", config).retries["total_max_attempts"]
        self.calls.append((action, parameters, region))

    def answer(
        self, action: str, model: OperationModel, parameters: dict[str, Any]
    ) -> tuple[AWSResponse, dict[str, Any]]:
        """Return what botocore makes of a response."""
        try:
            found = self._next(action, parameters)
        except Refusal as refusal:
            error = {"Code": refusal.code, "Message": refusal.message}
            told = {"HTTPStatusCode": refusal.status}
            return _response(refusal.status), {"Error": error, "ResponseMetadata": told}
        if model.output_shape is not None and found is not PROXY_PAGE:
            report = cast("Any", ParamValidator()).validate(dict(found), model.output_shape)
            assert not report.has_errors(), f"{action} answers so: {report.generate_report()}"
        return _response(200), {**found, "ResponseMetadata": {"HTTPStatusCode": 200}}

    def _next(self, action: str, asked: dict[str, Any]) -> Answer:
        if self._expected.get(action.partition(":")[0]):
            return self._next_expected(action, asked)
        if action not in self.answers:
            self._mistaken(f"the test does not say what {action} answers")
        told = self.answers[action]
        if isinstance(told, list):
            turn = self._turns.get(action, 0)
            self._turns[action] = turn + 1
            told = cast("list[Answer | Exception]", told)[turn]
        if isinstance(told, Exception):
            raise told
        return told(asked) if callable(told) else told

    def _next_expected(self, action: str, asked: dict[str, Any]) -> Answer:
        expected = self._expected[action.partition(":")[0]].popleft()
        if action != expected.action or expected.parameters not in (None, asked):
            self._mistaken(f"expected {expected}, got {action} with {asked}")
        if isinstance(expected.answer, Exception):
            raise expected.answer
        return expected.answer

    def _mistaken(self, mistake: str) -> NoReturn:
        # The code under test may take an AssertionError for an error of AWS: `verify` tells it.
        self.mistakes.append(mistake)
        raise AssertionError(mistake)


_MADE: dict[tuple[object, ...], Any] = {}
# It keeps what it has read of a service for the other Regions.
_SESSION = cast("Any", Session())


def _made(service: str, region: str, config: Config) -> Any:
    """Return a client to copy: making one takes longer than all that a test asks of it."""
    options = cast("Any", config)
    key = (service, region, options.read_timeout, str(options.retries))
    if key not in _MADE:
        made = _SESSION.client(
            service,
            region_name=region,
            config=config,
            aws_access_key_id="x",
            aws_secret_access_key="x",
        )

        def note(*, params: dict[str, Any], model: OperationModel, context: Any, **_: Any) -> None:
            # botocore adds tokens of its own to the parameters.
            context["asked"] = dict(params)
            aws: FakeAws = context["client_config"].fake_aws
            aws.note(action_of(service, model.name), params, region, config)

        def answer(*, model: OperationModel, context: Any, **_: Any) -> object:
            aws: FakeAws = context["client_config"].fake_aws
            return aws.answer(action_of(service, model.name), model, context["asked"])

        # botocore writes the header anew for each request, which takes longer than all the rest.
        made._user_agent_creator = SimpleNamespace(to_string=lambda: "tests")
        # Nor is the address of a request, by hundreds of rules, of use to one that is not sent.
        made._ruleset_resolver = None
        made.meta.events.register("provide-client-params.*.*", note)
        made.meta.events.register("before-call.*.*", answer)
        _MADE[key] = made
    return _MADE[key]


def _copied(client: Any, aws: FakeAws) -> Any:
    """Return a client that ``aws`` answers: botocore hands its configuration to each handler."""
    own: Any = object.__new__(cast("type[Any]", type(client)))
    vars(own).update(vars(client), meta=copy(client.meta))
    own.meta._client_config = copy(client.meta.config)
    own.meta.config.fake_aws = aws
    return own


def action_of(service: str, operation: str) -> str:
    """Return the name that IAM has for an operation."""
    action = f"{PREFIXES.get(service, service)}:{operation}"
    return IAM_ACTIONS.get(action, action)


def _response(status: int) -> AWSResponse:
    return AWSResponse("https://aws.test", status, cast("Any", {}), None)
