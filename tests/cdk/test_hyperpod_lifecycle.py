"""Lifecycle scripts of HyperPod instances; each failure is paid for again."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.folders import ROOT

SCRIPT = ROOT / "constructs/ultrascale_constructs/hyperpod/lifecycle/on_create.sh"
AL2023 = 'version = 2\nroot = "/var/lib/containerd"\nstate = "/run/containerd"\n\n[grpc]\n'
WITHOUT_ROOT = "version = 2\n\n[grpc]\naddress = '/run/containerd/containerd.sock'\n"


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """A folder for the files of a node, and stand-ins for what only a node has."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, body in {
        "mountpoint": '[[ -e "$2/.mounted" ]]',
        "systemctl": '[[ $* != *kubelet || -e $LOG.kubelet ]] && echo "systemctl $*" >>"$LOG"',
        "sleep": ":",
    }.items():
        (tools / name).write_text(f"#!/usr/bin/env bash\n{body}\n")
        (tools / name).chmod(0o755)
    return tmp_path


def run(node: Path, *configurations: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(SCRIPT)],
        env={
            "PATH": f"{node / 'bin'}:{os.environ['PATH']}",
            "VOLUME": str(node / "volume"),
            "CONFIGURATIONS": " ".join(map(str, configurations)),
            "NVME": str(node / "nvme"),
            "DISKS": str(node / "disks"),
            "KUBELET": str(node / "kubelet"),
            "LOG": str(node / "log"),
        },
        capture_output=True,
        text=True,
        check=False,
    )


def with_volume(node: Path) -> Path:
    volume = node / "volume"
    volume.mkdir()
    (volume / ".mounted").touch()
    return volume


@pytest.mark.parametrize("text", [AL2023, WITHOUT_ROOT])
def test_images_go_to_the_second_volume_and_a_second_run_changes_nothing(
    node: Path, text: str
) -> None:
    volume = with_volume(node)
    configuration = node / "config.toml"
    configuration.write_text(text)

    answer = run(node, node / "absent.toml", configuration)

    assert answer.returncode == 0, answer.stderr
    once = configuration.read_text()
    lines = once.splitlines()
    top = lines[: lines.index("[grpc]")]
    assert top.count(f'root = "{volume}/containerd"') == 1
    assert not [line for line in lines if "/var/lib/containerd" in line]
    assert (volume / "containerd").is_dir()
    assert (node / "log").read_text().splitlines()[-1] == "systemctl restart containerd"
    assert (run(node, configuration).returncode, configuration.read_text()) == (0, once)
    # Windows' line ends are a common reason for clusters that never come up.
    assert b"\r" not in SCRIPT.read_bytes()


@pytest.mark.parametrize("mounted", [True, False])
def test_a_node_that_cannot_keep_images_elsewhere_joins_all_the_same(
    node: Path, mounted: bool
) -> None:
    if mounted:
        with_volume(node)

    answer = run(node, node / "absent.toml")

    assert answer.returncode == 0, answer.stderr
    assert "images stay on the root volume" in answer.stdout
    assert not (node / "log").exists()


def with_disks(node: Path, *, mounted: bool = True) -> Path:
    """Give a node NVMe disks, joined at a folder of their own, and a kubelet that never ran."""
    model = node / "disks" / "nvme1n1" / "device" / "model"
    model.parent.mkdir(parents=True)
    model.write_text("Amazon EC2 NVMe Instance Storage\n")
    (node / "nvme").mkdir()
    if mounted:
        (node / "nvme" / ".mounted").touch()
    (node / "kubelet").mkdir()
    (node / "kubelet" / "config.json").write_text("{}")
    return node / "kubelet"


def test_scratch_space_of_pods_lies_on_the_nvme_disks(node: Path) -> None:
    kubelet = with_disks(node)

    answers = [run(node, node / "absent.toml") for _ in range(2)]

    assert [answer.returncode for answer in answers] == [0, 0], answers[0].stderr
    assert kubelet.resolve() == node / "nvme" / "kubelet"
    assert (kubelet / "config.json").read_text() == "{}"
    assert "volumes of pods are kept in" in answers[0].stdout
    assert "has been moved before" in answers[1].stdout


@pytest.mark.parametrize("why", ["no disks", "not mounted", "the kubelet runs"])
def test_the_kubelets_folder_stays_where_moving_it_would_harm(node: Path, why: str) -> None:
    kubelet = with_disks(node, mounted=why != "not mounted")
    if why == "no disks":
        (node / "disks" / "nvme1n1" / "device" / "model").write_text("Amazon Elastic Block Store\n")
    if why == "the kubelet runs":
        (node / "log.kubelet").touch()

    answer = run(node, node / "absent.toml")

    assert answer.returncode == 0, answer.stderr
    assert not kubelet.is_symlink()
    assert (kubelet / "config.json").exists()
    assert "volumes of pods stay on the root volume" in answer.stdout
