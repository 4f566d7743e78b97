"""Options of the connection to etcd: ``--rdzv-endpoint`` and ``--rdzv-conf``."""

import ssl
from collections.abc import Iterator
from pathlib import Path

from torch.distributed.elastic.rendezvous.api import RendezvousParameters
from torch.distributed.elastic.rendezvous.utils import parse_rendezvous_endpoint

from ultrascale_training.rendezvous.etcd_client import EtcdClient
from ultrascale_training.rendezvous.etcd_keys import JobKeys

_PORT = 2379
_FILES = ("ca_cert", "ssl_cert", "ssl_cert_key")
# Seconds: default, and shortest useful value. The server rounds a shorter lease up.
_SECONDS = {"read_timeout": (10, 1), "retry_timeout": (300, 1), "lease_ttl": (600, 5)}


def keys_of(params: RendezvousParameters) -> JobKeys:
    """Return the keys of the job in ``params``; nothing is sent yet.

    The endpoint is one or more ``host[:port]``, separated by commas. The keys of ``--rdzv-conf``
    are those of torch's etcd-v2 backend, ``protocol`` (http or https), ``ca_cert``, ``ssl_cert``,
    ``ssl_cert_key`` and ``read_timeout`` (10), and ``retry_timeout`` (300) and ``lease_ttl`` (600).

    Raises:
        ValueError: An option is wrong; the message lists all mistakes.
    """
    mistakes: list[str] = []
    endpoints = list(_endpoints(params.endpoint, mistakes))
    seconds = {key: _seconds(params, key, mistakes) for key in _SECONDS}
    mistakes += _conflicts(params)
    if mistakes:
        raise ValueError("rendezvous backend etcd-v3: " + "; ".join(mistakes))
    client = EtcdClient(
        endpoints,
        tls=_tls(params),
        read_timeout=seconds["read_timeout"],
        retry_timeout=seconds["retry_timeout"],
    )
    return JobKeys(client, params.run_id, ttl=seconds["lease_ttl"])


def _endpoints(text: str, mistakes: list[str]) -> Iterator[str]:
    for part in text.split(","):
        if not part.strip():
            mistakes.append(f"--rdzv-endpoint: no host in {text!r}; write host:port[,host:port]")
            continue
        try:
            host, port = parse_rendezvous_endpoint(part.strip(), default_port=_PORT)
        except ValueError as error:
            mistakes.append(f"--rdzv-endpoint: {error}")
        else:
            yield f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _seconds(params: RendezvousParameters, key: str, mistakes: list[str]) -> int:
    default, shortest = _SECONDS[key]
    try:
        value = int(params.get(key, default))
    except ValueError:
        value = 0
    if value < shortest:
        mistakes.append(
            f"{key}: not a time, got {params.get(key)!r}; write whole seconds, {shortest} or more"
        )
    return value


def _conflicts(params: RendezvousParameters) -> Iterator[str]:
    protocol = params.get("protocol", "http")
    if protocol not in ("http", "https"):
        yield f"protocol: unknown, got {protocol!r}; write http or https"
    for key in filter(params.get, _FILES):
        if protocol == "http":
            yield f"{key}: means nothing over http; add protocol=https"
        if not Path(params.get(key)).is_file():
            yield f"{key}: no such file, got {params.get(key)!r}; mount it into the pod"
    if params.get("ssl_cert_key") and not params.get("ssl_cert"):
        yield "ssl_cert_key: needs ssl_cert; add it"
    for key in filter(params.get, ("user", "password_file")):
        yield f"{key}: etcd's own users are not supported; let etcd ask for certificates: ssl_cert"


def _tls(params: RendezvousParameters) -> ssl.SSLContext | None:
    if params.get("protocol", "http") == "http":
        return None
    context = ssl.create_default_context(cafile=params.get("ca_cert"))
    if certificate := params.get("ssl_cert"):
        # The certificate's own file may contain the key.
        context.load_cert_chain(certificate, params.get("ssl_cert_key"))
    return context
