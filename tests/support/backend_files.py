"""A small cluster file and rules for it: what tests of the backend submit to."""

import json
from pathlib import Path
from typing import Any

from ultrascale_backend.requests import Asked, read_request

CLUSTER = """\
name: small
region: us-west-2
network: {vpc_cidr: 10.0.0.0/16, pod_cidrs: [100.64.0.0/16], zones: [us-west-2a, us-west-2b]}
pools:
  - name: system
    instance_types: [m7i.2xlarge]
    provisioner: managed-node-group
    nodes: {min: 2, max: 6}
  - name: gpu
    instance_types: [p4d.24xlarge]
    provisioner: managed-node-group
    zones: [us-west-2a]
    nodes: {static: 16}
jobs:
  production: {pool: gpu, priority: critical, durable: false}
  development: {pool: gpu, resources: {gpu: 4, cpu: 16, memory: 32Gi}, durable: false}
  research: {kind: batch, pool: gpu, resources: {gpu: 2, cpu: 8, memory: 16Gi}}
backend:
  submits_to: [production, development, research]
  allow_from: [web, ops]
  identity:
    admins: ["system:serviceaccount:ops:ops"]
    rights:
      system:serviceaccounts:web: {priority: critical}
"""
RULES = """\
job_keys: [image, script, command, args, env, nodes]
rules:
  - {name: production, types: [production], template: production}
  - {name: research-due, types: [research], deadline_within_hours: 48, template: development}
  - {name: research, types: [research], template: research}
"""
IMAGE = "registry.example/train:1"
# A job of one pod, and one of two nodes, which has a Service as well.
RESEARCH: dict[str, Any] = {"type": "research", "job": {"image": IMAGE, "command": ["train"]}}
PRODUCTION: dict[str, Any] = {
    "type": "production",
    "job": {"image": IMAGE, "script": "/train.py", "nodes": 2},
}


def write_files(folder: Path, *, cluster: str = CLUSTER, rules: str = RULES) -> tuple[Path, Path]:
    """Write a cluster file and its rules, and return their paths."""
    files = folder / "cluster.yaml", folder / "rules.yaml"
    for path, text in zip(files, (cluster, rules), strict=True):
        path.write_text(text)
    return files


def asked(body: dict[str, Any], *, key: str = "one") -> Asked:
    """Return a request as it came over HTTP."""
    return read_request(key, json.dumps(body).encode())
