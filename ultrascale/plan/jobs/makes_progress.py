"""Liveness of vLLM: it fails while requests are there and nothing moves.

`/health` answers as long as the server's own process does, also while its engine, or another node
of the replica, hangs for ever. A pod runs this text as its liveness probe, by the Python of its
image and without this package. It keeps nothing between two runs: the kubelet counts failures.

Sources:
    https://github.com/vllm-project/vllm/issues/36451
    https://github.com/vllm-project/vllm/issues/46811
"""

import re
import sys
import time
import urllib.error
import urllib.request

# A long prompt is read in parts, each of which takes more of the cache before any token is counted.
_SERIES = re.compile(
    r"^vllm:(num_requests_running|num_requests_waiting|kv_cache_usage_perc|prompt_tokens_total"
    r"|generation_tokens_total)(?:\{.*\})? (\S+)",
    re.MULTILINE,
)


def moves(url: str, seconds: float) -> bool:
    """Return whether the server at ``url`` has nothing to do, or does something within a time.

    Raises:
        OSError: It does not answer.
    """
    end = time.monotonic() + seconds
    first = None
    # A proxy of the pod's environment does not reach it.
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while True:
        try:
            with direct.open(url, timeout=max(1, end - time.monotonic())) as answer:
                now = _SERIES.findall(answer.read().decode())
        except urllib.error.HTTPError as error:
            return error.code < 500
        requests = sum(float(value) for name, value in now if name.startswith("num_requests"))
        if not requests or (first is not None and now != first):
            return True
        if time.monotonic() >= end:
            return False
        first = now
        time.sleep(1)


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
