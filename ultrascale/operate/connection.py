"""Connection to a cluster's private endpoint through a node of it, and the kubeconfig for it."""

import os
import re
import subprocess
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import yaml
from msgspec.structs import replace

from ultrascale import yaml_writer
from ultrascale.account import Account
from ultrascale.cluster_api.objects import Object
from ultrascale.documents import mapping, objects, text
from ultrascale.errors import ClusterError
from ultrascale.frozen import Frozen
from ultrascale.operate import tunnel
from ultrascale.operate.clock import Clock
from ultrascale.operate.node_groups import standing_groups
from ultrascale.operate.tunnel import command_takes_ctrl_c, is_open, signals_held_back
from ultrascale.plan.model import ClusterIdentity, PoolPlan

# --- Endpoint of a cluster, a node that reaches it, and a kubeconfig for a local port -------------
# Sources: https://docs.aws.amazon.com/eks/latest/userguide/cluster-endpoint.html
# https://docs.aws.amazon.com/eks/latest/userguide/create-kubeconfig.html


_ONLINE = "Online"
# Most values of a filter.
# Source: https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_InstanceInformationStringFilter.html
_MOST_ASKED = 100
_OWNER_ONLY = 0o600
_SERVER = re.compile(r"https://127\.0\.0\.1:(\d+)")


class Endpoint(Frozen):
    """API server endpoint of a cluster."""

    arn: str  # ARN of the cluster
    cluster: str  # Its name
    region: str  # Its Region
    host: str  # Host name, which the certificate is for
    certificate_authority: str  # Its certificate authority, as EKS returns it: base64 of PEM


def find_endpoint(account: Account, name: str, region: str) -> Endpoint:
    """Return the endpoint of the cluster ``name`` in ``region``.

    Raises:
        UnansweredError: There is no such cluster, or EKS does not answer.
    """
    cluster = account.ask(account.client("eks").describe_cluster, name=name)["cluster"]
    return Endpoint(
        arn=cluster["arn"],
        cluster=name,
        region=region,
        host=urlsplit(str(cluster["endpoint"])).netloc,
        certificate_authority=cluster["certificateAuthority"]["data"],
    )


def find_forwarder(account: Account, cluster: str, system_pools: Sequence[PoolPlan]) -> str:
    """Return the EC2 instance id of a system node that Session Manager reaches.

    Raises:
        ClusterError: There is no such node; nodes of EKS Auto Mode take no sessions.
        UnansweredError: AWS does not answer.
    """
    pools = [pool for pool in system_pools if pool.is_node_group]
    if not pools:
        raise ClusterError(
            f"{cluster}: nodes of EKS Auto Mode take no sessions, so that none leads to the "
            "private endpoint; reach the VPC by VPN or Direct Connect, or name your range in "
            "kubernetes.endpoint.public_cidrs"
        )
    running = [
        instance["InstanceId"]
        for pool in pools
        for group in standing_groups(account, cluster, pool)
        for instance in group.instances()
        if instance["LifecycleState"] == "InService"
    ]
    if not running:
        raise ClusterError(f"{cluster}: no system node runs; deploy the system pool first")
    running = running[:_MOST_ASKED]
    agents = account.ask_all(
        account.client("ssm").describe_instance_information,
        lambda page: page["InstanceInformationList"],
        Filters=[{"Key": "InstanceIds", "Values": running}],
    )
    for agent in agents:
        if agent["PingStatus"] == _ONLINE:
            return agent["InstanceId"]
    raise ClusterError(
        f"{cluster}: Session Manager reaches none of {', '.join(running)}; look at the VPC's "
        "endpoints ssm and ssmmessages, or its way to the internet"
    )


@contextmanager
def lent_kubeconfig(
    path: Path, endpoint: Endpoint, *, port: int, profile: str | None
) -> Generator[None]:
    """Write a kubeconfig for a local port, and delete it at the end of the block.

    It never overwrites or deletes the file of another program: `KUBECONFIG` joins files.

    Raises:
        ClusterError: The file belongs to another program, or cannot be written.
    """
    _refuse_others(path, endpoint, port)
    content = yaml_writer.dump(_kubeconfig(endpoint, port, profile))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Never readable by others, not even for a moment, and not if the file was readable before.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _OWNER_ONLY)
        with os.fdopen(descriptor, "w") as file:
            os.fchmod(descriptor, _OWNER_ONLY)
            file.write(content)
    except OSError as error:
        raise ClusterError(
            f"{path}: cannot be written: {error.strerror}; name another file by --kubeconfig"
        ) from error
    try:
        yield
    finally:
        # Another `ultrascale connect` may have written it meanwhile.
        if _own_port(path, endpoint) == port:
            path.unlink(missing_ok=True)


def _refuse_others(path: Path, endpoint: Endpoint, own: int) -> None:
    if not path.exists():
        return
    port = _own_port(path, endpoint)
    if port is None:
        raise ClusterError(
            f"{path}: holds more than the way to {endpoint.cluster}, and is left alone; name "
            "another file by --kubeconfig, and join both: export KUBECONFIG=ONE:OTHER"
        )
    # A file that was left behind may name the port that we use now.
    if port != own and is_open(port):
        raise ClusterError(
            f"{path}: is in use: port {port} leads to {endpoint.cluster} already; use that, or "
            "name another file by --kubeconfig"
        )


