"""A cluster's endpoint, a node that reaches it, and a kubeconfig for the way through that node.

Sources:
    https://docs.aws.amazon.com/eks/latest/userguide/cluster-endpoint.html
    https://docs.aws.amazon.com/eks/latest/userguide/create-kubeconfig.html
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import yaml

from ultrascale.account import Account
from ultrascale.errors import ClusterError
from ultrascale.operate.groups import standing_groups
from ultrascale.plan import capacity
from ultrascale.plan.model import ClusterPlan

_ONLINE = "Online"
_OWNER_ONLY = 0o600


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where the API server of a cluster answers.

    Attributes:
        arn: ARN of the cluster.
        cluster: Its name.
        region: Its Region.
        host: Name of the endpoint, which its certificate is for.
        certificate_authority: Who signed that, as EKS gives it: base64 of PEM.
    """

    arn: str
    cluster: str
    region: str
    host: str
    certificate_authority: str


def find_endpoint(account: Account, plan: ClusterPlan) -> Endpoint:
    """Return the endpoint of ``plan``'s cluster.

    Raises:
        UnansweredError: There is no such cluster, or EKS does not say.
    """
    found = account.ask("eks:DescribeCluster", name=plan.name)["cluster"]
    return Endpoint(
        arn=found["arn"],
        cluster=plan.name,
        region=plan.region,
        host=urlsplit(str(found["endpoint"])).netloc,
        certificate_authority=found["certificateAuthority"]["data"],
    )


def find_forwarder(account: Account, plan: ClusterPlan) -> str:
    """Return a system node whose Session Manager agent answers, by its EC2 instance.

    Raises:
        ClusterError: There is none; nodes of EKS Auto Mode take no sessions.
        UnansweredError: AWS does not say.
    """
    pools = [pool for pool in plan.system_pools if pool.provisioner in capacity.NODE_GROUPS]
    if not pools:
        raise ClusterError(
            f"{plan.name}: nodes of EKS Auto Mode take no sessions, so that none leads to the "
            "private endpoint; reach the VPC by VPN or Direct Connect, or name your range in "
            "kubernetes.endpoint.public_cidrs"
        )
    running = [
        each["InstanceId"]
        for pool in pools
        for group in standing_groups(account, plan, pool)
        for each in group.instances()
        if each["LifecycleState"] == "InService"
    ]
    if not running:
        raise ClusterError(f"{plan.name}: no system node runs; deploy the system pool first")
    agents = account.ask_all(
        "ssm:DescribeInstanceInformation",
        "InstanceInformationList",
        Filters=[{"Key": "InstanceIds", "Values": running}],
    )
    for each in agents:
        if each["PingStatus"] == _ONLINE:
            return each["InstanceId"]
    raise ClusterError(
        f"{plan.name}: Session Manager reaches none of {', '.join(running)}; look at the VPC's "
        "endpoints ssm and ssmmessages, or its way to the internet"
    )


def write_kubeconfig(path: Path, endpoint: Endpoint, *, port: int, profile: str | None) -> None:
    """Write a kubeconfig of this cluster alone, by way of a local port.

    A file of another cluster, or of several, is never overwritten: `KUBECONFIG` joins files.

    Raises:
        ClusterError: There is such a file.
    """
    if path.exists() and not _is_own(path, endpoint):
        raise ClusterError(
            f"{path}: holds more than the way to {endpoint.cluster}, and is left alone; name "
            "another file by --kubeconfig, and join both: export KUBECONFIG=ONE:OTHER"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    text = yaml.safe_dump(_kubeconfig(endpoint, port, profile), sort_keys=False)
    # Never readable by others, not even for a moment.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _OWNER_ONLY)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)


def _is_own(path: Path, endpoint: Endpoint) -> bool:
    try:
        found: object = yaml.safe_load(path.read_bytes())
    except yaml.YAMLError:
        return False
    mine = _kubeconfig(endpoint, 0, None)
    if not isinstance(found, Mapping):
        return False
    told = cast("Mapping[str, object]", found)
    return all(told.get(key) == mine[key] for key in ("contexts", "current-context"))


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
