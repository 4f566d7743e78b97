"""AWS's errors in words for the user, and answers that raise an error at a missing key."""

import re
from collections.abc import Mapping
from typing import TypeVar, cast

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
    MissingDependencyException,
    NoCredentialsError,
    PartialCredentialsError,
    ProfileNotFound,
    ReadTimeoutError,
    SSOTokenLoadError,
    TokenRetrievalError,
    UnauthorizedSSOTokenError,
)
from botocore.exceptions import (
    ConnectionError as BotoConnectionError,
)
from botocore.parsers import ResponseParserError

from ultrascale.catalog import regions
from ultrascale.errors import AccountError, UnansweredError

# The last two are no `BotoCoreError`: for example, a proxy answered in HTML instead of AWS.
_Answer = TypeVar("_Answer")
Failure = BotoCoreError | ClientError | ResponseParserError | KeyError
FAILURES = (BotoCoreError, ClientError, ResponseParserError, KeyError)

# Sources: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
# https://docs.aws.amazon.com/STS/latest/APIReference/CommonErrors.html
# https://docs.aws.amazon.com/ARG/latest/APIReference/API_ListGroupResources.html
_DENIED = frozenset(
    {
        "403",
        "AccessDenied",
        "AccessDeniedException",
        "AuthorizationError",
        "ForbiddenException",
        "UnauthorizedOperation",
    }
)
# Source: https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadObject.html
_WITHOUT_BODY = ("403", "404")
_THROTTLED = frozenset(
    {
        "LimitExceededException",
        "PriorRequestNotComplete",
        "RequestLimitExceeded",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "ThrottledException",
        "TooManyRequestsException",
    }
)
# Source: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
_BROKEN = frozenset(
    {
        "InternalError",
        "InternalFailure",
        "InternalServerError",
        "InternalServerException",
        "ServerException",
        "ServiceUnavailable",
        "ServiceUnavailableException",
        "Unavailable",
    }
)
_EXPIRED = frozenset({"ExpiredToken", "ExpiredTokenException", "RequestExpired"})
_NOT_ACCEPTED = frozenset(
    {
        "AuthFailure",
        "IncompleteSignature",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "OptInRequired",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)
_LOG_IN = "log in again (`aws sso login`), or export new credentials"
_GIVE_SOME = (
    "log in (`aws sso login`), name a profile by --profile or AWS_PROFILE, or export "
    "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
)
_EXPORT = "`aws configure export-credentials --format env` prints some that need nothing more"
_NOT_OF_AWS = "something else than AWS answered; check the network, the proxy and the Region"
_ACTION = re.compile(r"not authorized to perform: ([a-z0-9-]+:\w+)")
# The words before the reason repeat the caller and the action.
_CAUSE = re.compile(r"\b(?:because|with an explicit deny)\b.*", re.DOTALL)
_WRONG_CLOCK = re.compile(r"Signature (expired|not yet current)")


class _Complete(dict[str, object]):
    """A part of an answer: reading a key that AWS left out raises an `UnansweredError`."""

    def __init__(self, action: str, told: Mapping[str, object]) -> None:
        super().__init__((key, complete(action, value)) for key, value in told.items())
        self._action = action

    def __missing__(self, key: str) -> object:
        raise UnansweredError(self._action, reason=f"the answer lacks {key}")


class _Page(_Complete):
    """A page of a list: a list that AWS left out is empty."""

    def __missing__(self, key: str) -> object:
        return []


def complete(action: str, answer: _Answer) -> _Answer:
    """Return an answer whose missing keys raise an `UnansweredError` when they are read.

    Args:
        action: IAM's name of the answered request.
        answer: The answer, or a part of it.
    """
    value: object = answer
    if isinstance(answer, dict):
        value = _Complete(action, cast("dict[str, object]", answer))
    elif isinstance(answer, list):
        value = [complete(action, element) for element in cast("list[object]", answer)]
    return cast("_Answer", value)


def complete_page(action: str, page: _Answer) -> _Answer:
    """Return a page whose missing lists are empty; deeper parts are as in `complete`."""
    return cast("_Answer", _Page(action, cast("dict[str, object]", page)))


def unanswered(action: str, region: str, error: Failure) -> UnansweredError:
    """Return the error for a request in ``region`` that AWS did not answer."""
    if not isinstance(error, ClientError):
        return UnansweredError(action, reason=_unreached_error(error))
    code, message = _code_and_message(error)
    if not code:
        return UnansweredError(action, reason=f"HTTP {_status(error)}: {_NOT_OF_AWS}")
    if code in _DENIED:
        # IAM may have denied an action other than the requested one.
        named = _ACTION.search(message)
        denied = named[1] if named else action
        cause = _CAUSE.search(message)
        reason = f"denied {cause[0]}" if cause else f"denied: {message}"
        return UnansweredError(denied, reason=reason, code=code, denied=True)
    if code in _THROTTLED:
        reason = f"throttled by AWS ({code}) on every attempt; ask again in a minute"
    elif code in _EXPIRED:
        reason = f"the credentials have expired; {_LOG_IN}"
    elif code in _NOT_ACCEPTED:
        reason = f"{code}: {message}{_disabled_region_hint(region)}"
    else:
        reason = f"{code}: {message}"
    return UnansweredError(action, reason=reason, code=code)


def is_passing(error: UnansweredError) -> bool:
    """Return whether the same request may succeed a little later, as after throttling.

    Args:
        error: The error of the request.
    """
    if error.code:
        return error.code in _THROTTLED or error.code in _BROKEN
    return isinstance(error.__cause__, HTTPClientError | BotoConnectionError)


def no_account(region: str, error: Failure) -> AccountError:
    """Return the error for missing or refused credentials in ``region``."""
    if not isinstance(error, ClientError):
        return AccountError(_no_credentials_error(error) or _unreached_error(error))
    code, message = _code_and_message(error)
    if not code:
        return AccountError(f"HTTP {_status(error)}: {_NOT_OF_AWS}")
    if code in _EXPIRED:
        return AccountError(f"the AWS credentials have expired; {_LOG_IN}")
    if _WRONG_CLOCK.search(message):
        return AccountError(f"the clock of this machine is wrong: {message}; set it")
    if code in _NOT_ACCEPTED:
        return AccountError(
            f"AWS does not accept the credentials in {region}: {code}: {message}; {_LOG_IN}"
            f"{_disabled_region_hint(region)}"
        )
    return AccountError(f"AWS does not say whose credentials these are: {code}: {message}")


def misconfigured(error: OSError | ValueError | RuntimeError) -> AccountError:
    """Return the error for a wrong file, program or address in the AWS configuration."""
    return AccountError(
        f"the AWS configuration does not work: {error}; look at the profile in ~/.aws and at the "
        "variables AWS_…"
    )


def _disabled_region_hint(region: str) -> str:
    """Return a hint why ``region`` may refuse credentials that work elsewhere."""
    match regions.lookup_region(region).partition:
        case "aws-us-gov":
            return f"; in {region} only those of a GovCloud (US) account work"
        case "aws-cn":
            return f"; in {region} only those of an Amazon Web Services China account work"
        case "aws" if region not in regions.ALWAYS_ENABLED:
            return (
                "; where they work in other Regions, enable this one: `aws account enable-region "
                f"--region-name {region}`"
            )
        case _:
            return ""


def _no_credentials_error(error: Failure) -> str | None:
    match error:
        case NoCredentialsError():
            return f"no AWS credentials; {_GIVE_SOME}"
        case PartialCredentialsError():
            return f"half of the AWS credentials is missing: {error}; {_GIVE_SOME}"
        case ProfileNotFound():
            return f"{error}; `aws configure list-profiles` says which there are"
        case SSOTokenLoadError() | TokenRetrievalError() | UnauthorizedSSOTokenError():
            return f"the AWS login has expired: {error}; {_LOG_IN}"
        case MissingDependencyException():
            return f"{error} Or export credentials: {_EXPORT}"
        case _:
            return None


def _unreached_error(error: Failure) -> str:
    match error:
        case ResponseParserError() | KeyError():
            return _NOT_OF_AWS
        case ConnectTimeoutError() | EndpointConnectionError():
            return f"{error}; look at the network, the proxy and the Region"
        case ReadTimeoutError():
            return f"no answer in time: {error}"
        case _:
            return _no_credentials_error(error) or str(error)


def _code_and_message(error: ClientError) -> tuple[str, str]:
    """Return AWS's code and message; an empty code if something else answered."""
    told = error.response.get("Error", {})
    code = told.get("Code", "")
    # botocore takes the HTTP status as the code of an answer without one, as to HEAD.
    is_of_aws = not code.isdigit() or (
        error.operation_name.startswith("Head") and code in _WITHOUT_BODY
    )
    return (code if is_of_aws else ""), told.get("Message", "")


def _status(error: ClientError) -> object:
    return error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", "error")
