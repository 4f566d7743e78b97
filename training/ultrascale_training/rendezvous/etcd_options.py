"""Options of the connection to etcd: ``--rdzv-endpoint`` and ``--rdzv-conf``."""

import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from torch.distributed.elastic.rendezvous.api import RendezvousParameters
from torch.distributed.elastic.rendezvous.utils import parse_rendezvous_endpoint

from ultrascale_training.rendezvous.etcd_client import Credentials, Endpoint

_PORT = 2379
_FILES = ("ca_cert", "ssl_cert", "ssl_cert_key", "password_file")
# Seconds, with the least that makes sense. The server rounds a shorter lease up.
_SECONDS = {"read_timeout": (10, 1), "retry_timeout": (300, 1), "lease_ttl": (600, 5)}


@dataclass(frozen=True, kw_only=True)
class Options:
    """Connection to etcd, and its timeouts.

    Attributes:
        endpoints: The members, or one address that stands for them.
        tls: How to check them; None for plain HTTP.
        credentials: User and password, if etcd's authentication is on.
        read_timeout: Seconds for which one member is waited for.
        retry_timeout: Seconds that etcd may be away before the job fails.
        lease_ttl: Seconds for which the job's keys outlive its last node.
    """

    endpoints: tuple[Endpoint, ...]
    tls: ssl.SSLContext | None
    credentials: Credentials | None
    read_timeout: int
    retry_timeout: int
    lease_ttl: int


def parse_options(params: RendezvousParameters) -> Options:
    """Return the options in ``params``.

    The endpoint is one or more ``host[:port]``, separated by commas. The keys of ``--rdzv-conf``
    are those of torch's etcd-v2 backend, ``protocol`` (http or https), ``ca_cert``, ``ssl_cert``,
    ``ssl_cert_key`` and ``read_timeout`` (10), and ``retry_timeout`` (300), ``lease_ttl`` (600),
    ``user`` and ``password_file``. The password has a file, since torchrun logs its options.

    Raises:
        ValueError: Something is wrong; the message lists all mistakes.
    """
    mistakes: list[str] = []
    endpoints = tuple(_endpoints(params.endpoint, mistakes))
    seconds = {key: _seconds(params, key, mistakes) for key in _SECONDS}
    mistakes += _conflicts(params)
    if mistakes:
        raise ValueError("rendezvous backend etcd-v3: " + "; ".join(mistakes))
    return Options(endpoints=endpoints, tls=_tls(params), credentials=_user(params), **seconds)


def _endpoints(text: str, mistakes: list[str]) -> Iterator[Endpoint]:
    for part in text.split(","):
        if not part.strip():
            mistakes.append(f"--rdzv-endpoint: no host in {text!r}; write host:port[,host:port]")
            continue
        try:
            host, port = parse_rendezvous_endpoint(part.strip(), default_port=_PORT)
        except ValueError as error:
            mistakes.append(f"--rdzv-endpoint: {error}")
        else:
            yield Endpoint(host=host, port=port)


def _seconds(params: RendezvousParameters, key: str, mistakes: list[str]) -> int:
    default, least = _SECONDS[key]
    try:
        value = int(params.get(key, default))
    except ValueError:
        value = 0
    if value < least:
        mistakes.append(
            f"{key}: not a time, got {params.get(key)!r}; write whole seconds, {least} or more"
        )
    return value


def _conflicts(params: RendezvousParameters) -> Iterator[str]:
    protocol = params.get("protocol", "http")
    if protocol not in ("http", "https"):
        yield f"protocol: unknown, got {protocol!r}; write http or https"
    given = {key for key in _FILES if params.get(key)}
    for key in sorted(given & {"ca_cert", "ssl_cert", "ssl_cert_key"}):
        if protocol == "http":
            yield f"{key}: means nothing over http; add protocol=https"
    for key in sorted(given):
        if not Path(params.get(key)).is_file():
            yield f"{key}: no such file, got {params.get(key)!r}; mount it into the pod"
    for one, other in (("ssl_cert_key", "ssl_cert"), ("user", "password_file")):
        if params.get(one) and not params.get(other):
            yield f"{one}: needs {other}; add it"
    if "password_file" in given and not params.get("user"):
        yield "password_file: needs user; add it"


def _tls(params: RendezvousParameters) -> ssl.SSLContext | None:
    if params.get("protocol", "http") == "http":
        return None
    context = ssl.create_default_context(cafile=params.get("ca_cert"))
    if certificate := params.get("ssl_cert"):
        # The key may stand in the certificate's own file.
        context.load_cert_chain(certificate, params.get("ssl_cert_key"))
    return context


def _user(params: RendezvousParameters) -> Credentials | None:
    if not (user := params.get("user")):
        return None
    password = Path(params.get("password_file")).read_text().rstrip("\n")
    return Credentials(user=user, password=password)
