"""How the API server of a cluster is reached: by a kubeconfig, or by a pod's service account.

All that is asked of the untyped package `kubernetes` stands here.
"""

import logging
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast
from urllib.parse import urlsplit
from urllib.request import proxy_bypass

import yaml
from urllib3.util.retry import Retry

from ultrascale.errors import ClusterError

if TYPE_CHECKING:
    from urllib3.response import BaseHTTPResponse

# Requests that an overloaded API server put off, by priority and fairness: it has done nothing
# with them, so that any of them may be sent again. Waits are in seconds.
# Source: https://kubernetes.io/docs/concepts/cluster-administration/flow-control/
_TOO_MANY = 429
_RETRIES = 5
_BACKOFF = 0.5
_LONGEST_WAIT = 30
_CONNECT_RETRIES = 2
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
# Logs of so many pods are followed at once, beside the watches.
CONNECTIONS = 80

_WRITE_IT = (
    "write it by `aws eks update-kubeconfig --name CLUSTER --region REGION`, or name one by "
    "--kubeconfig"
)


class Transport(Protocol):
    """What is used of `kubernetes.client.ApiClient`."""

    user_agent: str

    def call_api(
        self,
        resource_path: str,
        method: str,
        *,
        query_params: list[tuple[str, str]],
        header_params: dict[str, str],
        body: object,
        auth_settings: list[str],
        _preload_content: bool,
        _return_http_data_only: bool,
        _request_timeout: tuple[float, float | None],
    ) -> "BaseHTTPResponse":
        """Send a request, and return its answer unread."""
        ...


class _Config(Protocol):
    def load_kube_config(
        self,
        *,
        config_file: str,
        context: str | None,
        client_configuration: object,
        persist_config: bool,
    ) -> None: ...

    def list_kube_config_contexts(
        self, *, config_file: str
    ) -> tuple[list[Mapping[str, object]], Mapping[str, object]]: ...


class Answer(Protocol):
    """What is used of `kubernetes.client.exceptions.ApiException`.

    Attributes:
        status: HTTP status; 0 where TLS failed.
        reason: What failed.
        body: What the server answered.
    """

    status: int
    reason: str
    body: str | bytes | None


class _RetryPutOff(Retry):
    RETRY_AFTER_STATUS_CODES = frozenset({_TOO_MANY})


def connect(kubeconfig: Path | None, context: str | None) -> tuple[Transport, str]:
    """Return a way to the API server, and the name of its cluster where a kubeconfig says it.

    Without ``kubeconfig`` the files of the environment variable `KUBECONFIG` are read, then
    `~/.kube/config`; where neither exists and this is a pod, it is its service account's.

    Raises:
        ClusterError: There is no kubeconfig, it is wrong, or it gives no credentials.
    """
    # The package is heavy, and what renders jobs needs none of it.
    from kubernetes import client, config

    configuration = cast("Any", client).Configuration()
    configuration.retries = _retries()
    configuration.connection_pool_maxsize = CONNECTIONS
    cluster = ""
    files = _kubeconfig(kubeconfig)
    with _told() as told:
        try:
            if files is None:
                config.load_incluster_config(client_configuration=configuration)
            else:
                cluster = _load(cast("_Config", config), files, context, configuration)
        except (config.ConfigException, OSError, ValueError) as error:
            source = files or "the pod's service account"
            raise ClusterError(f"{source}: {error}") from error
    if not configuration.api_key and not configuration.cert_file:
        why = f": {'; '.join(told)}" if told else ""
        raise ClusterError(
            f"{files}: no credentials for {configuration.host}{why}; run the command that the "
            "file names for this user by hand (for EKS: `aws eks get-token`, after `aws sso login`)"
        )
    if _goes_direct(configuration.host):
        configuration.proxy = None
    transport = cast("Transport", cast("Any", client).ApiClient(configuration))
    transport.user_agent = f"ultrascale/{version('ultrascale')}"
    return transport, cluster


def _goes_direct(url: str) -> bool:
    """Return whether no proxy of the environment is asked for ``url``, as kubectl has it.

    The client takes the proxy from there, but forgets `NO_PROXY`, and that a port of this machine,
    such as `ultrascale connect` opens, is no affair of a proxy's.

    Sources:
        https://github.com/kubernetes-client/python/blob/v35.0.0/kubernetes/client/configuration.py
        https://pkg.go.dev/net/http#ProxyFromEnvironment
    """
    host = urlsplit(url).hostname or ""
    return host in _LOOPBACK or bool(proxy_bypass(host))


def _retries() -> Retry:
    return _RetryPutOff(
        total=_RETRIES,
        connect=_CONNECT_RETRIES,
        read=False,
        redirect=False,
        status=_RETRIES,
        other=0,
        allowed_methods=None,
        status_forcelist={_TOO_MANY},
        backoff_factor=_BACKOFF,
        backoff_max=_LONGEST_WAIT,
        retry_after_max=_LONGEST_WAIT,
        raise_on_status=False,
    )


def _kubeconfig(named: Path | None) -> str | None:
    """Return the kubeconfig files, joined as in `KUBECONFIG`; None for a pod without."""
    if named is not None:
        if not named.is_file():
            wrong = "is no file" if named.exists() else "does not exist"
            raise ClusterError(f"no cluster is known: {named} {wrong}; {_WRITE_IT}")
        return str(named)
    default = Path("~/.kube/config").expanduser()
    paths = os.environ.get("KUBECONFIG") or str(default)
    if any(Path(each).expanduser().is_file() for each in paths.split(os.pathsep) if each):
        return paths
    if os.environ.get("KUBERNETES_SERVICE_HOST"):
        return None
    raise ClusterError(f"no cluster is known: {paths} does not exist; {_WRITE_IT}")


def _refuse_no_kubeconfig(files: str) -> None:
    """Refuse files that are none, of which the client says nothing that a user understands.

    Raises:
        ClusterError: One is not YAML, or not a mapping.
    """
    for path in (Path(each).expanduser() for each in files.split(os.pathsep) if each):
        if not path.is_file():
            continue
        try:
            found = yaml.safe_load(path.read_bytes())
        except yaml.YAMLError as error:
            why = " ".join(str(error).split())
            raise ClusterError(f"{path}: no kubeconfig, not YAML: {why}; {_WRITE_IT}") from error
        if not isinstance(found, Mapping | None):
            raise ClusterError(f"{path}: no kubeconfig, not a mapping; {_WRITE_IT}")


def _load(config: "_Config", files: str, context: str | None, configuration: object) -> str:
    _refuse_no_kubeconfig(files)
    config.load_kube_config(
        config_file=files,
        context=context,
        client_configuration=configuration,
        persist_config=False,
    )
    contexts, active = config.list_kube_config_contexts(config_file=files)
    named = [each for each in contexts if each["name"] == context] or [active]
    chosen = cast("Mapping[str, Mapping[str, str]]", named[0])
    return chosen["context"]["cluster"]


@contextmanager
def _told() -> Generator[list[str]]:
    """Collect why the command of a kubeconfig gave no credentials.

    The client does not raise it, but logs it.
    Source: https://github.com/kubernetes-client/python/blob/v35.0.0/kubernetes/base/config/kube_config.py
    """
    told: list[str] = []

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told.append(record.getMessage())

    collector = Collector(logging.ERROR)
    root = logging.getLogger()
    root.addHandler(collector)
    try:
        yield told
    finally:
        root.removeHandler(collector)
