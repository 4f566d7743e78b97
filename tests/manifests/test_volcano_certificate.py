"""The Job that makes the webhooks' certificate: once, good for years, and never half."""

import base64
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.volcano_charts import Documents, container, keyed, pod, render_volcano
from ultrascale.catalog.versions import image
from ultrascale.documents import look_up
from ultrascale.parts.volcano.facts import NAMESPACE as VOLCANO_NAMESPACE
from ultrascale_k8s.objects import job_name, named_by_template
from ultrascale_k8s.volcano.admission import CERTIFICATE_SECRET, SCRIPT

SERVICE = "volcano-admission-service"
ENVIRONMENT = {
    "SERVICE": SERVICE,
    "NAMESPACE": VOLCANO_NAMESPACE,
    "SECRET": CERTIFICATE_SECRET,
    "DEPLOYMENT": "volcano-admission",
}
# Keeps the Secret in a file, and a line for each call.
KUBECTL = """\
#!/bin/sh
echo "$*" >> "$STATE/calls"
case "$1 $2" in
  "get secret")
    [ ! -e "$STATE/unreachable" ] || exit 1
    [ ! -e "$STATE/secret.yaml" ] || sed -n 's/^  tls.crt: //p' "$STATE/secret.yaml" ;;
  "create secret")
    echo data:
    for file in ca.crt tls.crt tls.key; do
      echo "  $file: $(base64 < "$file" | tr -d '\\n')"
    done ;;
  "apply --server-side")
    cp secret.yaml "$STATE/secret.yaml" ;;
esac
"""


class Run:
    """One cluster, reduced to one Secret, in which the Job's script runs."""

    def __init__(self, folder: Path) -> None:
        self.state = folder / "state"
        self._folder = folder
        for name in ("state", "bin"):
            (folder / name).mkdir()
        kubectl = folder / "bin" / "kubectl"
        kubectl.write_text(KUBECTL)
        kubectl.chmod(0o755)

    def __call__(self) -> subprocess.CompletedProcess[str]:
        scratch = self._folder / "tmp"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        path = f"{self._folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
        return subprocess.run(
            ["sh", "-c", SCRIPT.replace("cd /tmp", f"cd {scratch}")],
            env={**ENVIRONMENT, "PATH": path, "STATE": str(self.state)},
            capture_output=True,
            text=True,
            check=False,
        )

    @property
    def calls(self) -> list[str]:
        return (self.state / "calls").read_text().splitlines()

    def secret(self) -> dict[str, Path]:
        """Write the Secret's files beside it, and return where they are."""
        data = yaml.safe_load((self.state / "secret.yaml").read_text())["data"]
        for name, value in data.items():
            (self.state / name).write_bytes(base64.b64decode(value))
        return {name: self.state / name for name in data}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    return Run(tmp_path)


def openssl(*args: object) -> str:
    command = ["openssl", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_certificate_is_good_for_the_service_that_the_webhooks_name_and_kept(run: Run) -> None:
    result = run()

    assert result.returncode == 0, result.stderr
    secret = run.secret()
    host = f"{SERVICE}.{VOLCANO_NAMESPACE}.svc"
    authority = ("-CAfile", secret["ca.crt"], "-purpose", "sslserver")
    openssl("verify", *authority, "-verify_hostname", host, secret["tls.crt"])
    nine_years = 9 * 365 * 86_400
    openssl("x509", "-noout", "-checkend", nine_years, "-in", secret["tls.crt"])
    assert openssl("x509", "-noout", "-pubkey", "-in", secret["tls.crt"]) == openssl(
        "pkey", "-pubout", "-in", secret["tls.key"]
    )
    # The first one restarts nothing.
    assert not [call for call in run.calls if call.startswith("rollout")]
    first = (run.state / "secret.yaml").read_text()

    again = run()

    assert (again.returncode, again.stdout.splitlines()[-1]) == (0, f"kept {CERTIFICATE_SECRET}")
    assert (run.state / "secret.yaml").read_text() == first


def test_certificate_that_ends_within_a_year_is_renewed_and_the_servers_restarted(run: Run) -> None:
    key, crt = run.state / "old.key", run.state / "old.crt"
    subject = ("-subj", "/CN=old", "-keyout", key, "-out", crt)
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "300", *subject)
    old = base64.b64encode(crt.read_bytes()).decode()
    (run.state / "secret.yaml").write_text(f"data:\n  tls.crt: {old}\n")

    result = run()

    assert result.returncode == 0, result.stderr
    assert run.secret()["tls.crt"].read_bytes() != crt.read_bytes()
    assert run.calls[-1] == (
        f"rollout restart deployment/volcano-admission --namespace={VOLCANO_NAMESPACE}"
    )


