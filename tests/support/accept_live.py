"""Applies the examples to an API server as a deployment does, and accepts them.

`python -m tests.support.accept_live --kubeconfig FILE` is for a server of one's own (kind, k3d,
envtest). Each custom resource of the templates is applied by the kubectl and the Helm of the
kubectl layer, with values in the place of references. A chart that `tests.support.charts` does not
have keeps its file from being tried, which is told. Where no pods run, `--answers
ADDRESS` stands in for the charts' webhooks, at an address of this machine. People's roles have
stand-ins of EKS's access policies.

Each file is accepted as it was applied, one of them 20 times; then changes are planted there, and
each has to be found. Everything is deleted after a file. Exit status: 3 on a difference too many
or too few, 1 where the server cannot be asked.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.support import access_cases, rendered
from tests.support.api_admission import People, people_of
from tests.support.assembly import Assembly, synthesize
from tests.support.eks_access import stand_ins
from tests.support.folders import CHARTS, ROOT
from tests.support.helm_tools import HELM, KUBECTL, unpack_tools
from tests.support.webhook_answers import WebhookAnswers, answer_webhooks
from ultrascale.accept import levels
from ultrascale.accept.compare import REFERENCE
from ultrascale.accept.model import Acceptance, Run
from ultrascale.accept.run import accept
from ultrascale.cluster_api.server import Cluster
from ultrascale.deploy.cdk import read_assembly as read_stacks
from ultrascale.errors import ClusterError
from ultrascale.guard.objects import MANIFEST, PATCH, KubernetesObject, read_objects
from ultrascale.guard.sources import read_assembly
from ultrascale.guard.templates import text_of, world

Document = dict[str, Any]
CHART = "Custom::AWSCDK-EKS-HelmChart"


def stood_in(text: str) -> Any:
    """Return a JSON document with a value in the place of each reference."""
    return json.loads(
        REFERENCE.sub(lambda found: f"v{re.sub('[^a-z0-9]', '', found[0].lower())[-20:]}", text)
    )


class Deployment:
    """A server that has an example."""

    def __init__(
        self, kubeconfig: Path, assembly: Assembly, folder: Path, answers: WebhookAnswers | None
    ) -> None:
        self.assembly = assembly
        self.stacks = world(read_assembly(assembly.folder / "cdk.out"))
        self._tools, self._kubeconfig, self._answers = folder, kubeconfig, answers

    def kubectl(self, *arguments: str, given: object = None) -> str:
        """Run kubectl, with a document as its input."""
        text = None if given is None else json.dumps(given)
        return self._program(KUBECTL, *arguments, given=text)

    def apply(self, objects: Sequence[Document]) -> None:
        """Apply objects as the CDK's function does."""
        if objects:
            items = {"apiVersion": "v1", "kind": "List", "items": [*objects]}
            self.kubectl("apply", "-f", "-", given=items)

    def missing_charts(self) -> list[str]:
        """Return the archives of charts that are not here."""
        archives = (
            CHARTS / f"{properties['Chart']}-{properties['Version']}.tgz"
            for stack in self.stacks.templates
            for id, body in self.stacks.resources(stack).items()
            if body["Type"] == CHART
            for properties in [self.stacks.properties((stack, id))]
        )
        return [archive.name for archive in archives if not archive.exists()]

    def deploy(self) -> None:
        """Apply all stacks."""
        for stack in (each.name for each in read_stacks(self.assembly.folder / "cdk.out")):
            for id, body in self.stacks.resources(stack).items():
                properties = {
                    key: text_of(value)
                    for key, value in self.stacks.properties((stack, id)).items()
                }
                if body["Type"] == MANIFEST:
                    self._apply_new(stood_in(properties["Manifest"]))
                elif body["Type"] == PATCH:
                    self._patch(properties)
                elif body["Type"] == CHART:
                    self._install(properties)
                else:
                    continue
                if body["Type"] == CHART or "clientConfig" in properties.get("Manifest", ""):
                    self._answer()

    def _apply_new(self, objects: Sequence[Document]) -> None:
        made = [each for each in objects if each["kind"] == "CustomResourceDefinition"]
        self.apply(made)
        for each in made:
            name = f"crd/{each['metadata']['name']}"
            self.kubectl("wait", "--for=condition=Established", "--timeout=30s", name)
        self.apply([each for each in objects if each not in made])

    def _patch(self, properties: Mapping[str, str]) -> None:
        place = ["-n", properties["ResourceNamespace"]] if "ResourceNamespace" in properties else []
        patch = properties["ApplyPatchJson"]
        self.kubectl("patch", properties["ResourceName"], *place, "--type=json", f"-p={patch}")

    def _install(self, properties: Mapping[str, str]) -> None:
        release, version = properties["Release"], properties["Version"]
        archive = CHARTS / f"{properties['Chart']}-{version}.tgz"
        values = self._tools / "values.json"
        values.write_text(json.dumps(stood_in(properties.get("Values", "{}"))))
        place = ("--namespace", properties["Namespace"])
        # Hooks run pods.
        options = ("--install", "--no-hooks", "--values", str(values))
        self._program(HELM, "upgrade", release, str(archive), *options, *place)

    def _answer(self) -> None:
        """Give each new webhook an authority, and its Service an endpoint."""
        if self._answers is None:
            return
        kinds = "validatingwebhookconfigurations,mutatingwebhookconfigurations,crd"
        for each in json.loads(self.kubectl("get", kinds, "-o", "json"))["items"]:
            hooks = each.get("webhooks") or [each.get("spec", {}).get("conversion", {})]
            operations: list[Document] = []
            for at, hook in enumerate(hooks):
                config = hook.get("clientConfig") or hook.get("webhook", {}).get("clientConfig", {})
                if config.get("caBundle") == self._answers.authority or "service" not in config:
                    continue
                self._open(config["service"])
                path = f"/webhooks/{at}" if "webhooks" in each else "/spec/conversion/webhook"
                bundle = self._answers.authority
                operations.append(
                    {"op": "add", "path": f"{path}/clientConfig/caBundle", "value": bundle}
                )
            if operations:
                name = f"{each['kind'].lower()}/{each['metadata']['name']}"
                manager = "--field-manager=cert-rotator"
                self.kubectl("patch", name, "--type=json", f"-p={json.dumps(operations)}", manager)

    def _open(self, service: Document) -> None:
        assert self._answers is not None
        at = ("-n", service["namespace"], "service", service["name"])
        # A release that is gone may leave its kinds, and not the Service that converts them.
        found = json.loads(self.kubectl("get", *at, "-o", "json", "--ignore-not-found") or "null")
        if found is None:
            return
        names = {port.get("name", "") for port in found["spec"]["ports"]}
        self.apply([self._answers.slice(service["namespace"], service["name"], names)])

    def remove(self) -> None:
        """Delete all that was applied, webhooks first: nothing answers them later."""
        wait = ("--ignore-not-found", "--timeout=120s")
        for kind in ("validatingwebhookconfiguration", "mutatingwebhookconfiguration"):
            self.kubectl("delete", kind, "--all", *wait)
        for stack in self.stacks.templates:
            for id, body in self.stacks.resources(stack).items():
                if body["Type"] == CHART:
                    properties = self.stacks.properties((stack, id))
                    place = ("--namespace", text_of(properties["Namespace"]))
                    options = ("--no-hooks", "--ignore-not-found", *place)
                    self._program(HELM, "uninstall", text_of(properties["Release"]), *options)
        left = [*read_objects(self.stacks).by_id.values()]
        objects = [
            stood_in(json.dumps(each.body)) for each in left[::-1] if each.kind != "Namespace"
        ]
        items = {"apiVersion": "v1", "kind": "List", "items": objects}
        try:
            self.kubectl("delete", "-f", "-", "--ignore-not-found", "--wait=false", given=items)
        except ClusterError as error:
            # kubectl deletes the others.
            if "no matches for kind" not in str(error):
                raise
        own = [each.name for each in left if each.kind == "Namespace"]
        self.kubectl("delete", "namespace", *own, *wait)

    def _program(self, program: str, *arguments: str, given: str | None = None) -> str:
        done = subprocess.run(
            [self._tools / program, f"--kubeconfig={self._kubeconfig}", *arguments],
            env={"HOME": str(self._tools), "PATH": os.defpath},
            input=given,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise ClusterError(f"{Path(program).name} {arguments[0]}: {done.stderr.strip()}")
        return done.stdout

    def accept(self) -> Acceptance:
        """Return the acceptance of the example."""
        run = Run(
            id="live",
            file=ROOT,
            plan=self.assembly.plan,
            cluster=Cluster.connected(self._kubeconfig),
            at=datetime.now(UTC),
            manifests=self.assembly.folder / "dist",
            assembly=self.assembly.folder / "cdk.out",
        )
        done = accept(run, levels.checks(run.plan, ["objects"]), ["objects"])
        if done.stopped:
            sys.exit(done.stopped)
        return done


# --- Changes that have to be found ----------------------------------------------------------------


LABELS = {"pod-security.kubernetes.io/enforce": "privileged"}
GRACE = {"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 77}}}}
FIELDS: Mapping[str, Document] = {
    "ClusterQueue": {"spec": {"stopPolicy": "Hold"}},
    "ClusterRole": {"rules": []},
    "DaemonSet": GRACE,
    "Deployment": GRACE,
    "Namespace": {"metadata": {"labels": LABELS}},
    "NetworkPolicy": {"spec": {"policyTypes": ["Egress"]}},
    "NodePool": {"spec": {"template": {"spec": {"terminationGracePeriod": "7m"}}}},
    "PriorityClass": {"description": "planted"},
    "ResourceFlavor": {"spec": {"nodeTaints": [{"key": "planted", "effect": "NoSchedule"}]}},
    "Role": {"rules": []},
    "StatefulSet": GRACE,
    "ValidatingAdmissionPolicy": {"spec": {"failurePolicy": "Ignore"}},
    "ValidatingAdmissionPolicyBinding": {"spec": {"validationActions": ["Audit"]}},
}
NOTE = {"metadata": {"annotations": {"example.com/planted": "true"}}}
LOST = ("ConfigMap", "NetworkPolicy", "RoleBinding", "PriorityClass", "LocalQueue")
OTHERS = ("ClusterRole", "ConfigMap", "Namespace", "Role", "Service", "ServiceAccount")
MOST = {"field": 24, "added field": 12, "other manager": 8, "lost object": 10}


class Plants:
    """Changes of a deployment by hand, as subjects of findings by the kind of the change."""

    def __init__(self, deployment: Deployment) -> None:
        self.subjects: dict[str, list[str]] = {}
        self._deployment = deployment
        self._every = [*read_objects(deployment.stacks).by_id.values()]

    def plant(self) -> None:
        """Change, complete and delete objects, each at most once, kind by kind in turn."""
        taken: set[object] = set()
        order = sorted(self._every, key=lambda o: (self._place(o), o.kind))
        for change, most in MOST.items():
            for each in order:
                if len(self.subjects.get(change, ())) == most:
                    break
                if each.id not in taken and self._is_changed(change, each):
                    taken.add(each.id)
                    subject = f"{each.kind} {each.whole_name}"
                    self.subjects.setdefault(change, []).append(subject)

    def _place(self, each: KubernetesObject) -> int:
        """Return the number of objects of its kind before an object."""
        return [o.id for o in self._every if o.kind == each.kind].index(each.id)

    def _is_changed(self, change: str, each: KubernetesObject) -> bool:
        """Change an object, and return whether it could be."""
        try:
            return self._change(change, each)
        except ClusterError as error:
            # The server refuses this change of it.
            if "is invalid" not in str(error) and "ValidatingAdmissionPolicy" not in str(error):
                raise
            return False

    def _change(self, change: str, each: KubernetesObject) -> bool:
        kubectl = self._deployment.kubectl
        place = ("-n", each.namespace) if each.namespace else ()
        group = each.body["apiVersion"]
        kind = (
            f"{each.kind}.{'.'.join(reversed(str(group).split('/')))}"
            if "/" in str(group)
            else each.kind
        )
        by_hand = ("--type=merge", "--field-manager=kubectl-edit")
        if change == "field" and each.kind in FIELDS:
            patch = json.dumps(FIELDS[each.kind])
            kubectl("patch", kind, each.name, *place, *by_hand, f"-p={patch}")
        elif change == "added field" and each.kind not in ("Namespace", "Secret"):
            kubectl("patch", kind, each.name, *place, *by_hand, f"-p={json.dumps(NOTE)}")
        elif change == "other manager" and each.kind in OTHERS:
            metadata = {"name": each.name, "labels": {"planted": "true"}}
            if each.namespace:
                metadata["namespace"] = each.namespace
            partial = {"apiVersion": group, "kind": each.kind, "metadata": metadata}
            options = ("--server-side", "--field-manager=argocd-controller", "-f", "-")
            kubectl("apply", *options, given=partial)
        elif change == "lost object" and each.kind in LOST:
            kubectl("delete", kind, each.name, *place)
        else:
            return False
        return True

    def break_admission(self) -> None:
        """Take the endpoints of webhooks and the definitions of kinds away."""
        kubectl = self._deployment.kubectl
        for service in ("jobset-webhook-service", "kueue-webhook-service", "lws-webhook-service"):
            namespace = f"{service.partition('-')[0]}-system"
            kubectl("delete", "endpointslice", f"{service}-answers", "-n", namespace)
            self.subjects.setdefault("dead webhook", []).append(f"Service {namespace}/{service}")
        for kind, plural in (
            ("EC2NodeClass", "ec2nodeclasses.karpenter.k8s.aws"),
            ("NodePool", "nodepools.karpenter.sh"),
            ("WorkloadPriorityClass", "workloadpriorityclasses.kueue.x-k8s.io"),
        ):
            kubectl("delete", "crd", plural)
            names = [each.name for each in self._every if each.kind == kind]
            self.subjects.setdefault("missing CRD", []).append(f"{kind} {names[0]}")


def problems(acceptance: Acceptance, *, but: str = "") -> dict[str, str]:
    """Return the evidence of each subject that is not as the file says, of all checks but one."""
    return {
        outcome.finding.subject: outcome.finding.evidence
        for outcome in acceptance.outcomes
        if outcome.finding.state != "pass" and outcome.finding.check != but
    }


PLANTED = "llm-kueue"
ROUNDS = 20
_MOMENT = 5.0  # Seconds


def _renamed(document: Document, names: Mapping[str, str]) -> Document:
    """Return a binding of users, by the names that EKS gives them."""
    subjects = document.get("subjects", [])
    renamed = [{**each, "name": names.get(each["name"], each["name"])} for each in subjects]
    return {**document, "subjects": renamed} if subjects else document


def try_file(deployment: Deployment, file: Path, people: People | None) -> Iterator[str]:
    """Yield what is wrong with the acceptance of a file."""
    begun = time.monotonic()
    deployment.deploy()
    if people is not None:
        roles = {level: entry.role for level, entry in people.entries.items()}
        deployment.apply([_renamed(each, roles) for each in stand_ins(people.entries)])
        # New roles and policies hold after a moment.
        time.sleep(_MOMENT)
    applied = time.monotonic()
    rounds = ROUNDS if file.stem == PLANTED else 1
    every = [deployment.accept() for _ in range(rounds)]
    seconds = (time.monotonic() - applied) / rounds
    for accepted in every:
        for subject, evidence in problems(accepted).items():
            yield f"invented: {subject}: {evidence}"
    seen = " ".join(outcome.finding.evidence for outcome in every[-1].outcomes)
    objects = sum(map(int, re.findall(r"(\d+) objects (?:are as|as it made)", seen)))
    roles_tried = sum(outcome.finding.check == "access" for outcome in every[-1].outcomes)
    print(
        f"{file.stem}: {objects} objects applied in {applied - begun:.0f} s, {rounds} rounds of "
        f"{seconds:.1f} s ({objects / seconds:.0f} objects a second), {roles_tried} roles",
        flush=True,
    )
    if file.stem != PLANTED:
        return
    plants = Plants(deployment)
    plants.plant()
    # What a role may do follows from policies that are weaker now.
    found = problems(deployment.accept(), but="access")
    planted = {subject for subjects in plants.subjects.values() for subject in subjects}
    yield from (f"invented beside the plants: {s}: {found[s]}" for s in found.keys() - planted)
    yield from (f"not found: {subject}" for subject in planted - found.keys())
    plants.break_admission()
    found = problems(deployment.accept())
    for change in ("dead webhook", "missing CRD"):
        for subject in plants.subjects[change]:
            if not any(subject in f"{s}: {evidence}" for s, evidence in found.items()):
                yield f"not found: {change}: {subject}"
    counts = ", ".join(f"{len(s)} of {change}" for change, s in plants.subjects.items())
    print(f"{file.stem}: planted {counts}", flush=True)


def main() -> int:
    """Apply and accept all files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True, help="of a server of your own")
    parser.add_argument("--answers", metavar="ADDRESS", help="of this machine, for webhooks")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("files", nargs="*", type=Path)
    options = parser.parse_args()
    files = options.files or [ROOT / "clusters" / f"{name}.yaml" for name in rendered.FILES]
    wrong: list[str] = []
    with TemporaryDirectory() as name:
        tools = unpack_tools(Path(name))
        answering = answer_webhooks(options.answers, tools) if options.answers else nullcontext()
        with answering as answers:
            try:
                server = Cluster.connected(options.kubeconfig)
                version = server.get("/version")["gitVersion"]
                if not options.yes:
                    input(f"Apply all examples to {server.name}, {version}? Enter; Ctrl-C ends. ")
                for file in files:
                    people = people_of(file) if file.stem in access_cases.clusters() else None
                    path = Path(name, file.name) if people else file
                    if people:
                        path.write_text(people.text)
                    assembly = synthesize(path, Path(name, file.stem), validated=False)
                    deployment = Deployment(options.kubeconfig, assembly, tools, answers)
                    if missing := deployment.missing_charts():
                        print(f"{file.stem}: not applied, see `make charts`: {', '.join(missing)}")
                        continue
                    try:
                        for line in try_file(deployment, file, people):
                            print(f"{file.stem}: {line}", flush=True)
                            wrong.append(line)
                    except ClusterError as error:
                        # AWS publishes no definition of its own kinds.
                        if "no matches for kind" not in str(error):
                            raise
                        print(f"{file.stem}: not applied as a whole: {error}", flush=True)
                    deployment.remove()
            except ClusterError as error:
                print(error)
                return 1
    print(f"server {version}: {len(wrong)} wrong")
    return 3 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
