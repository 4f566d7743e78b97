"""Connection to an API server, by a kubeconfig or by a pod's service account.

The package `kubernetes` has no types. Only this module imports it, and declares the types of the
parts that it uses.
"""

import logging
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypedDict, cast
from urllib.parse import urlsplit
from urllib.request import proxy_bypass

import yaml
from urllib3.util.retry import Retry

from ultrascale.errors import ClusterError
from ultrascale.release import PRODUCT, VERSION

if TYPE_CHECKING:
    from urllib3.response import BaseHTTPResponse

# A request that priority and fairness puts off is answered with 429 before it has begun: every such
# request may be sent again. Waits are in seconds.
# Source: https://kubernetes.io/docs/concepts/cluster-administration/flow-control/
_TOO_MANY = 429
_RETRIES = 5
_BACKOFF = 0.5
_LONGEST_WAIT = 30
_CONNECT_RETRIES = 2


class _RetryPutOff(Retry):
    RETRY_AFTER_STATUS_CODES = frozenset({_TOO_MANY})


def retries() -> Retry:
    """Return the policy for repeating requests to an API server."""
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


_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
# A connection for each followed log, and for each watch.
CONNECTIONS = 80

_WRITE_IT = (
    "write it by `aws eks update-kubeconfig --name CLUSTER --region REGION`, or name one by "
    "--kubeconfig"
)


class Transport(Protocol):
    """The part of `kubernetes.client.ApiClient` that this package uses."""

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
        """Send a request, and return the response, whose body is not read yet."""
        ...


class _Configuration(Protocol):
    """The part of `kubernetes.client.Configuration` that this module uses."""

    host: str
    proxy: str | None
    retries: "Retry"
    connection_pool_maxsize: int
    api_key: Mapping[str, str]
    cert_file: str | None


class _Client(Protocol):
    """The part of `kubernetes.client` that this module uses."""

    def Configuration(self) -> _Configuration: ...  # noqa: N802 it is a class

    def ApiClient(self, configuration: _Configuration) -> Transport: ...  # noqa: N802 it is a class


class _NamedContext(TypedDict):
    """A context of a kubeconfig."""

    name: str
    context: Mapping[str, str]


class _Config(Protocol):
    """The part of `kubernetes.config` that this module uses."""

    def load_kube_config(
        self,
        *,
        config_file: str,
        context: str | None,
        client_configuration: _Configuration,
        persist_config: bool,
    ) -> None: ...

    def list_kube_config_contexts(
        self, *, config_file: str
    ) -> tuple[list[_NamedContext], _NamedContext]: ...


class Failure(Protocol):
    """The part of `kubernetes.client.exceptions.ApiException` that this package uses."""

    status: int  # HTTP status; 0 where TLS failed
    reason: str  # Reason of the failure
    body: str | bytes | None  # Body of the response


def connect(kubeconfig: Path | None, context: str | None) -> tuple[Transport, str]:
    """Return a connection to the API server, and the cluster's name in the kubeconfig.

    Without ``kubeconfig`` it reads the files of the environment variable `KUBECONFIG`, then
    `~/.kube/config`. If neither exists and this process runs in a pod, the connection uses the
    pod's service account, and the name is empty.

    Raises:
        ClusterError: There is no kubeconfig, it has mistakes, or it gives no credentials.
    """
    # Rendering a job must not wait for this import: it takes half a second.
    from kubernetes import client, config

    configuration = cast("_Client", client).Configuration()
    configuration.retries = retries()
    configuration.connection_pool_maxsize = CONNECTIONS
    cluster = ""
    files = _kubeconfig(kubeconfig)
    with _logged_errors() as errors:
        try:
            if files is None:
                config.load_incluster_config(client_configuration=configuration)
            else:
                cluster = _load(cast("_Config", config), files, context, configuration)
        except (config.ConfigException, OSError, ValueError) as error:
            source = files or "the pod's service account"
            raise ClusterError(f"{source}: {error}") from error
    if not configuration.api_key and not configuration.cert_file:
        why = f": {'; '.join(errors)}" if errors else ""
        raise ClusterError(
            f"{files}: no credentials for {configuration.host}{why}; run the command that the "
            "file names for this user by hand (for EKS: `aws eks get-token`, after `aws sso login`)"
        )
    if _goes_direct(configuration.host):
        configuration.proxy = None
    transport = cast("_Client", client).ApiClient(configuration)
    transport.user_agent = f"{PRODUCT}/{VERSION}"
    return transport, cluster


def _goes_direct(url: str) -> bool:
    """Return whether ``url`` needs no proxy, by the same rules as kubectl.

    The client reads `HTTPS_PROXY` and ignores `NO_PROXY`: even requests for a local port, which
    `ultrascale connect` opens, would go to the proxy.

    Sources:
        https://github.com/kubernetes-client/python/blob/v35.0.0/kubernetes/client/configuration.py
        https://pkg.go.dev/net/http#ProxyFromEnvironment
    """
    host = urlsplit(url).hostname or ""
    return host in _LOOPBACK or bool(proxy_bypass(host))


def _kubeconfig(named: Path | None) -> str | None:
    """Return the paths of the kubeconfig files, joined as in `KUBECONFIG`; None within a pod."""
    if named is not None:
        if not named.is_file():
            wrong = "is no file" if named.exists() else "does not exist"
            raise ClusterError(f"no cluster is known: {named} {wrong}; {_WRITE_IT}")
        return str(named)
    default = Path("~/.kube/config").expanduser()
    paths = os.environ.get("KUBECONFIG") or str(default)
    if any(Path(path).expanduser().is_file() for path in paths.split(os.pathsep) if path):
        return paths
    if os.environ.get("KUBERNETES_SERVICE_HOST"):
        return None
    raise ClusterError(f"no cluster is known: {paths} does not exist; {_WRITE_IT}")


def _refuse_no_kubeconfig(files: str) -> None:
    """Refuse a file that is no kubeconfig; the client's own error would not name the file.

    Raises:
        ClusterError: A file is not YAML, or not a mapping.
    """
    for path in (Path(file).expanduser() for file in files.split(os.pathsep) if file):
        if not path.is_file():
            continue
        try:
            document: object = yaml.safe_load(path.read_bytes())
        except yaml.YAMLError as error:
            why = " ".join(str(error).split())
            raise ClusterError(f"{path}: no kubeconfig, not YAML: {why}; {_WRITE_IT}") from error
        if not isinstance(document, Mapping | None):
            raise ClusterError(f"{path}: no kubeconfig, not a mapping; {_WRITE_IT}")


def _load(config: _Config, files: str, context: str | None, configuration: _Configuration) -> str:
    """Load a kubeconfig into ``configuration``, and return the cluster of its context."""
    _refuse_no_kubeconfig(files)
    config.load_kube_config(
        config_file=files,
        context=context,
        client_configuration=configuration,
        persist_config=False,
    )
    contexts, active = config.list_kube_config_contexts(config_file=files)
    chosen = next((each for each in contexts if each["name"] == context), active)
    return chosen["context"]["cluster"]


@contextmanager
def _logged_errors() -> Generator[list[str]]:
    """Collect the errors of a kubeconfig's credential command: the client only logs them.

    Source: https://github.com/kubernetes-client/python/blob/v35.0.0/kubernetes/base/config/kube_config.py
    """
    errors: list[str] = []

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            errors.append(record.getMessage())

    collector = Collector(logging.ERROR)
    root = logging.getLogger()
    root.addHandler(collector)
    try:
        yield errors
    finally:
        root.removeHandler(collector)
