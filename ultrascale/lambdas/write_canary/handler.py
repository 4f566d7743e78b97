"""Function of the write canary; a schedule calls it each minute."""

import json
import os
from http.client import HTTPSConnection
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from botocore.session import Session

from ..cluster import look_up
from ..kubernetes import bearer_token, tls_context
from .lease import Lease
from .run import Clock, run
from .settings import Settings

if TYPE_CHECKING:
    from ..events import CanaryInput, Context

# Beyond the threshold. A longer write is lost, with its connection.
_GRACE_SECONDS = 5


def on_event(event: "CanaryInput", context: "Context") -> None:
    """Write until the next run takes over, and log the outcomes.

    Args:
        event: The settings.
        context: Lambda's context, with the id of the run.

    Raises:
        Exception: The run could not begin. An alarm counts missing data as a fault.
    """
    settings = Settings.parse(event)
    lease = _lease(settings, context.aws_request_id)
    try:
        for line in run(lease, settings, Clock()):
            text = line if isinstance(line, str) else json.dumps(line, separators=(",", ":"))
            print(text, flush=True)
    finally:
        lease.close()


def _lease(settings: Settings, holder: str) -> Lease:
    server = look_up(settings.cluster)
    endpoint = urlsplit(server.endpoint)
    tls = tls_context(server.certificate_authority)
    timeout = settings.threshold_seconds + _GRACE_SECONDS
    assert endpoint.hostname is not None
    host, port = endpoint.hostname, endpoint.port or 443
    return Lease(
        lambda: HTTPSConnection(host, port, timeout=timeout, context=tls),
        path=settings.path,
        token=bearer_token(Session(), cluster=settings.cluster, region=os.environ["AWS_REGION"]),
        holder=holder,
    )
