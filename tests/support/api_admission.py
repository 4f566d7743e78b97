"""Sends all that the examples become to an API server, as dry runs of which nothing stays.

`python -m tests.support.api_admission --kubeconfig FILE` sends each object of the files of
`clusters/`, of their charts where `tests.support.charts` has them, and of their jobs, by strict
server-side apply. A dry run makes no kind, no namespace and no policy, so `--create`, for a server
of one's own, makes these and the roles of `kubernetes.access`, has each policy type-checked, and
asks what `tests.support.access_cases` lists on behalf of people. Its namespaces and kinds stay.

Exit status: 3 on a refusal, a warning or another answer than expected; 1 where the server cannot be
asked.
"""

import argparse
import re
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import yaml

from tests.support import access_cases, rendered
from tests.support.applied import applied
from tests.support.assembly import Assembly, synthesize
from tests.support.charts import Helm, releases
from tests.support.eks_access import stand_ins
from tests.support.folders import ROOT
from tests.support.jobs import objects, prepared
from tests.support.pools import as_text, loads_own
from tests.support.rbac import Access
from ultrascale.cluster_api.connection import Transport, connect
from ultrascale.cluster_api.objects import Kind
from ultrascale.cluster_api.server import Cluster
from ultrascale.deploy.cdk import read_assembly
from ultrascale.documents import mapping, text
from ultrascale.documents import objects as objects_in
from ultrascale.errors import ClusterError, ConfigError, RefusedError
from ultrascale.plan import names
from ultrascale.plan.cluster import assemble
from ultrascale.plan.model import AccessEntryPlan
from ultrascale_k8s.access import access_objects
from ultrascale_k8s.queue_access import queue_access_objects

if TYPE_CHECKING:
    from urllib3.response import BaseHTTPResponse

Document = dict[str, Any]
_Ask = Callable[[], bool]
# Seconds until a new kind is served, a new policy judges, and its types are checked.
PATIENCE = 30.0
_MADE = ("CustomResourceDefinition", "Namespace")
_BINDING = "ValidatingAdmissionPolicyBinding"
_POLICIES = ("ValidatingAdmissionPolicy", _BINDING)
_BY_POLICY = "ValidatingAdmissionPolicy"
_UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND, _INVALID = 401, 403, 404, (400, 422)
_REVIEW = Kind(
    "authorization.k8s.io/v1", "SubjectAccessReview", "subjectaccessreviews", namespaced=False
)
_IMAGES: Sequence[Mapping[str, Any]] = (
    {},
    {"image": "example.com/trainer:1"},
    {"image": "example.com/trainer:1", "script": "t"},
)


class Heard:
    """A transport that keeps the warnings of the answers."""

    def __init__(self, inner: Transport) -> None:
        self.user_agent = inner.user_agent
        self.warnings: list[str] = []  # Warnings since they were last taken
        self._inner = inner

    def call_api(self, resource_path: str, method: str, **rest: Any) -> "BaseHTTPResponse":
        response = self._inner.call_api(resource_path, method, **rest)
        self.warnings += response.headers.getlist("Warning")
        return response


@dataclass(kw_only=True)
class Answers:
    """Answers of an API server about a file of ``clusters/``."""

    file: str
    sent: int = 0  # Objects that were sent
    refused: list[str] = field(default_factory=list[str])
    warned: list[str] = field(default_factory=list[str])
    unsent: list[str] = field(default_factory=list[str])  # Objects, charts and cases without a kind
    played: int = 0  # Cases that were asked
    differing: list[str] = field(default_factory=list[str])

    @property
    def is_well(self) -> bool:
        return not (self.refused or self.warned or self.differing)


