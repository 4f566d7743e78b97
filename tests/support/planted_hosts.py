"""Hosts that careless changes would bring into the assembly of clusters/existing-estate.yaml.

Each plant changes a copy of the synthesized folder as a colleague in a hurry would, in one of ten
kinds of place. `PLAIN` plants can be read as they stand; the others are encoded, joined, escaped or
only implied. Every plant stands in the table with the host that has to be found, and where.
"""

import base64
import gzip
import io
import json
import re
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PLAIN = "plain"

JOB = "train.yaml"
"""File of the job ``train`` in a folder of `planted`."""

_HANDLER = "asset.*/lambdas/node_groups/handler.py"
_FRAMEWORK = "asset.*/framework.js"
_BUILD_SCRIPT = "asset.*/images/build.sh"
_DOCKERFILE = "asset.*/mirrored/nvidia/Dockerfile"
_REQUIREMENTS = "asset.*/images/nvidia/requirements.txt"
_ZIP = "7e1a0c5b" * 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Plant:
    """A host in one place of the assembly.

    Attributes:
        kind: Kind of the place.
        encoding: `PLAIN`, or how the host is hidden.
        host: Host that has to be found.
        files: Files that it changes or lies in, as patterns in the folder.
        place: Words that lead a reader to the plant: file, and resource or object.
        change: Changes the files of a folder.
    """

    kind: str
    encoding: str
    host: str
    files: tuple[str, ...]
    place: tuple[str, ...]
    change: Callable[[Path], None]

    def __str__(self) -> str:
        return f"{self.kind}, {self.encoding}"


def planted(plant: Plant, assembly: Path, job: str, into: Path) -> Path:
    """Copy the files of ``plant`` from ``assembly`` into an empty folder, and plant it there.

    Args:
        plant: The plant.
        assembly: Folder that ``ultrascale synth`` wrote the templates to.
        job: Manifest of the job ``train``, as ``submit --dry-run`` prints it.
        into: Folder to write to.

    Returns:
        The folder written to.
    """
    for pattern in plant.files:
        if pattern == JOB:
            (into / JOB).write_text(job)
            continue
        (file,) = assembly.glob(pattern)
        copy = into / file.relative_to(assembly)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
    plant.change(into)
    return into


def _edited(pattern: str, edit: Callable[[str], str]) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (file,) = folder.glob(pattern)
        before = file.read_text()
        after = edit(before)
        assert after != before, f"{file} is as it was"
        file.write_text(after)

    return change


def _after(pattern: str, line: str, *new: str) -> Callable[[Path], None]:
    """Return a change that puts lines after the first ``line`` of a file."""
    return _edited(pattern, lambda text: text.replace(line, "\n".join((line, *new)), 1))


def _resource(template: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the properties of the resource whose id is ``name`` and the CDK's hash."""
    logical_id = re.compile(f"{name}[0-9A-F]{{8}}")
    (found,) = (body for key, body in template["Resources"].items() if logical_id.fullmatch(key))
    return found["Properties"]


def _property(
    file: str, resource: str, edit: Callable[[dict[str, Any]], object]
) -> Callable[[Path], None]:
    def change(text: str) -> str:
        template = json.loads(text)
        edit(_resource(template, resource))
        return json.dumps(template, indent=1)

    return _edited(file, change)


def _variable(name: str, value: object) -> Callable[[dict[str, Any]], object]:
    """Return an edit that gives a function an environment variable."""

    def edit(function: dict[str, Any]) -> None:
        function.setdefault("Environment", {}).setdefault("Variables", {})[name] = value

    return edit


def _objects(
    file: str, resource: str, edit: Callable[[list[dict[str, Any]]], object]
) -> Callable[[Path], None]:
    """Return a change of the Kubernetes objects in a custom resource."""

    def change(properties: dict[str, Any]) -> None:
        objects = json.loads(properties["Manifest"])
        edit(objects)
        properties["Manifest"] = json.dumps(objects, separators=(",", ":"))

    return _property(file, resource, change)


def _container(objects: list[dict[str, Any]]) -> dict[str, Any]:
    (workload,) = (item for item in objects if item["kind"] in ("DaemonSet", "Deployment"))
    return workload["spec"]["template"]["spec"]["containers"][0]


def _config_map(name: str, **data: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "kube-system"},
        "data": data,
    }


