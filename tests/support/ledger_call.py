"""One call of the function of the fleet metrics, at a time and against servers of a test."""

import json
import ssl
import sys
import time
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from tests.support.stub_api_server import Object
from ultrascale.lambdas.fleet_metrics import handler
from ultrascale.lambdas.kubernetes import KubernetesApi

CONTEXT: Any = SimpleNamespace(
    invoked_function_arn="arn:aws:lambda:us-east-2:111122223333:function:fleet"
)


def call(event: Object, url: str, now: int) -> None:
    """Call the function for an API server and a time, which it looks up otherwise."""
    plain = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    api = KubernetesApi(endpoint=url, context=plain, token="token")
    clock = SimpleNamespace(**{**vars(time), "time": lambda: float(now)})
    with patch.multiple(handler, api_of=lambda _: api, time=clock):  # pyright: ignore[reportUnknownLambdaType]
        handler.on_event(event, CONTEXT)


if __name__ == "__main__":
    sent = json.load(sys.stdin)
    call(sent["event"], sent["url"], sent["now"])