class Admission:
    """An API server that is asked about the examples."""

    def __init__(self, transport: Transport) -> None:
        self._heard = Heard(transport)
        self.cluster = Cluster(self._heard)
        self._served: dict[tuple[str, str], Kind] = {}

    def ask(self, file: Path, assembly: Assembly, helm: Helm, *, create: bool) -> Answers:
        """Return the answers about a cluster file.

        Raises:
            ClusterError: The server cannot be reached, or the user lacks rights.
        """
        answers = Answers(file=file.stem)
        documents = [*self._charts(assembly, helm, answers), *_stood_in(assembly.documents)]
        first = [each for each in documents if each["kind"] in _MADE]
        later = [each for each in documents if each["kind"] not in _MADE]
        if create:
            for each in first:
                self._apply(each, answers, dry_run=False)
            for each in first:
                self._await_kinds(each)
        people = people_of(file) if create and file.stem in access_cases.clusters() else None
        policies = [*later, *(() if people is None else people.policies)] if create else []
        with self._policies(policies, answers):
            for each in (*(() if create else first), *later):
                self._apply(each, answers)
            for each in _jobs(file):
                self._apply(each, answers)
            if people is not None:
                self._play(file, people, answers)
            elif file.stem in access_cases.clusters():
                answers.unsent.append("cases of access: their roles are made by --create")
        return answers

    # --- Objects ----------------------------------------------------------------------------------

    def _charts(self, assembly: Assembly, helm: Helm, answers: Answers) -> Iterator[Document]:
        stacks = [each.name for each in read_assembly(assembly.folder / "cdk.out")]
        order = {
            stack.removeprefix(f"{assembly.plan.name}-"): at for at, stack in enumerate(stacks)
        }
        for release in releases(assembly, order=lambda stack: order[stack]):
            if not release.archive.exists():
                answers.unsent.append(f"{release.archive.name}: not here, see `make charts`")
                continue
            minor = assembly.plan.control_plane.version
            for each in helm.objects(release.archive, release, minor):
                yield {
                    **each,
                    "metadata": {"namespace": release.namespace, **each["metadata"]},
                }

    def _apply(self, document: Document, answers: Answers, *, dry_run: bool = True) -> Document:
        about = f"{document['kind']} {document['metadata']['name']}"
        namespace = document["metadata"].get("namespace", "default")
        kind = self._kind(document)
        if kind is None:
            answers.unsent.append(f"{about}: {document['apiVersion']} is not served")
            return {}
        if not kind.namespaced:
            document["metadata"].pop("namespace", None)
        answers.sent += 1
        found: Document = {}
        try:
            found = dict(self.cluster.apply(kind, namespace, document, dry_run=dry_run, force=True))
        except RefusedError as error:
            by_policy = _BY_POLICY in error.message
            if error.status in (_UNAUTHORIZED, _FORBIDDEN) and not by_policy:
                raise ClusterError(str(error)) from error
            if error.status == _NOT_FOUND and f'namespaces "{namespace}"' in error.message:
                answers.sent -= 1
                answers.unsent.append(f"{about}: there is no namespace {namespace}")
            else:
                answers.refused.append(str(error))
        answers.warned += [f"{about}: {warning}" for warning in self._heard.warnings]
        self._heard.warnings.clear()
        return found

    def _kind(self, document: Document) -> Kind | None:
        """Return the kind of an object; None where the server does not serve it."""
        version, kind = document["apiVersion"], document["kind"]
        if (version, kind) not in self._served:
            for name, own in self.cluster.served_kinds(version).items():
                self._served[version, name] = own
        return self._served.get((version, kind))

    def _await_kinds(self, definition: Document) -> None:
        if definition["kind"] == "CustomResourceDefinition":
            spec = definition["spec"]
            for version in (each["name"] for each in spec["versions"] if each["served"]):
                kind = {
                    "apiVersion": f"{spec['group']}/{version}",
                    "kind": spec["names"]["kind"],
                }
                _until(lambda kind=kind: self._kind(kind) is not None)

    # --- Policies and cases -----------------------------------------------------------------------

    @contextmanager
    def _policies(self, documents: Iterable[Document], answers: Answers) -> Generator[None]:
        """Let policies judge meanwhile."""
        own = [each for each in documents if each["kind"] in _POLICIES]
        made = [self._apply(each, answers, dry_run=False) for each in own]
        answers.sent -= len(own)
        self._check_types([each for each in made if each and each["kind"] != _BINDING], answers)
        try:
            yield
        finally:
            gone = [each for each in reversed(made) if each]
            for each in gone:
                self._remove(each)
            # Without a controller that collects garbage they stay, marked as deleted.
            _until(lambda: not any(self.cluster.find(self._path(each)) for each in gone), 5.0)

    def _check_types(self, policies: Sequence[Document], answers: Answers) -> None:
        def are_checked() -> bool:
            for each in policies:
                each.update(self.cluster.get(self._path(each)))
            return all("typeChecking" in each.get("status", {}) for each in policies)

        if not _until(are_checked):
            answers.unsent.append("types of policies: no controller manager has checked them all")
        for policy in policies:
            for each in objects_in(policy, "status", "typeChecking", "expressionWarnings"):
                warning = f"{text(each, 'fieldRef')}: {text(each, 'warning')}"
                answers.warned.append(f"{policy['metadata']['name']}: {warning}")

    def _path(self, document: Document) -> str:
        kind = self._kind(document)
        assert kind is not None
        return kind.path(None, document["metadata"]["name"])

    def _remove(self, document: Document) -> None:
        if document["kind"] == _BINDING:
            # Where no controller collects garbage, a deleted binding stays and would go on denying.
            audit = {"op": "replace", "path": "/spec/validationActions", "value": ["Audit"]}
            self.cluster.patch(self._path(document), [audit])
        kind = self._kind(document)
        assert kind is not None
        self.cluster.delete(kind, "", document)

    def _play(self, file: Path, people: "People", answers: Answers) -> None:
        for each in people.documents:
            self._apply(each, answers, dry_run=False)
            answers.sent -= 1
        for why, allowed, is_allowed in self._cases(file, people):
            answers.played += 1
            try:
                # New roles and policies hold after a moment.
                if not _until(lambda ask=is_allowed, wanted=allowed: ask() is wanted):
                    answers.differing.append(f"{why}: {'refused' if allowed else 'allowed'}")
            except RefusedError as error:
                answers.differing.append(f"{why}: {error}")
            except _NotServedError as error:
                answers.played -= 1
                answers.unsent.append(f"{why}: {error}")

    def _cases(self, file: Path, people: "People") -> Iterator[tuple[str, bool, _Ask]]:
        """Yield what each case means, whether it is allowed, and the question."""
        taken = partial(self._is_taken, people.entries, "edit")
        if file.stem == "trainium-bert":
            for why, (level, access, allowed) in access_cases.rights().items():
                yield why, allowed, partial(self._has_right, people.entries[level], level, access)
        if (engine := access_cases.engine_of(file.stem)) is not None:
            for what, (document, allowed) in access_cases.bound(*engine).items():
                ask = partial(self._is_taken, people.entries, "queue", document, "training")
                yield f"of a role with a queue: {what}", allowed, ask
        if file.stem == "llm-kueue":
            for section in ("queued", "services"):
                for why, case in access_cases.objects(section).items():
                    _, document, allowed, by_person = case
                    user = "edit" if by_person else ""
                    ask = partial(self._is_taken, people.entries, user, document, "training")
                    yield why, allowed, ask
        if file.stem == "serving":
            (route,) = objects(prepared(file, "summarize"), "HTTPRoute")
            yield "the editor's own route", True, partial(taken, route, "serving")
            for why, attack in access_cases.attacks().items():
                hostile, at = access_cases.hostile_route(route, attack), attack.get("namespace")
                ask = partial(taken, hostile, at or "serving", attack["refused"])
                yield why, attack.get("completed", False), ask

    def _has_right(self, entry: AccessEntryPlan, user: str, access: Access) -> bool:
        resource, _, part = access.resource.partition("/")
        attributes = {"verb": access.verb, "group": access.group, "resource": resource}
        attributes |= {"subresource": part, "namespace": access.namespace or ""}
        attributes |= {"name": access.name or ""}
        groups = [*entry.groups, "system:authenticated"]
        spec = {"user": user, "groups": groups, "resourceAttributes": attributes}
        review = {"apiVersion": _REVIEW.api_version, "kind": _REVIEW.kind, "spec": spec}
        reply = self.cluster.review(_REVIEW, review, timeout_seconds=PATIENCE)
        return mapping(reply, "status").get("allowed") is True

    def _is_taken(
        self,
        entries: Mapping[str, AccessEntryPlan],
        user: str,
        document: Document,
        namespace: str,
        refused: str = "",
    ) -> bool:
        """Return whether somebody may make an object; without a user, whoever asks the server.

        Raises:
            RefusedError: Something else than a policy refuses it.
            _NotServedError: The server does not serve its kind.
        """
        kind = self._kind(document)
        if kind is None:
            raise _NotServedError(f"{document['apiVersion']} is not served")
        body = {**document, "metadata": {**document["metadata"], "namespace": namespace}}
        try:
            groups = entries[user].groups if user else ()
            own = self.cluster.impersonating(user, groups) if user else self.cluster
            own.create(kind, namespace, body, dry_run=True)
        except RefusedError as error:
            if _BY_POLICY in error.message and refused in error.message:
                return False
            # A definition's own rules may refuse an attack before a policy does.
            if refused and error.status in _INVALID:
                return False
            raise
        return True