def _registry_secret(objects: list[dict[str, Any]]) -> None:
    login = {"auths": {"quay.io": {"auth": base64.b64encode(b"robot$ml:secret").decode()}}}
    objects.append(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "pull-login", "namespace": "kube-system"},
            "type": "kubernetes.io/dockerconfigjson",
            "data": {".dockerconfigjson": base64.b64encode(json.dumps(login).encode()).decode()},
        }
    )


def _shell_user_data(objects: list[dict[str, Any]]) -> None:
    (node_class,) = (item for item in objects if item["kind"] == "EC2NodeClass")
    node_class["spec"]["userData"] = "\n".join(
        [
            "MIME-Version: 1.0",
            'Content-Type: multipart/mixed; boundary="BOUNDARY"',
            "",
            "--BOUNDARY",
            'Content-Type: text/x-shellscript; charset="us-ascii"',
            "",
            "#!/bin/bash",
            "curl -fsSL https://get.helm.sh/helm-v3.19.2-linux-amd64.tar.gz | tar xz -C /usr/local",
            "--BOUNDARY--",
            "",
        ]
    )


def _packed_user_data(launch_template: dict[str, Any]) -> None:
    script = b"#!/bin/bash\necho 'server time.cloudflare.com iburst' >> /etc/chrony.conf\n"
    packed = base64.encodebytes(gzip.compress(script, mtime=0)).decode()
    parts = "\n".join(
        [
            "MIME-Version: 1.0",
            'Content-Type: multipart/mixed; boundary="=====a1="',
            "",
            "--=====a1=",
            "Content-Type: text/x-shellscript",
            "Content-Transfer-Encoding: base64",
            "",
            packed.rstrip(),
            "--=====a1=--",
            "",
        ]
    )
    encoded = base64.b64encode(parts.encode()).decode()
    launch_template["LaunchTemplateData"]["UserData"] = encoded


def _resolver_user_data(launch_template: dict[str, Any]) -> None:
    user_data = launch_template["LaunchTemplateData"]["UserData"]
    user_data["Fn::Base64"] = user_data["Fn::Base64"].replace(
        "--NODECONFIG--",
        "--NODECONFIG\nContent-Type: text/x-shellscript\n\n#!/bin/sh\n"
        "sed -i '1i nameserver 2606:4700:4700::1111' /etc/resolv.conf\n--NODECONFIG--",
    )


def _script_of_joined_names(objects: list[dict[str, Any]]) -> None:
    script = (
        "#!/bin/sh\nset -eu\nVENDOR=hashicorp\nrepo=rpm.releases\n"
        'curl -fsSLo /etc/yum.repos.d/$VENDOR.repo "https://${repo}.$VENDOR.com/AmazonLinux/$VENDOR.repo"\n'
    )
    objects.append(_config_map("node-tools", **{"install.sh": script}))


def _lifecycle(objects: list[dict[str, Any]]) -> None:
    command = "wget -q http://xn--e1afmkfd.xn--p1ai/status?node=$HOSTNAME || true"
    _container(objects)["lifecycle"] = {
        "postStart": {"exec": {"command": ["/bin/sh", "-c", command]}}
    }


