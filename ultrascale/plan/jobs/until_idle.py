"""Hold a stopping pod of vLLM until its replica has answered all requests.

A pod runs this text as its `preStop` hook, by the Python of its image and without this package.
"""

import os
import re
import sys
import time
import urllib.request
from contextlib import suppress
from pathlib import Path

_SERIES = re.compile(r"^vllm:num_requests_(?:running|waiting)(?:\{.*\})? (\S+)", re.MULTILINE)
# A request that is still read, or whose last words are being sent, is in no gauge.
_IDLE_IN_A_ROW = 3
_FAILURES_IN_A_ROW = 3


def leader() -> str:
    """Return the host of the replica's HTTP server: its own, or that of a group's first pod."""
    if os.environ.get("LWS_WORKER_INDEX", "0") == "0":
        return "127.0.0.1"
    return os.environ["LWS_LEADER_ADDRESS"]


def requests_at(url: str) -> float | None:
    """Return the requests that run and wait; None where the server has no such number."""
    # A proxy of the pod's environment does not reach it.
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(url, timeout=5) as answer:
        found = _SERIES.findall(answer.read().decode())
    return sum(map(float, found)) if found else None


def wait(url: str, quiet: float, most: float) -> str:
    """Wait until no request is left at ``url``, and return the reason of the end.

    Args:
        url: Metrics of the server.
        quiet: Seconds before the first look, in which clients forget the pod.
        most: Seconds after which it ends despite open requests.
    """
    end = time.monotonic() + most
    time.sleep(min(quiet, most))
    idle = failures = 0
    left: float | None = None
    while time.monotonic() < end:
        try:
            left = requests_at(url)
            failures = 0
        except OSError:
            failures += 1
        idle = idle + 1 if left == 0 and not failures else 0
        if idle == _IDLE_IN_A_ROW:
            return "all requests are answered"
        if failures == _FAILURES_IN_A_ROW:
            return "the server does not answer"
        time.sleep(1)
    return f"{'unknown' if left is None else int(left)} requests are left after {most:.0f} s"


def main() -> None:
    """Wait as the arguments say: port, seconds before the first look, seconds in all."""
    port, quiet, most = sys.argv[1:]
    told = wait(f"http://{leader()}:{port}/metrics", float(quiet), float(most))
    # A hook's own output is kept nowhere; this is the log of the server.
    with suppress(OSError):
        Path("/proc/1/fd/1").write_text(f"preStop: {told}\n")


if __name__ == "__main__":
    main()
