"""The account of the user's credentials: its clients, and typed requests to them."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MethodType
from typing import TYPE_CHECKING, Literal, ParamSpec, Protocol, TypedDict, TypeVar, cast, overload

import boto3
from botocore.client import BaseClient
from botocore.config import Config

from ultrascale import account
from ultrascale.account.answers import (
    FAILURES,
    complete,
    complete_page,
    misconfigured,
    no_account,
    unanswered,
)
from ultrascale.catalog.regions import lookup_region
from ultrascale.errors import QuestionError
from ultrascale.release import PRODUCT, VERSION

if TYPE_CHECKING:
    from mypy_boto3_amp import PrometheusServiceClient
    from mypy_boto3_autoscaling import AutoScalingClient
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_cloudwatch import CloudWatchClient
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_ecr import ECRClient
    from mypy_boto3_eks import EKSClient
    from mypy_boto3_fsx import FSxClient
    from mypy_boto3_iam import IAMClient
    from mypy_boto3_kms import KMSClient
    from mypy_boto3_logs import CloudWatchLogsClient
    from mypy_boto3_rds import RDSClient
    from mypy_boto3_resource_groups import ResourceGroupsClient
    from mypy_boto3_resourcegroupstaggingapi import ResourceGroupsTaggingAPIClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sagemaker import SageMakerClient
    from mypy_boto3_service_quotas import ServiceQuotasClient
    from mypy_boto3_ssm import SSMClient
    from mypy_boto3_sts import STSClient

    from ultrascale.account import Account
    from ultrascale.account.clients import CertificateManagerClient, LoadBalancingClient

    class ProductPage(TypedDict):
        """A page of the answer of ``GetProducts``."""

        PriceList: list[str]

    class PricingClient(BaseClient):
        """The part of boto3's Price List client that the product uses."""

        def get_products(
            self,
            *,
            ServiceCode: str,  # noqa: N803 the API's own name
            Filters: Sequence[Mapping[str, str]],  # noqa: N803 the API's own name
        ) -> ProductPage:
            """Return products with their prices, each as text in JSON."""
            ...


# --- The account that a cluster file names --------------------------------------------------------


def connect_to_owner(region: str, account_id: str | None, profile: str | None) -> "Account":
    """Return the account of the user's credentials, after a check that the cluster file names it.

    Another account may have a cluster of the same name.

    Args:
        region: Region of the cluster.
        account_id: Account of the cluster; None: any.
        profile: Profile of the AWS CLI's configuration; None for the one that is set, if any.

    Raises:
        AccountError: There are no credentials, or AWS cannot be reached.
        QuestionError: The cluster file names another account.
    """
    owner = account.connect(region, profile)
    if account_id not in (None, owner.id):
        raise QuestionError(
            [
                f"account: the cluster file names account {account_id}, the credentials belong "
                f"to {owner.id}; name another profile by --profile"
            ]
        )
    return owner


_P = ParamSpec("_P")
_Answer = TypeVar("_Answer")
_Element = TypeVar("_Element")

# Seconds. A command sends a few hundred requests at most, and ends within a minute.
_CONNECT_TIMEOUT = 4
_READ_TIMEOUT = 10
# A purchase may take longer, and an interrupted purchase may or may not have been made.
_READ_TIMEOUT_ONCE = 60
_ATTEMPTS = 3
_CONNECTIONS = 20

# IAM's prefix of each service that boto3 calls by another name.
# Source: https://docs.aws.amazon.com/service-authorization/latest/reference/reference_policies_actions-resources-contextkeys.html
_IAM_PREFIXES = {
    "amp": "aps",
    "elbv2": "elasticloadbalancing",
    "resourcegroupstaggingapi": "tag",
    "service-quotas": "servicequotas",
}
# Source: https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazons3.html
_IAM_ACTIONS = {
    "s3:HeadObject": "s3:GetObject",
    "s3:HeadBucket": "s3:ListBucket",
    "s3:ListObjectsV2": "s3:ListBucket",
    "s3:GetBucketEncryption": "s3:GetEncryptionConfiguration",
}


