"""Files that the fuzzer tries, and those that it has kept: `tests/data/fuzz/`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any, Literal

from tests.support.cluster_keys import DOCUMENTS
from tests.support.folders import DATA, ROOT
from tests.support.fuzz import oracle, semantic, structural
from tests.support.fuzz.keys import Place, file_schema, job_schema, options
from tests.support.fuzz.oracle import Finding, Judgement
from tests.support.fuzz.values import value_of
from tests.support.rich_documents import RICH

Kind = Literal["structural", "text", "semantic", "job", "job-text"]
KINDS: Sequence[Kind] = (
    "structural",
    "structural",
    "text",
    "semantic",
    "semantic",
    "job",
    "job-text",
)
KEPT = DATA / "fuzz"


@dataclass(frozen=True, slots=True)
class Case:
    """A file to try."""

    data: bytes  # Its bytes
    # Name of the cluster file that it is a job in; empty where it is a cluster file
    cluster: str = ""

    def judged(self, *, synthesis: bool = True, linted: bool = False) -> Judgement:
        """Return what becomes of it."""
        if self.cluster:
            return oracle.judge_job(self.data, self.cluster)
        return oracle.judge_cluster(self.data, synthesis=synthesis, linted=linted)

    def kept(self, finding: Finding) -> Path:
        """Write it among those that are kept, and return its place."""
        folder = KEPT / (self.cluster or "cluster")
        folder.mkdir(parents=True, exist_ok=True)
        words = "".join(each if each.isalnum() else "-" for each in finding.sign.lower())
        name = "-".join(part for part in words.split("-") if part)[:60].rstrip("-")
        file = folder / f"{name}-{sha256(self.data).hexdigest()[:6]}.yaml"
        file.write_bytes(self.data)
        return file


def make(kind: Kind, seed: str) -> Case:
    """Return the case of ``kind`` that ``seed`` stands for."""
    random = Random(f"{kind} {seed}")
    if kind in ("job", "job-text"):
        cluster = random.choice([*DOCUMENTS])
        document: Any = _job(cluster, random)
        if kind == "job-text":
            return Case(structural.mutated_text(structural.written(document), random), cluster)
        changed = structural.mutated_document(document, job_schema(), random)
        if random.random() < 0.7:
            changed = semantic.repaired(
                changed, partial(_refused_job, cluster), job_schema(), random
            )
        return Case(structural.written(changed).encode("utf-8", "replace"), cluster)
    document = random.choice((*DOCUMENTS.values(), RICH))
    if kind == "text":
        file = random.choice([*(ROOT / "clusters").glob("*.yaml")])
        text = file.read_text() if random.random() < 0.5 else structural.written(document)
        return Case(structural.mutated_text(text, random))
    if kind == "structural":
        changed = structural.mutated_document(document, file_schema(), random)
    else:
        changed = semantic.repaired(
            semantic.random_document(random), _refused, file_schema(), random
        )
    return Case(structural.written(changed).encode("utf-8", "replace"))


def kept() -> Iterator[tuple[str, Case]]:
    """Yield what was found before, by its name."""
    for file in sorted(KEPT.glob("*/*")):
        cluster = file.parent.name
        name = f"{cluster}/{file.name}"
        yield name, Case(file.read_bytes(), "" if cluster == "cluster" else cluster)


def _job(cluster: str, random: Random) -> Any:
    """Return a job of ``cluster``, or a random one."""
    stated = [*DOCUMENTS[cluster].get("jobs", {}).values()]
    if stated and random.random() < 0.7:
        return random.choice(stated)
    schema = random.choice(options(job_schema()))
    return value_of({**schema, "required": []}, (), random)


def _refused(document: Any) -> Mapping[Place, Sequence[str]]:
    return oracle.refusals(document, structural.written(document))


def _refused_job(cluster: str, document: Any) -> Mapping[Place, Sequence[str]]:
    return oracle.refusals(document, structural.written(document), cluster=cluster)
