"""The image of the backend: what is missing in it shows at the first start, in the cluster."""

import re
import ssl
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, cast

from tests.support.folders import ROOT
from ultrascale.plan.delivery.build_context import SOURCES

# Imports what the process imports in its first minute, with the pinned packages alone.
PROGRAM = """
import sys
from importlib.metadata import packages_distributions
known, wanted = packages_distributions(), set(sys.argv[1:])

class OnlyPinned:
    def find_spec(self, name, path, target=None):
        owners = {each.lower().replace("_", "-") for each in known.get(name, ())}
        if path is None and owners and not owners & wanted:
            raise ModuleNotFoundError(f"{name} is not in the image", name=name)

sys.meta_path.insert(0, OnlyPinned())
import ultrascale_backend.__main__
import boto3, psycopg.pq, psycopg_binary
from kubernetes import client, config
"""
PINS = dict(
    line.split()[0].split("==")
    for line in (ROOT / "images/backend/requirements.txt").read_text().splitlines()
    if not line.startswith("#")
)


def test_it_has_every_package_that_the_process_imports(tmp_path: Path) -> None:
    own = {*PINS, "ultrascale", "ultrascale-backend"}
    # Of the core it has the files that its Dockerfile copies.
    for source in (path for path in SOURCES["backend"] if path.startswith("ultrascale/")):
        (tmp_path / source).parent.mkdir(exist_ok=True)
        (tmp_path / source).symlink_to(ROOT / source)
    paths = f"{tmp_path}:{ROOT / 'backend'}"

    answer = subprocess.run(
        [sys.executable, "-c", PROGRAM, *own],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": paths},
    )

    assert answer.returncode == 0, answer.stderr


def test_its_packages_are_those_that_the_tests_ran_with() -> None:
    tested = {
        line.strip().lower().replace("_", "-")
        for file in ("requirements.txt", "requirements-backend.txt")
        for line in (ROOT / file).read_text().splitlines()
    }

    assert {f"{name}=={version}" for name, version in PINS.items()} <= tested


def test_it_trusts_the_authorities_of_rds_and_no_other() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(ROOT / "images/backend/rds-ca.pem")
    authorities = cast("list[dict[str, Any]]", context.get_ca_certs())
    found = [
        re.fullmatch(r"Amazon RDS (\S+) Root CA (RSA2048|RSA4096|ECC384) G1", value)
        for each in authorities
        for ((key, value),) in each["subject"]
        if key == "commonName"
    ]
    regions = [match[1] for match in found if match]
    assert len(regions) == len(found) == len(authorities)
    assert {"us-east-1", "us-west-2", "eu-central-1", "ap-south-1"} <= set(regions)
    assert all(regions.count(each) == 3 for each in regions)
    ends = [ssl.cert_time_to_seconds(str(each["notAfter"])) for each in authorities]
    assert min(ends) > time.time() + 20 * 365 * 86_400