def test_unreachable_api_server_is_no_reason_for_a_new_certificate(run: Run) -> None:
    (run.state / "unreachable").touch()

    assert run().returncode != 0
    assert not [call for call in run.calls if call.startswith(("create", "apply"))]


@pytest.fixture(scope="session")
def by_name() -> Documents:
    return keyed(render_volcano())


@pytest.fixture(scope="session")
def job(by_name: Documents) -> dict[str, Any]:
    (found,) = [document for (kind, _), document in by_name.items() if kind == "Job"]
    return found


def test_job_can_be_applied_again_goes_away_and_another_pod_makes_another(
    job: dict[str, Any],
) -> None:
    template = job["spec"]["template"]
    assert job["spec"]["ttlSecondsAfterFinished"] > 0
    name = job_name("volcano-admission-init-v1-15-1", template)
    assert named_by_template(job)["metadata"] == {**job["metadata"], "name": name}
    changes: list[dict[str, Any]] = [
        {"tolerations": []},
        {"securityContext": {"runAsUser": 1}},
        {"containers": [{"image": "other"}]},
    ]
    for change in changes:
        other = {**template, "spec": {**template["spec"], **change}}
        changed = {**job, "spec": {**job["spec"], "template": other}}
        assert look_up(named_by_template(changed), "metadata", "name") != name


def test_job_runs_the_script_in_the_image_of_its_release(job: dict[str, Any]) -> None:
    (made,) = job["spec"]["template"]["spec"]["containers"]
    changes = {"version": "v1.16.0", "webhook_image": "mirror.example/webhook:v1.16.0"}
    (other,) = [d for d in render_volcano(**changes) if d["kind"] == "Job"]

    assert made["command"] == ["sh", "-c", SCRIPT]
    assert made["image"] == image("volcano-webhook-manager").reference
    environment = {variable["name"]: variable["value"] for variable in made["env"]}
    assert environment.items() >= ENVIRONMENT.items()
    assert other["metadata"]["name"] == "volcano-admission-init-v1-16-0"
    (made,) = other["spec"]["template"]["spec"]["containers"]
    assert made["image"] == "mirror.example/webhook:v1.16.0"


def test_job_may_touch_its_own_secret_and_deployment_only(by_name: Documents) -> None:
    rules = by_name["Role", "volcano-admission-init"]["rules"]

    assert ("ClusterRole", "volcano-admission-init") not in by_name
    named = {
        rule["resources"][0]: rule["resourceNames"] for rule in rules if "resourceNames" in rule
    }
    assert named == {"secrets": [CERTIFICATE_SECRET], "deployments": ["volcano-admission"]}
    assert [rule["verbs"] for rule in rules if "resourceNames" not in rule] == [["create"]]


def test_server_reads_the_certificate_that_the_job_makes(by_name: Documents) -> None:
    server = container(by_name, "volcano-admission")
    volumes = {volume["name"]: volume for volume in pod(by_name, "volcano-admission")["volumes"]}
    (mount,) = [m for m in server["volumeMounts"] if "secret" in volumes[m["name"]]]

    assert volumes[mount["name"]]["secret"]["secretName"] == CERTIFICATE_SECRET
    for flag, file in (("tls-cert-file", "tls.crt"), ("tls-private-key-file", "tls.key")):
        assert f"--{flag}={mount['mountPath']}/{file}" in server["args"]
    assert f"--ca-cert-file={mount['mountPath']}/ca.crt" in server["args"]
