"""A connection to a cluster's private endpoint, through one of its nodes, and its kubeconfig."""

import os
import subprocess
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ultrascale.account import Account
from ultrascale.errors import ClusterError
from ultrascale.frozen import Frozen
from ultrascale.operate import tunnel
from ultrascale.operate.clock import Clock
from ultrascale.operate.endpoint import find_endpoint, find_forwarder, lent_kubeconfig
from ultrascale.operate.signals import command_takes_ctrl_c, signals_held_back
from ultrascale.plan.model import ClusterPlan

# A program that a signal ended has this status plus the signal's number.
_ENDED_BY_SIGNAL = 128
_STOP_SECONDS = 5.0


class Connection(Frozen):
    """An open connection."""

    port: int  # Local port that leads to the endpoint
    instance: str  # EC2 instance of the node between
    kubeconfig: Path  # Kubeconfig that uses the port
    session: tunnel.Process  # The program that keeps the port open

    @property
    def end(self) -> str:
        """Reason for which the session ended; empty while it is open."""
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
                _stop(running)
        return status if status >= 0 else _ENDED_BY_SIGNAL - status

    def stay(self) -> None:
        """Return once the session has ended."""
        self.session.wait()


@contextmanager
def connect(
    account: Account,
    plan: ClusterPlan,
    *,
    port: int | None,
    kubeconfig: Path | None,
    profile: str | None,
    shared: bool,
    clock: Clock,
) -> Generator[Connection]:
    """Open a connection through a system node, and write a kubeconfig for it, until the end.

    Args:
        account: The AWS account.
        plan: The cluster.
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
    endpoint = find_endpoint(account, plan)
    instance = find_forwarder(account, plan)
    local = port or tunnel.free_port()
    name = plan.name if shared else f"{plan.name}-{local}"
    path = (kubeconfig or Path(f"~/.kube/ultrascale/{name}.yaml")).expanduser()
    command = tunnel.command(
        instance, endpoint.host, port=local, region=plan.region, profile=profile
    )
    # `aws eks update-kubeconfig` writes the profile too: another terminal may use another one.
    lasting = profile or os.environ.get("AWS_PROFILE")
    with (
        tunnel.opened(command, local, clock=clock) as session,
        lent_kubeconfig(path, endpoint, port=local, profile=lasting),
    ):
        yield Connection(port=local, instance=instance, kubeconfig=path, session=session)


def _stop(running: subprocess.Popen[bytes]) -> None:
    """End a command that still runs. An interactive shell ignores SIGTERM."""
    if running.poll() is not None:
        return
    running.terminate()
    try:
        running.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        running.kill()
        running.wait()