def _own_port(path: Path, endpoint: Endpoint) -> int | None:
    """Return the local port in a kubeconfig that this command wrote; None for another file.

    A file of `aws eks update-kubeconfig` has the same names, and belongs to the user.
    """
    try:
        read: object = yaml.safe_load(path.read_bytes())
    except (OSError, yaml.YAMLError):
        return None
    document = mapping({"file": read}, "file")
    cluster, user = (_first_entry(document, key) for key in ("clusters", "users"))
    match = _SERVER.fullmatch(text(cluster, "cluster", "server"))
    if match is None:
        return None
    port = int(match[1])
    # A new cluster of the same name differs in all of these values.
    then = replace(
        endpoint,
        host=text(cluster, "cluster", "tls-server-name"),
        certificate_authority=text(cluster, "cluster", "certificate-authority-data"),
    )
    profiles = [text(variable, "value") for variable in objects(user, "user", "exec", "env")]
    return port if document == _kubeconfig(then, port, next(iter(profiles), None)) else None


def _first_entry(document: Object, key: str) -> Object:
    several = objects(document, key)
    return several[0] if several else {}


def _kubeconfig(endpoint: Endpoint, port: int, profile: str | None) -> dict[str, object]:
    token = ["--region", endpoint.region, "eks", "get-token", "--output", "json"]
    command: dict[str, object] = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": "aws",
        "args": [*token, "--cluster-name", endpoint.cluster],
    }
    if profile is not None:
        command["env"] = [{"name": "AWS_PROFILE", "value": profile}]
    cluster = {
        "server": f"https://127.0.0.1:{port}",
        # The certificate is for the endpoint's own name.
        "tls-server-name": endpoint.host,
        "certificate-authority-data": endpoint.certificate_authority,
    }
    name = endpoint.arn
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": {"exec": command}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }


# Status of a program that a signal ended: this number plus the signal's number.
_ENDED_BY_SIGNAL = 128
_STOP_SECONDS = 5.0


class Connection(Frozen):
    """An open connection to a private endpoint."""

    port: int  # Local port that leads to the endpoint
    instance: str  # EC2 instance of the node between
    kubeconfig: Path  # Kubeconfig that uses the port
    session: tunnel.Process  # The program that keeps the port open

    @property
    def end(self) -> str:
        """Reason why the session ended; empty while it is open."""
        status = self.session.poll()
        return "" if status is None else f"the session ended with status {status}"

    def run(self, command: Sequence[str]) -> int:
        """Run a command with the kubeconfig, and return its exit status as a shell would.

        Raises:
            ClusterError: There is no such program.
        """
        environment = {**os.environ, "KUBECONFIG": str(self.kubeconfig.absolute())}
        running: subprocess.Popen[bytes] | None = None
        try:
            with command_takes_ctrl_c():
                with signals_held_back():
                    running = subprocess.Popen(command, env=environment)
                status = running.wait()
        except OSError as error:
            raise ClusterError(
                f"{command[0]}: {error.strerror}; write a command after --"
            ) from error
        finally:
            if running is not None:
                _end_command(running)
        return status if status >= 0 else _ENDED_BY_SIGNAL - status

    def stay(self) -> None:
        """Wait until the session has ended."""
        self.session.wait()


@contextmanager
def connect(
    account: Account,
    cluster: ClusterIdentity,
    system_pools: Sequence[PoolPlan],
    *,
    port: int | None,
    kubeconfig: Path | None,
    profile: str | None,
    shared: bool,
    clock: Clock,
) -> Generator[Connection]:
    """Open a connection through a system node, and write a kubeconfig for it, until the block ends.

    Args:
        account: The AWS account.
        cluster: The cluster.
        system_pools: Its system pools.
        port: Local port; by default a free one.
        kubeconfig: File to write; by default one in ~/.kube/ultrascale.
        profile: Profile of the AWS CLI's configuration.
        shared: Whether other programs use the connection. The kubeconfig then has a name that
            stays the same; otherwise the name holds the port, as several may be open at once.
        clock: The clock.

    Raises:
        AccountError: AWS does not answer.
        ClusterError: There is no node that leads to the endpoint, a program is not installed, the
            port does not open, or the kubeconfig cannot be written.
    """
    endpoint = find_endpoint(account, cluster.name, cluster.region)
    instance = find_forwarder(account, cluster.name, system_pools)
    local = port or tunnel.free_port()
    name = cluster.name if shared else f"{cluster.name}-{local}"
    path = (kubeconfig or Path(f"~/.kube/ultrascale/{name}.yaml")).expanduser()
    command = tunnel.command(
        instance, endpoint.host, port=local, region=cluster.region, profile=profile
    )
    # `aws eks update-kubeconfig` writes the profile too: another terminal may use another profile.
    lasting = profile or os.environ.get("AWS_PROFILE")
    with (
        tunnel.opened(command, local, clock=clock) as session,
        lent_kubeconfig(path, endpoint, port=local, profile=lasting),
    ):
        yield Connection(port=local, instance=instance, kubeconfig=path, session=session)


def _end_command(running: subprocess.Popen[bytes]) -> None:
    """End a command that still runs; an interactive shell ignores SIGTERM."""
    if running.poll() is not None:
        return
    running.terminate()
    try:
        running.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        running.kill()
        running.wait()