class _NotServedError(Exception):
    """A kind that a case needs is not on the server, such as one of a chart that is not here."""


@dataclass(frozen=True, kw_only=True)
class People:
    """Roles of a file at each level of access."""

    text: str  # The file with these roles
    entries: Mapping[str, AccessEntryPlan]  # By level of access; ``queue``: an editor with a queue
    documents: Sequence[Document]  # Their roles and bindings, with stand-ins of EKS's policies
    policies: Sequence[Document]  # Policies of roles with a queue


def people_of(file: Path) -> People:
    """Return people of a file with cases."""
    document: Document = yaml.load(file.read_text(), yaml.CSafeLoader)
    prefix = "arn:aws:iam::111122223333:role/"
    namespaces = [*access_cases.clusters()[file.stem]]
    levels: Document = {
        level: {"policy": level, "namespaces": namespaces} for level in access_cases.LEVELS
    }
    if (engine := access_cases.engine_of(file.stem)) is not None:
        levels["queue"] = {"policy": "edit", "queue": engine[1]}
    document["kubernetes"]["access"] = [
        {"role": f"{prefix}{level}", **keys} for level, keys in levels.items()
    ]
    text = as_text(document)
    access = assemble(loads_own(text)).access
    entries = {each.role.removeprefix(prefix): each for each in access.entries}
    own = {level: entries[level] for level in levels}
    roles = access_objects(access.roles, access.bindings)
    return People(
        text=text,
        entries=own,
        documents=[*applied(roles), *stand_ins(own)],
        policies=[] if access.queues is None else applied(queue_access_objects(access.queues)),
    )


