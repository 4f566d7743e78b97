"""The command line of the manifest, run by a real etcd on this machine.

Only addresses and the data directory are replaced; every other argument is the manifest's own.
"""

import base64
import json
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import cdk8s
import pytest

from tests.support.etcd_server import NO_ETCD, find_etcd, free_ports
from ultrascale.catalog.versions import image
from ultrascale.parts.etcd import Plan as EtcdPlan
from ultrascale_k8s.etcd import EtcdChart

_STARTUP_SECONDS = 10.0
IMAGE = image("etcd").reference


ETCD = find_etcd()
pytestmark = pytest.mark.skipif(ETCD is None, reason=NO_ETCD)


def container(replicas: int, *, v2_api: bool) -> dict[str, Any]:
    plan = EtcdPlan(
        image=IMAGE,
        namespace="training",
        replicas=replicas,
        v2_api=v2_api,
        volume_gib=10,
        volume_provisioner="ebs.csi.aws.com",
    )
    documents = cdk8s.Testing.synth(EtcdChart(cdk8s.Testing.app(), "etcd", plan=plan))
    (stateful_set,) = [d for d in documents if d["kind"] == "StatefulSet"]
    (container,) = stateful_set["spec"]["template"]["spec"]["containers"]
    return container


class Cluster:
    """The members of one StatefulSet, each on ports and in a directory of its own."""

    def __init__(self, directory: Path, *, replicas: int, v2_api: bool = True) -> None:
        self._container = container(replicas, v2_api=v2_api)
        self._directory = directory
        self.names = [f"etcd-server-{ordinal}" for ordinal in range(replicas)]
        ports = free_ports(2 * replicas)
        self._client = dict(zip(self.names, ports[:replicas], strict=True))
        self._peer = dict(zip(self.names, ports[replicas:], strict=True))
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        for name in self.names:
            (self._directory / name).mkdir(exist_ok=True)
            with (self._directory / f"{name}.log").open("ab") as log:
                self._processes[name] = subprocess.Popen(
                    [str(ETCD), *self.arguments(name)], stdout=log, stderr=log, env={}
                )
        for name in self.names:
            self._wait(name)

    def arguments(self, name: str) -> list[str]:
        replaced = {"$(POD_NAME)": name, "/var/lib/etcd/": f"{self._directory / name}/"}
        for listening, ports in (("0.0.0.0:2379", self._client), ("0.0.0.0:2380", self._peer)):
            replaced[listening] = f"127.0.0.1:{ports[name]}"
        for member in self.names:
            host = f"{member}.etcd-server.training.svc"
            replaced[f"{host}:2379"] = f"127.0.0.1:{self._client[member]}"
            replaced[f"{host}:2380"] = f"127.0.0.1:{self._peer[member]}"
        return [_replace(argument, replaced) for argument in self._container["args"]]

    def _wait(self, name: str) -> None:
        path = self._container["readinessProbe"]["httpGet"]["path"]
        deadline = time.monotonic() + _STARTUP_SECONDS
        while time.monotonic() < deadline:
            status, body = self.ask(name, path)
            if status == 200 and json.loads(body)["health"] == "true":
                return
            time.sleep(0.1)
        log = (self._directory / f"{name}.log").read_text()
        pytest.fail(f"{name} did not become ready:\n{log[-3000:]}")

    def ask(
        self, name: str, path: str, *, data: bytes | None = None, method: str | None = None
    ) -> tuple[int, str]:
        """Return status and body of the answer; status 0 if there was none."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._client[name]}{path}", data=data, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=3) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def call(self, name: str, path: str, body: Mapping[str, object]) -> dict[str, Any]:
        """Call the v3 JSON gateway."""
        status, answer = self.ask(name, path, data=json.dumps(body).encode())
        assert status == 200, answer
        return json.loads(answer)

    def put(self, name: str, key: str, value: str) -> None:
        self.call(name, "/v3/kv/put", {"key": _encoded(key), "value": _encoded(value)})

    def get(self, name: str, key: str) -> str | None:
        found = self.call(name, "/v3/kv/range", {"key": _encoded(key)}).get("kvs", [])
        return base64.b64decode(found[0]["value"]).decode() if found else None

    def put_v2(self, name: str, key: str, value: str) -> int:
        return self.ask(name, f"/v2/keys/{key}", data=f"value={value}".encode(), method="PUT")[0]

    def get_v2(self, name: str, key: str) -> str:
        return json.loads(self.ask(name, f"/v2/keys/{key}?quorum=true")[1])["node"]["value"]

    def members(self, name: str) -> set[str]:
        return {m["name"] for m in self.call(name, "/v3/cluster/member/list", {})["members"]}

    def stop(self, name: str) -> None:
        process = self._processes.pop(name)
        process.terminate()
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def stop_all(self) -> None:
        for name in list(self._processes):
            self.stop(name)


def _replace(argument: str, replaced: Mapping[str, str]) -> str:
    for old, new in replaced.items():
        argument = argument.replace(old, new)
    return argument


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@contextmanager
def running(directory: Path, *, replicas: int, v2_api: bool = True) -> Generator[Cluster]:
    cluster = Cluster(directory, replicas=replicas, v2_api=v2_api)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop_all()


@pytest.mark.parametrize("v2_api", [True, False])
def test_one_member_serves_the_v3_api_and_torchelastics_where_it_is_asked_for(
    tmp_path: Path, v2_api: bool
) -> None:
    with running(tmp_path, replicas=1, v2_api=v2_api) as cluster:
        created = cluster.put_v2("etcd-server-0", "torch/elastic", "round-1")
        cluster.put("etcd-server-0", "/torch/rdzv", "round-2")

        assert created == (201 if v2_api else 404)
        assert not v2_api or cluster.get_v2("etcd-server-0", "torch/elastic") == "round-1"
        assert cluster.get("etcd-server-0", "/torch/rdzv") == "round-2"
        # Nobody else may read its data.
        (directory,) = (tmp_path / "etcd-server-0").iterdir()
        assert directory.stat().st_mode & 0o777 == 0o700


def test_three_members_lose_one_and_jobs_still_meet(tmp_path: Path) -> None:
    with running(tmp_path, replicas=3) as cluster:
        cluster.put("etcd-server-0", "before", "kept")

        cluster.stop("etcd-server-0")

        deadline = time.monotonic() + _STARTUP_SECONDS
        while cluster.put_v2("etcd-server-1", "after", "written") not in (200, 201):
            assert time.monotonic() < deadline, "no write was taken after one member of three left"
            time.sleep(0.1)
        cluster.put("etcd-server-1", "after", "written")
        assert cluster.get("etcd-server-2", "before") == "kept"
        assert cluster.get("etcd-server-2", "after") == "written"
        assert cluster.get_v2("etcd-server-2", "after") == "written"


def test_growing_from_one_member_to_three_makes_one_cluster_and_not_two(tmp_path: Path) -> None:
    with running(tmp_path, replicas=1) as cluster:
        cluster.put("etcd-server-0", "old", "round")

    with running(tmp_path, replicas=3) as cluster:
        assert {frozenset(cluster.members(name)) for name in cluster.names} == {
            frozenset(cluster.names)
        }
        assert cluster.get("etcd-server-0", "old") is None