def _joined_image(properties: dict[str, Any]) -> None:
    """Take the image from the registry of another Region, as copied CDK code does."""
    objects = json.loads(properties["Manifest"])
    _container(objects)["image"] = "IMAGE"
    before, after = json.dumps(objects, separators=(",", ":")).split("IMAGE")
    properties["Manifest"] = {
        "Fn::Join": [
            "",
            [
                f"{before}602401143452.dkr.ecr.eu-central-1.",
                {"Ref": "AWS::URLSuffix"},
                f"/eks/aws-efa-k8s-device-plugin:v0.5.14{after}",
            ],
        ]
    }


def _zipped_function(folder: Path) -> None:
    """Add a function whose code is a zip file."""
    code = (
        "import json\nimport urllib.request\n\n"
        'ENQUEUE = "https://" + "events." + "pagerduty" + ".com" + "/v2/enqueue"\n\n\n'
        "def handler(event, context):\n"
        "    urllib.request.urlopen(ENQUEUE, json.dumps(event).encode(), timeout=5)\n"
    )
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("pager/__init__.py", "")
        archive.writestr("pager/handler.py", code)
    (folder / f"asset.{_ZIP}.zip").write_bytes(content.getvalue())
    (file,) = folder.glob("estate-scaling.template.json")
    template = json.loads(file.read_text())
    bucket = {"Fn::Sub": "cdk-hnb659fds-assets-${AWS::AccountId}-us-east-1"}
    template["Resources"]["Pager0B1C2D3E"] = {
        "Type": "AWS::Lambda::Function",
        "Properties": {
            "Code": {"S3Bucket": bucket, "S3Key": f"{_ZIP}.zip"},
            "Handler": "pager.handler.handler",
            "Role": _resource(template, "NodeGroupFunctionsFunction")["Role"],
            "Runtime": "python3.14",
        },
        "Metadata": {"aws:asset:path": f"asset.{_ZIP}.zip", "aws:asset:property": "Code"},
    }
    file.write_text(json.dumps(template, indent=1))
    (file,) = folder.glob("estate-scaling.assets.json")
    assets = json.loads(file.read_text())
    source = {"path": f"asset.{_ZIP}.zip", "packaging": "file"}
    assets["files"][_ZIP] = {"displayName": "Pager/Code", "source": source, "destinations": {}}
    file.write_text(json.dumps(assets, indent=1))


def _commands(*commands: str) -> Callable[[dict[str, Any]], object]:
    """Return an edit that lets a build run commands before its own."""

    def edit(project: dict[str, Any]) -> None:
        steps = json.loads(project["Source"]["BuildSpec"])
        steps["phases"]["install"] = {"commands": list(commands)}
        project["Source"]["BuildSpec"] = json.dumps(steps)

    return edit


_PIP_SETTINGS = b"[global]\nextra-index-url = https://download.pytorch.org/whl/nightly/cu133\n"


def _proxy(chart: dict[str, Any]) -> None:
    """Give the controller a proxy, in values whose slashes are escaped as some encoders do."""
    values = json.loads(chart["Values"])
    proxy = {"name": "HTTPS_PROXY", "value": "http://proxy.egress.corp:3128"}
    values["controller"]["env"].append(proxy)
    chart["Values"] = json.dumps(values, separators=(",", ":")).replace(
        "http://proxy", "http:\\u002f\\u002fproxy"
    )


def _environment(name: str, value: str) -> Callable[[Path], None]:
    """Return a change that gives the job's container an environment variable, as YAML."""
    return _after(JOB, "          env:", f"          - name: {name}", f"            value: {value}")


_TRACKING = json.dumps({"backend": "mlflow", "uri": "databricks://adb-4217.9.azuredatabricks.net"})

_DECODED = (
    "            python3 -c \"exec(__import__('base64').b64decode('"
    + base64.b64encode(b"import comet_ml; comet_ml.init(host='www.comet.com:8443')").decode()
    + "'))\""
)

