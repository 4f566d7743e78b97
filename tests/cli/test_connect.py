"""`ultrascale connect`: a way to a private endpoint that leaves nothing behind."""

import os
import signal
import socket
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from tests.support.account import connects
from tests.support.cases import rows
from tests.support.command_line import Answer, run
from tests.support.fake_aws import FakeAws, Told
from tests.support.folders import ROOT
from tests.support.pools import as_text, make_document
from ultrascale.errors import ClusterError
from ultrascale.operate.connection import Endpoint, lent_kubeconfig

AGENTS = "ssm:DescribeInstanceInformation"
ARN = "arn:aws:eks:us-west-2:918273645546:cluster/research"
HOST = "ABC.gr7.us-west-2.eks.amazonaws.com"
ENDPOINT = Endpoint(
    arn=ARN, cluster="research", region="us-west-2", host=HOST, certificate_authority="Q0E="
)
# Opens the port that it is told, as Session Manager's plugin does, and says who it is.
AWS = """#!{python} -SE
import json, os, socket, sys, time
told = dict(zip(sys.argv[3::2], sys.argv[4::2]))
json.dump({{"pid": os.getpid(), "told": told}}, open({said!r}, "w"))
{fate}
(port,) = json.loads(told["--parameters"])["localPortNumber"]
with socket.create_server(("127.0.0.1", int(port))) as server:
    try:
        {life}
    except KeyboardInterrupt:
        open({said!r} + ".goodbye", "w").close()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the home of a user, who has installed the AWS CLI and the plugin."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    (tmp_path / "bin").mkdir()
    install(tmp_path)
    return tmp_path


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> FakeAws:
    return connects(monkeypatch, answers(), profiles=(None, "ml"))


Connect = Callable[..., Answer]


@pytest.fixture
def connect(
    folder: Path, aws: FakeAws, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Connect:
    """Run the command on a cluster file."""
    own = folder / "cluster.yaml"
    own.write_text(as_text(make_document()))

    def command(*words: str | Path, file: Path = own) -> Answer:
        return run("connect", file, *words, monkeypatch=monkeypatch, capsys=capsys)

    return command


def install(folder: Path, *, fate: str = "", life: str = "time.sleep(60)") -> None:
    """Install programs that note their words in `said.json`, and end as they are told."""
    text = AWS.format(python=sys.executable, said=f"{folder}/said.json", fate=fate, life=life)
    for name in ("aws", "session-manager-plugin"):
        program = folder / "bin" / name
        program.write_text(text)
        program.chmod(0o755)


def session(folder: Path) -> Any:
    """Return the process that opened a session, and its words."""
    return yaml.safe_load((folder / "said.json").read_text())


def answers() -> dict[str, Told]:
    state = {"AvailabilityZone": "us-west-2b", "HealthStatus": "Healthy"}
    instances = [
        {**state, "ProtectedFromScaleIn": False, "InstanceId": id, "LifecycleState": lifecycle}
        for id, lifecycle in (
            *(("i-joining", "Pending"), ("i-silent", "InService"), ("i-online", "InService")),
        )
    ]
    group = {
        "AutoScalingGroupName": "asg",
        **{"MinSize": 2, "MaxSize": 4, "DesiredCapacity": 2, "DefaultCooldown": 300},
        "AvailabilityZones": ["us-west-2b"],
        "HealthCheckType": "EC2",
        "CreatedTime": "2026-11-21T00:00:00Z",
        "Instances": instances,
    }
    node_group = {
        "nodegroupName": "system-x",
        # Somebody wants to see what an update does.
        "status": "UPDATING",
        "labels": {"ultrascale.dev/pool": "system"},
        "resources": {"autoScalingGroups": [{"name": "asg"}]},
    }
    cluster = {"arn": ARN, "endpoint": f"https://{HOST}", "certificateAuthority": {"data": "Q0E="}}
    pings = {"i-silent": "ConnectionLost", "i-online": "Online"}
    agents = [{"InstanceId": id, "PingStatus": status} for id, status in pings.items()]
    return {
        "eks:DescribeCluster": {"cluster": cluster},
        "eks:ListNodegroups": {"nodegroups": ["system-x"]},
        "eks:DescribeNodegroup": {"nodegroup": node_group},
        "autoscaling:DescribeAutoScalingGroups": {"AutoScalingGroups": [group]},
        AGENTS: {"InstanceInformationList": agents},
    }


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_command_runs_through_a_system_node_and_nothing_is_left_behind(
    connect: Connect, folder: Path
) -> None:
    copy = f'cp -p "$KUBECONFIG" {folder}/copy; exit 7'

    answer = connect("--profile", "ml", "--", "sh", "-c", copy)

    kubeconfig: Any = yaml.safe_load((folder / "copy").read_text())
    cluster = kubeconfig["clusters"][0]
    port = cluster["cluster"]["server"].rpartition(":")[2]
    assert answer.returncode == 7
    assert session(folder)["told"] == {
        "--region": "us-west-2",
        "--target": "i-online",
        "--document-name": "AWS-StartPortForwardingSessionToRemoteHost",
        "--parameters": f'{{"host": ["{HOST}"], "portNumber": ["443"], '
        f'"localPortNumber": ["{port}"]}}',
        "--profile": "ml",
    }
    assert cluster["name"] == kubeconfig["current-context"] == ARN
    assert cluster["cluster"]["tls-server-name"] == HOST
    assert kubeconfig["users"][0]["user"]["exec"]["env"] == [{"name": "AWS_PROFILE", "value": "ml"}]
    assert stat.S_IMODE((folder / "copy").stat().st_mode) == 0o600
    assert not is_running(session(folder)["pid"])
    assert [*(folder / ".kube").rglob("*.yaml")] == []


@rows(
    "fate, says",
    {
        "a status": ("sys.exit(254)", "the session ended with status 254 before its port was open"),
        "words of the plugin": (
            "print('Cannot perform start session: EOF'); sys.exit(255)",
            "or its last output: Cannot perform start session: EOF",
        ),
    },
)
def test_a_session_that_does_not_open_says_why_and_leaves_no_kubeconfig(
    connect: Connect, folder: Path, fate: str, says: str
) -> None:
    install(folder, fate=fate)
    answer = connect()
    assert answer.returncode == 1
    assert says in answer.stderr
    assert [*(folder / ".kube").rglob("*.yaml")] == []


def test_a_session_that_ends_by_itself_is_told(connect: Connect, folder: Path) -> None:
    install(folder, life="server.accept()")
    answer = connect()
    assert answer.returncode == 1
    assert f"export KUBECONFIG={folder}/.kube/ultrascale/research.yaml" in answer.stdout
    assert "connect again" in answer.stderr


def test_a_session_ends_with_the_program_that_opened_it(connect: Connect, folder: Path) -> None:
    answer = connect("--", "sh", "-c", "kill -TERM $PPID; exec sleep 5")
    assert answer.returncode == 130
    assert not is_running(session(folder)["pid"])
    assert (folder / "said.json.goodbye").exists(), "a session that stays open in AWS"
    assert [*(folder / ".kube").rglob("*.yaml")] == []


def test_ctrl_c_belongs_to_the_command_and_ends_no_shell_under_its_user(connect: Connect) -> None:
    # As a terminal sends it: to both.
    command = "trap 'echo' INT; kill -INT $PPID; kill -INT $$; test -e $KUBECONFIG && kill -USR1 $$"
    assert connect("--", "sh", "-c", command).returncode == 128 + signal.SIGUSR1


def test_the_profile_of_the_environment_goes_with_the_kubeconfig_to_another_terminal(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "research")
    assert connect("--", "sh", "-c", "grep -q 'value: research' $KUBECONFIG").returncode == 0


def test_a_port_that_somebody_listens_on_is_not_taken_for_the_session(
    connect: Connect, folder: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        answer = connect("--port", port)
    assert f"port {port} is taken" in answer.stderr
    assert not (folder / "said.json").exists()


def test_what_is_not_installed_is_named_before_aws_is_asked(
    connect: Connect, folder: Path, aws: FakeAws
) -> None:
    (folder / "bin" / "session-manager-plugin").unlink()
    answer = connect()
    assert answer.returncode == 1
    assert "session-manager-plugin: not installed" in answer.stderr
    assert "install-plugin.html" in answer.stderr
    assert aws.calls == []


def test_without_a_node_that_takes_a_session_it_says_why(
    connect: Connect, aws: FakeAws, monkeypatch: pytest.MonkeyPatch
) -> None:
    aws.answers = {**aws.answers, AGENTS: {"InstanceInformationList": list[object]()}}
    silent = connect()
    connects(monkeypatch, answers(), region="us-east-2")
    auto_mode = connect(file=ROOT / "clusters" / "auto-mode.yaml")
    assert "Session Manager reaches none of i-silent, i-online" in silent.stderr
    assert (
        auto_mode.returncode,
        "nodes of EKS Auto Mode take no sessions" in auto_mode.stderr,
    ) == (*(1, True),)


# --- kubeconfigs --------------------------------------------------------------------------------

# What `aws eks update-kubeconfig` writes where there was nothing before.
THEIRS = f"""
apiVersion: v1
kind: Config
clusters: [{{name: "{ARN}", cluster: {{server: "https://{HOST}"}}}}]
contexts: [{{name: "{ARN}", context: {{cluster: "{ARN}", user: "{ARN}"}}}}]
current-context: "{ARN}"
users: [{{name: "{ARN}", user: {{exec: {{command: aws}}}}}}]
"""


@pytest.mark.parametrize("text", [THEIRS, "kind: Config\ncontexts: []\n", "- 1\n", "{", ""])
def test_a_kubeconfig_that_somebody_else_wrote_is_neither_overwritten_nor_taken_away(
    tmp_path: Path, text: str
) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with (
        pytest.raises(ClusterError, match="is left alone"),
        lent_kubeconfig(path, ENDPOINT, port=1, profile=None),
    ):
        pass
    assert path.read_text() == text


@pytest.mark.parametrize("profile", [None, "ml"])
def test_a_kubeconfig_that_was_left_behind_is_written_anew_for_its_owner_alone(
    tmp_path: Path, profile: str | None
) -> None:
    path = tmp_path / "config"
    with lent_kubeconfig(path, replace(ENDPOINT, host="OLD"), port=1, profile=profile):
        left = path.read_text()
    path.write_text(left)
    path.chmod(0o644)

    with lent_kubeconfig(path, ENDPOINT, port=2, profile=profile):
        assert "https://127.0.0.1:2" in path.read_text()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600

    assert not path.exists()


def test_one_left_behind_by_a_run_that_was_killed_is_no_other_way_on_the_same_port(
    tmp_path: Path,
) -> None:
    path = tmp_path / "config"
    with lent_kubeconfig(path, replace(ENDPOINT, host="OLD"), port=1, profile=None):
        left = path.read_text()
    with socket.create_server(("127.0.0.1", 0)) as own:
        port = own.getsockname()[1]
        path.write_text(left.replace("127.0.0.1:1", f"127.0.0.1:{port}"))
        with lent_kubeconfig(path, ENDPOINT, port=port, profile=None):
            assert HOST in path.read_text()


def test_the_kubeconfig_of_a_way_that_is_open_stays_with_it(tmp_path: Path) -> None:
    path = tmp_path / "config"
    with socket.create_server(("127.0.0.1", 0)) as way:
        port = way.getsockname()[1]
        with lent_kubeconfig(path, ENDPOINT, port=port, profile=None):
            with (
                pytest.raises(ClusterError, match=f"in use: port {port} leads to research"),
                lent_kubeconfig(path, ENDPOINT, port=1, profile=None),
            ):
                pass

            assert str(port) in path.read_text()


def test_a_kubeconfig_that_somebody_has_written_anew_meanwhile_is_not_taken_away(
    tmp_path: Path,
) -> None:
    path = tmp_path / "config"
    with lent_kubeconfig(path, ENDPOINT, port=1, profile=None):
        path.write_text(THEIRS)
    assert path.read_text() == THEIRS


def test_a_kubeconfig_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / "config"
    with (
        pytest.raises(ClusterError, match=r"cannot be written: .*; name another"),
        lent_kubeconfig(path, ENDPOINT, port=1, profile=None),
    ):
        pass
