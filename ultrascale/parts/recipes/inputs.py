"""The folders that a job of post-training reads, looked at before its nodes are paid for.

A folder is looked at on this machine where it is there, else in the bucket behind its claim.
`submit` says which it cannot look at, and guesses nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath

from msgspec.structs import replace

from ultrascale import config
from ultrascale.catalog.transformers import Transformer
from ultrascale.documents import Json, mapping, parse_json
from ultrascale.errors import UltrascaleError
from ultrascale.frozen import Frozen
from ultrascale.parts.recipes import posttraining
from ultrascale.parts.recipes.posttraining import DATA, MODEL, TEACHER, Mistakes
from ultrascale.plan.jobs.devices import smallest_device
from ultrascale.plan.jobs.nodes import node_share
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.jobs.roles import at_keys_of_job
from ultrascale.plan.jobs.submission import Submission, rule
from ultrascale.plan.model import ClusterPlan

_ADAPTERS = "adapter_config.json"
# Of a file of rows the most that is read from either end.
_MOST_BYTES = 2**20


class _Files(Frozen):
    """The files of a folder."""

    sizes: Mapping[str, int]  # Their sizes, by name
    read: Callable[[str, int, int], bytes]  # Reads a file from a byte to before another
    complete: bool = True  # Whether the job sees no others

    def document(self, name: str) -> Mapping[str, Json]:
        """Return a file that is JSON."""
        return mapping(parse_json(self.read(name, 0, self.sizes[name])))


class Seen(tuple[config.Mistake, ...]):
    """Mistakes in what a job reads, and notes on what cannot be looked at."""


@rule.fact()
def seen_in_inputs(request: JobRequest, plan: ClusterPlan, sent: Submission) -> Seen | None:
    """Return what is seen in the folders that a job reads; None where nobody is to look."""
    figures: dict[str, Transformer] = {}
    parts = [(part, _look(part, plan, figures)) for part in request.roles or (request,)]
    return (
        None
        if not sent.looks
        else Seen(
            mistake
            for part, seen in parts
            for mistake in (at_keys_of_job(request, part, seen) if part.role else seen)
        )
    )


@rule
def inputs_suit_the_job(seen: Seen) -> Mistakes:
    """Yield folders that are not what the job needs, and models that do not suit its nodes."""
    yield from (mistake for mistake in seen if mistake.severity == "error")


@rule(severity="note")
def inputs_can_be_seen(seen: Seen) -> Mistakes:
    """Yield folders that cannot be looked at."""
    yield from (mistake for mistake in seen if mistake.severity == "note")


def _look(part: JobRequest, plan: ClusterPlan, figures: dict[str, Transformer]) -> Mistakes:
    """Yield mistakes and notes on what a role reads, and keep the figures of models by path."""
    method, job = posttraining.method_of(part), part.job
    if method is None or not isinstance(job, config.TrainingJob):
        return
    stated = posttraining.stated_in(job.args)
    for option in (MODEL, TEACHER, "model", DATA):
        path = stated.text(option) or ""
        if not path.startswith("/"):
            continue
        problem, complete = "", False
        try:
            files = _files(part, plan, PurePosixPath(path))
            if option != DATA:
                problem = _problem_of_model(files, path, figures)
            elif "dataset_text_field" not in stated.by_name:
                problem = _problem_of_rows(files, method.columns)
            complete = files.complete
        except (UltrascaleError, OSError, ValueError) as error:
            problem = str(error)
        if problem and complete:
            todo = f"name a folder with it in --{option}"
            yield config.refuse(stated.at(option), f"{path}: {problem}", todo, got="")
        elif problem:
            note = f"Not known before it runs: whether --{option}={path} will do: {problem}."
            yield replace(config.refuse(stated.at(option), note), severity="note")
    yield from _suits(part, stated, figures)


def _suits(
    part: JobRequest, stated: posttraining.Stated, figures: Mapping[str, Transformer]
) -> Mistakes:
    """Yield models of known figures that do not suit each other, or the nodes."""
    method, job = posttraining.method_of(part), part.job
    model, teacher = (figures.get(stated.text(option) or "") for option in (MODEL, TEACHER))
    if model and teacher and model.vocabulary != teacher.vocabulary:
        problem = f"{teacher.vocabulary:,} tokens, and the student has {model.vocabulary:,}"
        yield config.refuse(stated.at(TEACHER), problem, "take a teacher with the same tokens")
    if part.role == posttraining.ROLLOUT:
        served = stated.text("model") or posttraining.trained_model(part)
        yield from posttraining.heads_mistakes(figures.get(served or ""), stated)
    elif method and model and model.hidden and isinstance(job, config.TrainingJob):
        device = smallest_device(node_share(job, part.nodes), part.nodes)
        if device is not None:
            yield from posttraining.memory_mistakes(method, model, job, device)


def _files(part: JobRequest, plan: ClusterPlan, path: PurePosixPath) -> _Files:
    if Path(path).is_dir():
        return _files_here(Path(path))
    mounts = [mount for mount in part.mounts if path.is_relative_to(mount.mount_path)]
    if not mounts:
        raise ValueError("it is on no volume of the job")
    mount = max(mounts, key=lambda mount: len(mount.mount_path))
    inside, named = path.relative_to(mount.mount_path), (part.namespace, mount.claim)
    for volume in plan.storage.volumes:
        if (volume.claim.namespace, volume.claim.name) != named:
            continue
        if volume.claim.source == "bucket":
            prefix = " ".join(volume.mount_options).partition("prefix ")[2].partition(" ")[0]
            return _files_in(part, f"{volume.component}/{prefix}{inside}")
        for link in (one.repository for one in plan.storage.lustre if one.name == volume.component):
            folder = "" if link is None else link.path.strip("/")
            if link is not None and inside.is_relative_to(folder):
                shown = f"{link.bucket}/{link.prefix}{inside.relative_to(folder)}"
                # What a job writes may not be in the bucket yet.
                return replace(_files_in(part, shown), complete=False)
    raise ValueError(f"no bucket of the cluster file is behind claim {mount.claim}")


def _files_here(folder: Path) -> _Files:
    def read(name: str, start: int, end: int) -> bytes:
        with (folder / name).open("rb") as file:
            file.seek(start)
            return file.read(end - start)

    sizes = {file.name: file.stat().st_size for file in folder.iterdir() if file.is_file()}
    return _Files(sizes=sizes, read=read)


def _files_in(part: JobRequest, stated: str) -> _Files:
    from ultrascale.account import connect
    from ultrascale.parts.models.bucket import place_of

    account = connect(part.cluster.region)
    place, s3 = place_of(account, part.cluster, stated), account.client("s3")

    def read(name: str, start: int, end: int) -> bytes:
        key, part = f"{place.prefix}/{name}", f"bytes={start}-{end - 1}"
        return account.ask(s3.get_object, Bucket=place.s3_name, Key=key, Range=part)["Body"].read()

    pages = account.ask_pages(
        s3.list_objects_v2, Bucket=place.s3_name, Prefix=f"{place.prefix}/", Delimiter="/"
    )
    items = [item for page in pages for item in page["Contents"]]
    sizes = {item.get("Key", "").rpartition("/")[2]: item.get("Size", 0) for item in items}
    return _Files(sizes=sizes, read=read)


def _problem_of_model(files: _Files, path: str, figures: dict[str, Transformer]) -> str:
    from ultrascale.parts.models.bucket import CONFIG, model_of

    if _ADAPTERS in files.sizes and CONFIG not in files.sizes:
        base = files.document(_ADAPTERS).get("base_model_name_or_path") or "their base model"
        return f"adapters alone, of {base}: merge them into it, or name it"
    if CONFIG not in files.sizes:
        return "no model of Hugging Face's libraries, which has a config.json"
    model = model_of(path, files.sizes, files.document)
    if model.figures is None and model.files:
        raise ValueError(model.problem)
    if model.figures is not None:
        figures[path] = replace(model.figures, name=path)
    return model.problem


def _problem_of_rows(files: _Files, columns: Sequence[Sequence[str]]) -> str:
    """Return the reason that the first or the last row of a file is not of a method's columns."""
    names = sorted(name for name in files.sizes if name.endswith((".jsonl", ".json")))
    name = next((name for name in names if "train" in name), next(iter(names), None))
    if name is None:
        raise ValueError("it has no files of JSON lines")
    size = files.sizes[name]
    first = files.read(name, 0, min(size, _MOST_BYTES)).partition(b"\n")[0]
    last = files.read(name, max(0, size - _MOST_BYTES), size).rstrip().rpartition(b"\n")[2]
    for line in (first, last):
        row: Json = parse_json(line)
        if not isinstance(row, dict):
            raise ValueError(f"{name} has no JSON lines")
        if not any(row.keys() >= {*named} for named in columns):
            needed = ", or ".join(" and ".join(named) for named in columns)
            return f"a row of {name} has {', '.join(row)}, and needs {needed}"
    return ""
