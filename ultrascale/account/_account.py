"""Clients of one account, and the two ways to ask it something."""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, Protocol, cast

import boto3
import botocore
from botocore.client import BaseClient
from botocore.config import Config

from ultrascale.account._answers import (
    FAILURES,
    complete,
    misconfigured,
    no_account,
    unanswered,
)
from ultrascale.catalog.regions import lookup_region

# Seconds. Each command asks a few hundred questions at most, and ends within a minute.
_CONNECT_TIMEOUT = 4
_READ_TIMEOUT = 10
# A purchase may take longer, and nobody may guess whether one that was cut off was made.
_READ_TIMEOUT_ONCE = 60
_ATTEMPTS = 3
_CONNECTIONS = 20

# Services whose actions IAM calls otherwise than boto3 calls the service.
# Source: https://docs.aws.amazon.com/service-authorization/latest/reference/reference_policies_actions-resources-contextkeys.html
_CLIENTS = {
    "aps": "amp",
    "elasticloadbalancing": "elbv2",
    "servicequotas": "service-quotas",
    "tag": "resourcegroupstaggingapi",
}


class Session(Protocol):
    """What is used of `boto3.Session`."""

    def client(self, service_name: str, *, region_name: str, config: Config) -> Any:  # noqa: ANN401 boto3 has no types
        """Return a client of a service."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Account:
    """An AWS account, seen with the user's credentials. Threads may share it.

    Attributes:
        id: Its twelve digits.
        arn: ARN of who asks.
        region: Region that is asked where a question names no other.
        session: What makes clients.
        profile: Profile that the user named; None where the AWS CLI would find the same by itself.
    """

    id: str
    arn: str
    region: str
    session: Session
    profile: str | None = None
    _clients: dict[tuple[str, str, bool], BaseClient] = field(
        default_factory=dict[tuple[str, str, bool], BaseClient], init=False, repr=False
    )
    # Sessions, unlike clients, are not to be shared among threads.
    # Source: https://docs.aws.amazon.com/boto3/latest/guide/clients.html
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def client(self, service: str, region: str | None = None, *, once: bool = False) -> BaseClient:
        """Return the client of a service, the same one for each thread.

        Args:
            service: Its name in boto3.
            region: Region to ask; None for the account's.
            once: Send each request once, and wait for its answer for a minute.
        """
        key = (service, region or self.region, once)
        with self._lock:
            if key not in self._clients:
                self._clients[key] = _client(self.session, *key)
            return self._clients[key]

    def ask(
        self, action: str, /, *, region: str | None = None, once: bool = False, **parameters: object
    ) -> Mapping[str, Any]:
        """Return the answer to one request.

        To look up a key that the answer does not have raises an `UnansweredError`, too.

        Args:
            action: The request as IAM calls it, such as ``ec2:DescribeVpcs``.
            region: Region to ask; None for the account's.
            once: Never send the request again by itself: for what must not happen twice.
            parameters: What boto3 takes, by the API's own names.

        Raises:
            UnansweredError: AWS refused it, or did not answer. `code` tells what a service means
                by an error, such as ``NoSuchResourceException``.
        """
        service, operation = _named(action)
        try:
            client = self.client(service, region, once=once)
            answer = getattr(client, _method(operation))(**parameters)
        except FAILURES as error:
            raise unanswered(action, region or self.region, error) from error
        return cast("Mapping[str, Any]", complete(action, answer))

    def ask_all(
        self,
        action: str,
        key: str,
        /,
        *,
        region: str | None = None,
        most: int | None = None,
        **parameters: object,
    ) -> list[Any]:
        """Return the elements of a list that comes in pages.

        Args:
            action: The request as IAM calls it, such as ``ec2:DescribeVpcs``.
            key: Where the list stands in an answer, such as ``Vpcs``.
            region: Region to ask; None for the account's.
            most: How many are enough; None asks for all pages.
            parameters: What boto3 takes, by the API's own names.

        Raises:
            UnansweredError: AWS refused a page, or did not answer. No page is returned then.
        """
        service, operation = _named(action)
        method = _method(operation)
        found: list[Any] = []
        try:
            client = self.client(service, region)
            if not client.can_paginate(method):
                return list(self.ask(action, region=region, once=False, **parameters).get(key, []))
            pages = client.get_paginator(method).paginate(**parameters)
            for page in cast("Iterable[Mapping[str, Any]]", pages):
                found += cast("list[Any]", complete(action, page.get(key, [])))
                if most is not None and len(found) >= most:
                    break
        except FAILURES as error:
            raise unanswered(action, region or self.region, error) from error
        return found


def connect(region: str, profile: str | None = None) -> Account:
    """Return the account that the user's credentials are of.

    Credentials and profiles are found as the AWS CLI finds them.

    Args:
        region: Region to work in.
        profile: Profile of the AWS CLI's configuration; None for the one that is set, if any.

    Raises:
        CatalogError: There is no such Region.
        AccountError: There are no credentials, they have expired, AWS does not accept them, or it
            cannot be reached.
    """
    lookup_region(region)
    try:
        session = cast("Session", boto3.Session(profile_name=profile, region_name=region))
        # It takes no permission, and no policy can deny it.
        # Source: https://docs.aws.amazon.com/STS/latest/APIReference/API_GetCallerIdentity.html
        sts = _client(session, "sts", region, once=False)
        caller = cast("Mapping[str, str]", sts.get_caller_identity())
        who = caller["Account"], caller["Arn"]
    except FAILURES as error:
        raise no_account(region, error) from error
    except (OSError, ValueError, RuntimeError) as error:
        # What a `credential_process` is, or the file of a token, botocore leaves to Python.
        raise misconfigured(error) from error
    return Account(id=who[0], arn=who[1], region=region, session=session, profile=profile)


def _client(session: Session, service: str, region: str, once: bool) -> Any:  # noqa: ANN401 one type a service
    config = Config(
        connect_timeout=_CONNECT_TIMEOUT,
        read_timeout=_READ_TIMEOUT_ONCE if once else _READ_TIMEOUT,
        retries={"mode": "standard", "total_max_attempts": 1 if once else _ATTEMPTS},
        max_pool_connections=_CONNECTIONS,
        user_agent_extra=f"ultrascale/{version('ultrascale')}",
    )
    return session.client(service, region_name=region, config=config)


def _method(operation: str) -> str:
    return botocore.xform_name(operation)


def _named(action: str) -> tuple[str, str]:
    """Return the service of an action, as boto3 calls it, and the operation."""
    prefix, _, operation = action.partition(":")
    return _CLIENTS.get(prefix, prefix), operation