PLANTS = (
    Plant(
        kind="template property",
        encoding=PLAIN,
        host="otlp.nr-data.net",
        files=("estate-scaling.template.json",),
        place=("estate-scaling", "NodeGroupFunctionsFunction"),
        change=_property(
            "estate-scaling.template.json",
            "NodeGroupFunctionsFunction",
            _variable("OTEL_EXPORTER_OTLP_ENDPOINT", "https://otlp.nr-data.net:4317"),
        ),
    ),
    Plant(
        kind="template property",
        encoding="joined by CloudFormation",
        host="sts.eu-west-1.amazonaws.com",
        files=("estate-karpenter.template.json",),
        place=("estate-karpenter", "ChartsProviderHandler"),
        change=_property(
            "estate-karpenter.template.json",
            "ChartsProviderHandler",
            _variable(
                "AWS_ENDPOINT_URL_STS",
                {"Fn::Join": ["", ["https://sts.eu-west-1", ".", {"Ref": "AWS::URLSuffix"}]]},
            ),
        ),
    ),
    Plant(
        kind="template property",
        encoding="substituted by CloudFormation",
        host="api.eu1.honeycomb.io",
        files=("estate-scaling.template.json",),
        place=("estate-scaling", "NodeGroupFunctionsFunction"),
        change=_property(
            "estate-scaling.template.json",
            "NodeGroupFunctionsFunction",
            _variable(
                "TRACES",
                {
                    "Fn::Sub": [
                        "https://api.${Site}.${Vendor}.io/v1/traces",
                        {"Site": "eu1", "Vendor": "honeycomb"},
                    ]
                },
            ),
        ),
    ),
    Plant(
        kind="manifest in a custom resource",
        encoding=PLAIN,
        host="ingest.lightstep.com",
        files=("estate-platform.template.json",),
        place=("estate-platform", "dcgm"),
        change=_objects(
            "estate-platform.template.json",
            "Manifestsdcgmexporter",
            lambda objects: _container(objects)["env"].append(
                {"name": "OTLP_TARGET", "value": "ingest.lightstep.com:443"}
            ),
        ),
    ),
    Plant(
        kind="manifest in a custom resource",
        encoding="JSON in base64 in a Secret",
        host="quay.io",
        files=("estate-platform.template.json",),
        place=("estate-platform", "dcgm"),
        change=_objects("estate-platform.template.json", "Manifestsdcgmexporter", _registry_secret),
    ),
    Plant(
        kind="user data of nodes",
        encoding=PLAIN,
        host="get.helm.sh",
        files=("estate-node-pools.template.json",),
        place=("estate-node-pools", "hopper"),
        change=_objects(
            "estate-node-pools.template.json", "Manifestsnodepoolhopper", _shell_user_data
        ),
    ),
    Plant(
        kind="user data of nodes",
        encoding="gzip in base64 in MIME in base64",
        host="time.cloudflare.com",
        files=("estate-system.template.json",),
        place=("estate-system", "NodeGroupLaunchTemplate"),
        change=_property(
            "estate-system.template.json", "NodeGroupLaunchTemplate", _packed_user_data
        ),
    ),
    Plant(
        kind="user data of nodes",
        encoding="address of IPv6",
        host="2606:4700:4700::1111",
        files=("estate-system.template.json",),
        place=("estate-system", "NodeGroupLaunchTemplate"),
        change=_property(
            "estate-system.template.json", "NodeGroupLaunchTemplate", _resolver_user_data
        ),
    ),
    Plant(
        kind="script in pods",
        encoding=PLAIN,
        host="193.99.144.80",
        files=("estate-platform.template.json",),
        place=("estate-platform", "nvidiadeviceplugin"),
        change=_objects(
            "estate-platform.template.json",
            "Manifestsnvidiadeviceplugin",
            lambda objects: objects.append(
                _config_map("profile", **{"env.sh": "export LM_LICENSE_FILE=27000@193.99.144.80\n"})
            ),
        ),
    ),
    Plant(
        kind="script in pods",
        encoding="joined by the shell",
        host="rpm.releases.hashicorp.com",
        files=("estate-platform.template.json",),
        place=("estate-platform", "nodereaders"),
        change=_objects(
            "estate-platform.template.json", "Manifestsnodereaders", _script_of_joined_names
        ),
    ),
    Plant(
        kind="script in pods",
        encoding="punycode",
        host="xn--e1afmkfd.xn--p1ai",
        files=("estate-platform.template.json",),
        place=("estate-platform", "nvidiadeviceplugin"),
        change=_objects("estate-platform.template.json", "Manifestsnvidiadeviceplugin", _lifecycle),
    ),
    Plant(
        kind="image of a pod",
        encoding=PLAIN,
        host="ghcr.io",
        files=("estate-platform.template.json",),
        place=("estate-platform", "clusterautoscaler"),
        change=_objects(
            "estate-platform.template.json",
            "Manifestsclusterautoscaler",
            lambda objects: _container(objects).update(
                image="ghcr.io/kubernetes/autoscaler/cluster-autoscaler:v1.35.2"
            ),
        ),
    ),
    Plant(
        kind="image of a pod",
        encoding="joined by CloudFormation",
        host="602401143452.dkr.ecr.eu-central-1.amazonaws.com",
        files=("estate-platform.template.json",),
        place=("estate-platform", "efadeviceplugin"),
        change=_property(
            "estate-platform.template.json", "Manifestsefadeviceplugin", _joined_image
        ),
    ),
    Plant(
        kind="image of a pod",
        encoding="implied",
        host="docker.io",
        files=("estate-platform.template.json",),
        place=("estate-platform", "nvidiadeviceplugin"),
        change=_objects(
            "estate-platform.template.json",
            "Manifestsnvidiadeviceplugin",
            lambda objects: _container(objects).update(image="busybox:1.37"),
        ),
    ),
    Plant(
        kind="code of a function",
        encoding=PLAIN,
        host="hooks.slack.com",
        files=(_HANDLER,),
        place=("lambdas/node_groups/handler.py",),
        change=_after(
            _HANDLER,
            "_LOG = logging.getLogger(__name__)",
            '_CHANNEL = "https://hooks.slack.com/services/T02/B03/x9"',
        ),
    ),
    Plant(
        kind="code of a function",
        encoding="joined in Python, in a zip file",
        host="events.pagerduty.com",
        files=("estate-scaling.template.json", "estate-scaling.assets.json"),
        place=(_ZIP[:12], "pager/handler.py"),
        change=_zipped_function,
    ),
    Plant(
        kind="code of a function",
        encoding="escaped in JavaScript",
        host="api.segment.io",
        files=(_FRAMEWORK,),
        place=("framework.js",),
        change=_edited(
            _FRAMEWORK,
            lambda text: (
                text + ';require("https").request({hostname:"api\\x2esegment\\u002eio",port:443})'
            ),
        ),
    ),
    Plant(
        kind="code of a function",
        encoding="implied by a Region",
        host="ec2.eu-south-2.amazonaws.com",
        files=(_HANDLER,),
        place=("lambdas/node_groups/handler.py",),
        change=_after(
            _HANDLER,
            "_LOG = logging.getLogger(__name__)",
            '_SPARE = boto3.client("ec2", region_name="eu-south-2")',
        ),
    ),
    Plant(
        kind="buildspec",
        encoding=PLAIN,
        host="sh.rustup.rs",
        files=("estate-images.template.json",),
        place=("estate-images", "Builder"),
        change=_property(
            "estate-images.template.json",
            "Builder",
            _commands("curl --proto '=https' -sSf https://sh.rustup.rs | sh -s -- -y"),
        ),
    ),
    Plant(
        kind="buildspec",
        encoding="base64 for a pipe",
        host="download.pytorch.org",
        files=("estate-images.template.json",),
        place=("estate-images", "Builder"),
        change=_property(
            "estate-images.template.json",
            "Builder",
            _commands(
                f"echo {base64.b64encode(_PIP_SETTINGS).decode()} | base64 -d > /etc/pip.conf"
            ),
        ),
    ),
    Plant(
        kind="image build",
        encoding=PLAIN,
        host="pypi.ngc.nvidia.com",
        files=(_REQUIREMENTS,),
        place=("images/nvidia/requirements.txt",),
        change=_edited(
            _REQUIREMENTS, lambda text: f"--extra-index-url https://pypi.ngc.nvidia.com\n{text}"
        ),
    ),
    Plant(
        kind="image build",
        encoding="joined by ARG",
        host="developer.download.nvidia.com",
        files=(_DOCKERFILE,),
        place=("mirrored/nvidia/Dockerfile",),
        change=_after(
            _DOCKERFILE,
            "ENV OPT_OUT_TRACKING=true",
            "ARG REPOSITORY=developer.download",
            "RUN dnf config-manager --add-repo \\",
            "    https://${REPOSITORY}.nvidia.com/compute/cuda/repos/amzn2023/x86_64/cuda-amzn2023.repo",
        ),
    ),
    Plant(
        kind="image build",
        encoding="remote of git without a scheme",
        host="git.sr.ht",
        files=(_BUILD_SCRIPT,),
        place=("images/build.sh",),
        change=_after(
            _BUILD_SCRIPT,
            "set -euo pipefail",
            "git clone --depth 1 git@git.sr.ht:~ml/kernels training/kernels",
        ),
    ),
    Plant(
        kind="image build",
        encoding="capital letters",
        host="repo.saltproject.io",
        files=(_DOCKERFILE,),
        place=("mirrored/nvidia/Dockerfile",),
        change=_after(
            _DOCKERFILE,
            "ENV OPT_OUT_TRACKING=true",
            "ADD HTTPS://Repo.SaltProject.IO/salt/py3/salt.gpg /etc/pki/",
        ),
    ),
    Plant(
        kind="chart",
        encoding=PLAIN,
        host="public.ecr.aws",
        files=("estate-karpenter.template.json",),
        place=("estate-karpenter", "ChartsCrds"),
        change=_property(
            "estate-karpenter.template.json",
            "ChartsCrds",
            lambda chart: chart.update(Repository="oci://public.ecr.aws/karpenter/karpenter-crd"),
        ),
    ),
    Plant(
        kind="chart",
        encoding="escaped in JSON inside JSON",
        host="proxy.egress.corp",
        files=("estate-karpenter.template.json",),
        place=("estate-karpenter", "ChartsController"),
        change=_property("estate-karpenter.template.json", "ChartsController", _proxy),
    ),
    Plant(
        kind="job",
        encoding=PLAIN,
        host="api.wandb.ai",
        files=(JOB,),
        place=(JOB,),
        change=_environment("WANDB_HOST", "api.wandb.ai"),
    ),
    Plant(
        kind="job",
        encoding="escaped in an argument",
        host="ingest.eu.signoz.cloud",
        files=(JOB,),
        place=(JOB,),
        change=_after(
            JOB,
            "          - --bf16",
            "          - --logger=otlp%3A%2F%2Fingest.eu.signoz.cloud%3A443%2Fv1%2Flogs",
        ),
    ),
    Plant(
        kind="job",
        encoding="JSON inside YAML",
        host="adb-4217.9.azuredatabricks.net",
        files=(JOB,),
        place=(JOB,),
        change=_environment("TRACKERS", json.dumps(json.dumps({"trackers": _TRACKING}))),
    ),
    Plant(
        kind="job",
        encoding="base64 in Python in the shell",
        host="www.comet.com",
        files=(JOB,),
        place=(JOB,),
        change=_after(JOB, "            set -eu", _DECODED),
    ),
)
"""Every plant: each kind of place once plain, and at least once hidden."""
