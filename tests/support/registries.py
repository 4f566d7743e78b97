"""Container registries on this machine, and images in them."""

import hashlib
import json
import shutil
import socket
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest

needs_registries = pytest.mark.skipif(
    not (shutil.which("docker-registry") and shutil.which("skopeo")),
    reason="docker-registry and skopeo are not installed (Debian has packages of these names)",
)
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_INDEX = "application/vnd.oci.image.index.v1+json"


@contextmanager
def registry(folder: Path) -> Generator[str]:
    """Run Debian's docker-registry with its files in ``folder``, and yield its host."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    host = f"127.0.0.1:{port}"
    folder.mkdir()
    storage = {"filesystem": {"rootdirectory": str(folder / "data")}}
    http = {"addr": host}
    settings = {"version": 0.1, "log": {"level": "error"}, "storage": storage, "http": http}
    (folder / "config.yml").write_text(json.dumps(settings))
    command = ["docker-registry", "serve", str(folder / "config.yml")]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            _wait_for(host)
            yield host
        finally:
            process.kill()


def push_image(host: str, repository: str, tag: str, *platforms: str, content: str = "") -> str:
    """Push an index with an image for each of ``platforms``, and return its digest."""
    manifests = [_push_platform(host, repository, each, content) for each in platforms]
    index = {"schemaVersion": 2, "mediaType": _INDEX, "manifests": manifests}
    return _push_manifest(host, repository, tag, _INDEX, index)["digest"]


def push_chart(host: str, repository: str, version: str) -> str:
    """Push what a registry sees of a Helm chart, and return its digest."""
    helm = "application/vnd.cncf.helm"
    name = repository.rpartition("/")[2]
    config = _push_blob(host, repository, json.dumps({"name": name, "version": version}).encode())
    archive = _push_blob(host, repository, b"archive of " + name.encode())
    manifest = {
        "schemaVersion": 2,
        "mediaType": _MANIFEST,
        "config": {"mediaType": f"{helm}.config.v1+json", **config},
        "layers": [{"mediaType": f"{helm}.chart.content.v1.tar+gzip", **archive}],
    }
    return _push_manifest(host, repository, version, _MANIFEST, manifest)["digest"]


def platforms_of(host: str, repository: str, reference: str) -> list[str]:
    """Return the platforms of an index."""
    request = Request(f"http://{host}/v2/{repository}/manifests/{reference}")
    request.add_header("Accept", _INDEX)
    with urlopen(request) as answer:
        found = json.load(answer)["manifests"]
    return [f"{each['platform']['os']}/{each['platform']['architecture']}" for each in found]


def _push_platform(host: str, repository: str, platform: str, content: str) -> dict[str, Any]:
    system, _, architecture = platform.partition("/")
    config = {"os": system, "architecture": architecture, "rootfs": {"type": "layers"}}
    layer = f"{repository} for {platform} {content}".encode()
    manifest = {
        "schemaVersion": 2,
        "mediaType": _MANIFEST,
        "config": {
            "mediaType": "application/vnd.oci.image.config.v1+json",
            **_push_blob(host, repository, json.dumps(config).encode()),
        },
        "layers": [
            {
                "mediaType": "application/vnd.oci.image.layer.v1.tar",
                **_push_blob(host, repository, layer),
            }
        ],
    }
    digest = _digest(json.dumps(manifest).encode())
    pushed = _push_manifest(host, repository, digest, _MANIFEST, manifest)
    return {
        "mediaType": _MANIFEST,
        **pushed,
        "platform": {"os": system, "architecture": architecture},
    }


def _push_manifest(
    host: str, repository: str, reference: str, kind: str, manifest: object
) -> dict[str, Any]:
    data = json.dumps(manifest).encode()
    url = f"http://{host}/v2/{repository}/manifests/{reference}"
    request = Request(url, data=data, method="PUT", headers={"Content-Type": kind})
    urlopen(request).close()
    return {"digest": _digest(data), "size": len(data)}


def _push_blob(host: str, repository: str, data: bytes) -> dict[str, Any]:
    start = Request(f"http://{host}/v2/{repository}/blobs/uploads/", data=b"", method="POST")
    with urlopen(start) as answer:
        place = str(answer.headers["Location"])
    digest = _digest(data)
    joint = "&" if "?" in place else "?"
    request = Request(
        f"{place}{joint}digest={digest}",
        data=data,
        method="PUT",
        headers={"Content-Type": "application/octet-stream"},
    )
    urlopen(request).close()
    return {"digest": digest, "size": len(data)}


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _wait_for(host: str) -> None:
    until = time.monotonic() + 20
    while time.monotonic() < until:
        try:
            urlopen(f"http://{host}/v2/").close()
        except URLError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError(f"{host} does not answer")