def _jobs(file: Path) -> Iterator[Document]:
    """Yield the objects of the jobs that fit a cluster."""
    for name in rendered.jobs(file):
        for changes in _IMAGES:
            try:
                made = prepared(file, ROOT / name if "/" in name else name, **changes).objects
            except ConfigError:
                continue
            yield from applied(made)
            break


def _stood_in(documents: Iterable[Mapping[str, Any]]) -> list[Document]:
    """Return objects with values in the place of names that a deployment replaces."""
    text = yaml.dump_all(documents, Dumper=yaml.CSafeDumper).replace(names.ACCOUNT_ID, "1" * 12)
    text = re.sub(r"\$\{([A-Z0-9_]+)\}", lambda found: found[1].lower().replace("_", "-"), text)
    return [*yaml.load_all(text, yaml.CSafeLoader)]


def _until(check: Callable[[], bool], seconds: float | None = None) -> bool:
    """Return whether a check holds before long."""
    end = time.monotonic() + (PATIENCE if seconds is None else seconds)
    while not check():
        if time.monotonic() > end:
            return False
        time.sleep(0.2)
    return True


def table(rows: Sequence[Answers]) -> Iterator[str]:
    """Yield the table of the answers, then what they say."""
    form = "{:16} {:>6} {:>8} {:>7} {:>9} {:>6} {:>10}"
    yield form.format("file", "sent", "refused", "warned", "not sent", "cases", "differing")
    for row in rows:
        lists = (row.refused, row.warned, row.unsent)
        counts = (row.sent, *map(len, lists), row.played, len(row.differing))
        yield form.format(row.file, *counts)
    for row in rows:
        for name in ("refused", "warned", "differing", "unsent"):
            yield from (f"{row.file}: {name}: {each}" for each in getattr(row, name))


def main() -> int:
    """Ask about all files, and print the answers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, help="the kubeconfig; else as kubectl finds it")
    parser.add_argument("--context", help="a context of it")
    parser.add_argument("--create", action="store_true", help="make kinds, namespaces, policies")
    parser.add_argument("--yes", action="store_true", help="make them without a question")
    parser.add_argument("files", nargs="*", type=Path)
    options = parser.parse_args()
    files = options.files or [ROOT / "clusters" / f"{name}.yaml" for name in rendered.FILES]
    rows: list[Answers] = []
    try:
        transport, name = connect(options.kubeconfig, options.context)
        admission = Admission(transport)
        admission.cluster.get("/version")
        if options.create and not options.yes:
            input(f"Make kinds, namespaces, policies and roles in {name}? Enter; Ctrl-C ends. ")
        with TemporaryDirectory() as folder:
            helm = Helm(Path(folder, "tools"))
            for file in files:
                assembly = synthesize(file, Path(folder, file.stem))
                rows.append(admission.ask(file, assembly, helm, create=options.create))
    except ClusterError as error:
        print(error)
        return 1
    print(*table(rows), sep="\n")
    return 0 if all(row.is_well for row in rows) else 3


if __name__ == "__main__":
    sys.exit(main())
