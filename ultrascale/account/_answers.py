"""What AWS means by an error: not allowed, too fast, no credentials, not there."""

import re
from collections.abc import Mapping
from typing import cast

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    PartialCredentialsError,
    ProfileNotFound,
    ReadTimeoutError,
    SSOTokenLoadError,
    TokenRetrievalError,
    UnauthorizedSSOTokenError,
)

from ultrascale.errors import AccountError, UnansweredError

# Sources:
#   https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
#   https://docs.aws.amazon.com/STS/latest/APIReference/CommonErrors.html
_DENIED = frozenset(
    {"AccessDenied", "AccessDeniedException", "AuthorizationError", "UnauthorizedOperation"}
)
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
_EXPIRED = frozenset({"ExpiredToken", "ExpiredTokenException", "RequestExpired"})
_NOT_ACCEPTED = frozenset(
    {
        "AuthFailure",
        "IncompleteSignature",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)
_LOG_IN = "log in again (`aws sso login` or `aws login`), or export new credentials"
_GIVE_SOME = (
    "log in (`aws sso login`, `aws login`), name a profile by --profile or AWS_PROFILE, or export "
    "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
)
_ACTION = re.compile(r"not authorized to perform: ([a-z0-9-]+:\w+)")
# Before it stands who asked for what, which is told anyway.
_CAUSE = re.compile(r"\b(?:because|with an explicit deny)\b.*", re.DOTALL)


def unanswered(action: str, error: BotoCoreError | ClientError) -> UnansweredError:
    """Return why ``action`` has no answer."""
    if not isinstance(error, ClientError):
        return UnansweredError(action, reason=_unreached(error))
    code, message = _told(error)
    if code in _DENIED:
        # What is denied may be another action than the one that was asked for.
        named = _ACTION.search(message)
        denied = named[1] if named else action
        cause = _CAUSE.search(message)
        reason = f"denied {cause[0]}" if cause else f"denied: {message}"
        return UnansweredError(denied, reason=reason, code=code, denied=True)
    if code in _THROTTLED:
        reason = f"throttled by AWS ({code}) on every attempt; ask again in a minute"
    elif code in _EXPIRED:
        reason = f"the credentials have expired; {_LOG_IN}"
    else:
        reason = f"{code}: {message}"
    return UnansweredError(action, reason=reason, code=code)


def no_account(region: str, error: BotoCoreError | ClientError) -> AccountError:
    """Return why there is no account to ask in ``region``."""
    if not isinstance(error, ClientError):
        return AccountError(_no_credentials(error) or _unreached(error))
    code, message = _told(error)
    if code in _EXPIRED:
        return AccountError(f"the AWS credentials have expired; {_LOG_IN}")
    if code in _NOT_ACCEPTED:
        return AccountError(
            f"AWS does not accept the credentials in {region} ({code}); {_LOG_IN}; where they work "
            f"in other Regions, enable this one: `aws account enable-region --region-name {region}`"
        )
    return AccountError(f"AWS does not say whose credentials these are: {code}: {message}")


def _no_credentials(error: BotoCoreError) -> str | None:
    match error:
        case NoCredentialsError():
            return f"no AWS credentials; {_GIVE_SOME}"
        case PartialCredentialsError():
            return f"half of the AWS credentials is missing: {error}; {_GIVE_SOME}"
        case ProfileNotFound():
            return f"{error}; `aws configure list-profiles` says which there are"
        case SSOTokenLoadError() | TokenRetrievalError() | UnauthorizedSSOTokenError():
            return f"the AWS login has expired: {error}; {_LOG_IN}"
        case _:
            return None


def _unreached(error: BotoCoreError) -> str:
    match error:
        case ConnectTimeoutError() | EndpointConnectionError():
            return f"{error}; look at the network, the proxy and the Region"
        case ReadTimeoutError():
            return f"no answer in time: {error}"
        case _:
            return _no_credentials(error) or str(error)


def _told(error: ClientError) -> tuple[str, str]:
    told = cast("Mapping[str, str]", error.response.get("Error", {}))
    return told.get("Code", "unknown error"), told.get("Message", "")