class Session(Protocol):
    """The part of `boto3.Session` that makes clients."""

    def client(self, service_name: str, *, region_name: str, config: Config) -> BaseClient:
        """Return a new client of a service."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Account:
    """An AWS account, seen with the user's credentials. Threads may share it.

    A request is a method of a typed client and its parameters::

        ec2 = account.client("ec2")
        account.ask(ec2.describe_vpcs, VpcIds=["vpc-1"])
    """

    id: str  # Its twelve digits
    arn: str  # ARN of the caller
    region: str  # Region of requests that name no Region
    session: Session  # Makes the clients
    # Profile that the user named; None if the AWS CLI's own search applies
    profile: str | None = None
    _clients: dict[tuple[str, str, bool], BaseClient] = field(
        default_factory=dict[tuple[str, str, bool], BaseClient], init=False, repr=False
    )
    # Threads must not share a session; they may share a client.
    # Source: https://docs.aws.amazon.com/boto3/latest/guide/clients.html
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    @overload
    def client(
        self, service: Literal["acm"], region: str | None = None, *, once: bool = False
    ) -> "CertificateManagerClient": ...
    @overload
    def client(
        self, service: Literal["amp"], region: str | None = None, *, once: bool = False
    ) -> "PrometheusServiceClient": ...
    @overload
    def client(
        self, service: Literal["autoscaling"], region: str | None = None, *, once: bool = False
    ) -> "AutoScalingClient": ...
    @overload
    def client(
        self, service: Literal["cloudformation"], region: str | None = None, *, once: bool = False
    ) -> "CloudFormationClient": ...
    @overload
    def client(
        self, service: Literal["cloudwatch"], region: str | None = None, *, once: bool = False
    ) -> "CloudWatchClient": ...
    @overload
    def client(
        self, service: Literal["ec2"], region: str | None = None, *, once: bool = False
    ) -> "EC2Client": ...
    @overload
    def client(
        self, service: Literal["ecr"], region: str | None = None, *, once: bool = False
    ) -> "ECRClient": ...
    @overload
    def client(
        self, service: Literal["eks"], region: str | None = None, *, once: bool = False
    ) -> "EKSClient": ...
    @overload
    def client(
        self, service: Literal["elbv2"], region: str | None = None, *, once: bool = False
    ) -> "LoadBalancingClient": ...
    @overload
    def client(
        self, service: Literal["fsx"], region: str | None = None, *, once: bool = False
    ) -> "FSxClient": ...
    @overload
    def client(
        self, service: Literal["iam"], region: str | None = None, *, once: bool = False
    ) -> "IAMClient": ...
    @overload
    def client(
        self, service: Literal["kms"], region: str | None = None, *, once: bool = False
    ) -> "KMSClient": ...
    @overload
    def client(
        self, service: Literal["logs"], region: str | None = None, *, once: bool = False
    ) -> "CloudWatchLogsClient": ...
    @overload
    def client(
        self, service: Literal["pricing"], region: str | None = None, *, once: bool = False
    ) -> "PricingClient": ...
    @overload
    def client(
        self, service: Literal["rds"], region: str | None = None, *, once: bool = False
    ) -> "RDSClient": ...
    @overload
    def client(
        self, service: Literal["resource-groups"], region: str | None = None, *, once: bool = False
    ) -> "ResourceGroupsClient": ...
    @overload
    def client(
        self,
        service: Literal["resourcegroupstaggingapi"],
        region: str | None = None,
        *,
        once: bool = False,
    ) -> "ResourceGroupsTaggingAPIClient": ...
    @overload
    def client(
        self, service: Literal["s3"], region: str | None = None, *, once: bool = False
    ) -> "S3Client": ...
    @overload
    def client(
        self, service: Literal["sagemaker"], region: str | None = None, *, once: bool = False
    ) -> "SageMakerClient": ...
    @overload
    def client(
        self, service: Literal["service-quotas"], region: str | None = None, *, once: bool = False
    ) -> "ServiceQuotasClient": ...
    @overload
    def client(
        self, service: Literal["ssm"], region: str | None = None, *, once: bool = False
    ) -> "SSMClient": ...
    @overload
    def client(
        self, service: Literal["sts"], region: str | None = None, *, once: bool = False
    ) -> "STSClient": ...
    def client(self, service: str, region: str | None = None, *, once: bool = False) -> BaseClient:
        """Return the client of a service; all threads share it.

        Args:
            service: Name of the service in boto3.
            region: Region of its requests; None for the account's.
            once: Send a request only once, and wait a minute for its answer: for purchases and
                other requests that must not happen twice.
        """
        key = (service, region or self.region, once)
        with self._lock:
            if key not in self._clients:
                self._clients[key] = _client(self.session, *key)
            return self._clients[key]

    def ask(
        self, method: Callable[_P, _Answer], /, *args: _P.args, **parameters: _P.kwargs
    ) -> _Answer:
        """Return the answer to one request.

        Reading a key that AWS left out of the answer raises an `UnansweredError` as well.

        Args:
            method: Method of a client, such as ``ec2.describe_vpcs``.
            args: None: boto3 takes parameters by name alone.
            parameters: Parameters of the request, by the API's own names.

        Raises:
            UnansweredError: AWS refused the request, or did not answer. The error's `code` is the
                service's own, such as ``NoSuchResourceException``.
        """
        client, action = _client_and_action(method)
        try:
            answer = method(*args, **parameters)
        except FAILURES as error:
            raise unanswered(action, client.meta.region_name, error) from error
        return complete(action, answer)

    def ask_pages(
        self, method: Callable[_P, _Answer], /, *args: _P.args, **parameters: _P.kwargs
    ) -> Iterator[_Answer]:
        """Yield the pages of an answer, each as AWS sends it.

        A list that AWS left out of a page is an empty list.

        Args:
            method: Method of a client, such as ``ec2.describe_vpcs``.
            args: None: boto3 takes parameters by name alone.
            parameters: Parameters of the request, by the API's own names.

        Raises:
            UnansweredError: AWS refused a page, or did not answer.
        """
        client, action = _client_and_action(method)
        try:
            if client.can_paginate(method.__name__):
                pages = client.get_paginator(method.__name__).paginate(*args, **parameters)
            else:
                pages = (method(*args, **parameters),)
            for page in pages:
                yield complete_page(action, page)
        except FAILURES as error:
            raise unanswered(action, client.meta.region_name, error) from error

    def ask_all(
        self,
        method: Callable[_P, _Answer],
        elements: Callable[[_Answer], Iterable[_Element]],
        /,
        *args: _P.args,
        **parameters: _P.kwargs,
    ) -> list[_Element]:
        """Return the elements of all pages of an answer.

        Args:
            method: Method of a client, such as ``ec2.describe_vpcs``.
            elements: Takes the elements out of a page, such as ``lambda page: page["Vpcs"]``.
            args: None: boto3 takes parameters by name alone.
            parameters: Parameters of the request, by the API's own names.

        Raises:
            UnansweredError: AWS refused a page, or did not answer. No element is returned then.
        """
        pages = self.ask_pages(method, *args, **parameters)
        return [element for page in pages for element in elements(page)]


def connect(region: str, profile: str | None = None) -> Account:
    """Return the account of the user's credentials.

    Credentials and profiles are found as the AWS CLI finds them.

    Args:
        region: Region to work in.
        profile: Profile of the AWS CLI's configuration; None for the one that is set, if any.

    Raises:
        CatalogError: There is no such Region.
        AccountError: There are no credentials, they have expired, AWS does not accept them, or AWS
            cannot be reached.
    """
    lookup_region(region)
    try:
        session = cast("Session", boto3.Session(profile_name=profile, region_name=region))
        account = Account(id="", arn="", region=region, session=session, profile=profile)
        # This request needs no permission, and no policy can deny it.
        # Source: https://docs.aws.amazon.com/STS/latest/APIReference/API_GetCallerIdentity.html
        caller = account.client("sts").get_caller_identity()
        return replace(account, id=caller["Account"], arn=caller["Arn"])
    except FAILURES as error:
        raise no_account(region, error) from error
    except (OSError, ValueError, RuntimeError) as error:
        # botocore leaves errors of a `credential_process` or of a token's file to Python.
        raise misconfigured(error) from error


def _client(session: Session, service: str, region: str, once: bool) -> BaseClient:
    config = Config(
        connect_timeout=_CONNECT_TIMEOUT,
        read_timeout=_READ_TIMEOUT_ONCE if once else _READ_TIMEOUT,
        retries={"mode": "standard", "total_max_attempts": 1 if once else _ATTEMPTS},
        max_pool_connections=_CONNECTIONS,
        user_agent_extra=f"{PRODUCT}/{VERSION}",
    )
    return session.client(service, region_name=region, config=config)


def _client_and_action(method: Callable[..., object]) -> tuple[BaseClient, str]:
    """Return the client of a method, and IAM's name of the request."""
    assert isinstance(method, MethodType), f"no method of a client: {method}"
    client = method.__self__
    assert isinstance(client, BaseClient), f"no client: {client}"
    service = client.meta.service_model.service_name
    operation = client.meta.method_to_api_mapping[method.__name__]
    action = f"{_IAM_PREFIXES.get(service, service)}:{operation}"
    return client, _IAM_ACTIONS.get(action, action)
