"""Liveness of vLLM: it fails while requests are there and nothing moves.

`/health` answers as long as the server's own process does, also while its engine, or another node
of the replica, hangs for ever. A pod runs this text as its liveness probe, by the Python of its
image and without this package. It keeps nothing between two runs: the kubelet counts failures.

Engines count requests in what they return: one that hangs before its first token has none to show.
A server that has never counted a token is asked for one, which a sound one counts.

Sources:
    https://github.com/vllm-project/vllm/issues/36451
    https://github.com/vllm-project/vllm/issues/46811
"""

import json
import os
import re
import sys
import time
import urllib.error
import urllib.request
from urllib.parse import urljoin

# A long prompt is read in parts, each of which takes more of the cache before any token is counted.
_SERIES = re.compile(
    r"^vllm:(num_requests_running|num_requests_waiting|kv_cache_usage_perc|prompt_tokens_total"
    r"|generation_tokens_total)(?:\{(.*)\})? (\S+)",
    re.MULTILINE,
)
_ENGINE = re.compile('engine="([^"]*)"')
# A proxy of the pod's environment does not reach it.
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def moves(url: str, seconds: float) -> bool:
    """Return whether each engine at ``url`` has nothing to do, or does something within a time.

    Raises:
        OSError: It does not answer.
    """
    end = time.monotonic() + seconds
    stuck = None
    while True:
        try:
            with _DIRECT.open(url, timeout=max(1, end - time.monotonic())) as answer:
                series = _SERIES.findall(answer.read().decode())
        except urllib.error.HTTPError as error:
            return error.code < 500
        now: dict[str, list[tuple[str, str]]] = {}
        for name, labels, value in series:
            now.setdefault("".join(_ENGINE.findall(labels)), []).append((name, value))
        busy = {engine: counts for engine, counts in now.items() if _has_requests(counts)}
        stuck = {
            engine: counts
            for engine, counts in busy.items()
            if stuck is None or stuck.get(engine) == counts
        }
        if not stuck:
            tokens = (value for name, _, value in series if name.endswith("tokens_total"))
            return any(map(float, tokens)) or generates(url, end - time.monotonic())
        if time.monotonic() >= end:
            return False
        time.sleep(1)


def _has_requests(counts: "list[tuple[str, str]]") -> bool:
    return any(float(value) for name, value in counts if name.startswith("num_requests"))


def generates(url: str, seconds: float) -> bool:
    """Return whether the server of ``url`` answers a request for one token, or refuses it.

    Raises:
        OSError: It gives no answer.
    """
    headers = {"Content-Type": "application/json"}
    if key := os.environ.get("VLLM_API_KEY"):
        headers["Authorization"] = f"Bearer {key}"
    body = json.dumps({"prompt": "a", "max_tokens": 1}).encode()
    asked = urllib.request.Request(urljoin(url, "/v1/completions"), body, headers)
    try:
        _DIRECT.open(asked, timeout=max(1, seconds)).close()
    except urllib.error.HTTPError as error:
        error.close()
    return True


def main() -> None:
    """Look as the arguments say: port, and seconds in which something has to move."""
    port, seconds = sys.argv[1:]
    try:
        if moves(f"http://127.0.0.1:{port}/metrics", float(seconds)):
            return
        sys.exit(f"requests are there, and no token, no request and no cache moves in {seconds} s")
    except OSError as error:
        sys.exit(f"the server does not answer in {seconds} s: {error}")


if __name__ == "__main__":
    main()
