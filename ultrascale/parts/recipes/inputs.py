"""The folders that a job of post-training reads, looked at before its nodes are paid for.

A folder is looked at on this machine where it is there, else in the bucket behind its claim.
`submit` says which it cannot look at, and guesses nothing.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePosixPath

from msgspec.structs import replace

from ultrascale import config
from ultrascale.catalog.transformers import Transformer
from ultrascale.documents import Json, mapping, parse_json
from ultrascale.errors import UltrascaleError
from ultrascale.parts.recipes import posttraining
from ultrascale.parts.recipes.posttraining import DATA, MODEL, TEACHER, Mistakes
from ultrascale.parts.recipes.section import Method
from ultrascale.plan.jobs.devices import smallest_device
from ultrascale.plan.jobs.nodes import node_share
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.jobs.roles import at_keys_of_job
from ultrascale.plan.jobs.submission import Submission, rule
from ultrascale.plan.model import ClusterPlan

_ADAPTERS = "adapter_config.json"
# Of a file of rows the most that is read from either end.
_MOST_BYTES = 2**20
_Figures = dict[str, Transformer]
# Reads a file of a folder from a byte to before another.
_Read = Callable[[str, int, int], bytes]
_Sizes = Mapping[str, int]
# Sizes of a folder's files by name, their reader, and whether the job sees no others.
_Files = tuple[_Sizes, _Read, bool]


class Seen(tuple[config.Mistake, ...]):
    """Mistakes in what a job reads, and notes on what cannot be looked at."""


@rule.fact()
def seen_in_inputs(request: JobRequest, plan: ClusterPlan, sent: Submission) -> Seen | None:
    """Return what is seen in the folders that a job reads; None where nobody is to look."""
    figures: _Figures = {}
    parts = [(part, _look(part, plan, figures)) for part in request.roles or (request,)]
    seen = (at_keys_of_job(request, part, seen) if part.role else seen for part, seen in parts)
    return Seen(mistake for of_part in seen for mistake in of_part) if sent.looks else None


@rule
def inputs_suit_the_job(seen: Seen) -> Mistakes:
    """Yield folders that are not what the job needs, and models that do not suit its nodes."""
    yield from (mistake for mistake in seen if mistake.severity == "error")


@rule(severity="note")
def inputs_can_be_seen(seen: Seen) -> Mistakes:
    """Yield folders that cannot be looked at."""
    yield from (mistake for mistake in seen if mistake.severity == "note")


def _look(part: JobRequest, plan: ClusterPlan, figures: _Figures) -> Mistakes:
    """Yield mistakes and notes on what a role reads, and keep the figures of models by path."""
    method, job = posttraining.method_of(part), part.job
    if method is None or not isinstance(job, config.TrainingJob):
        return
    stated = posttraining.stated_in(job.args)
    for option in (MODEL, TEACHER, "model", DATA):
        path = stated.text(option) or ""
        if not path.startswith("/"):
            continue
        try:
            files = _files(part, plan, PurePosixPath(path))
            if option != DATA:
                problem = _problem_of_model(path, files, figures)
            else:
                columns = () if "dataset_text_field" in stated.by_name else method.columns
                problem = _problem_of_rows(files, columns)
            if problem:
                yield config.refuse(stated.at(option), f"{path}: {problem}", got="")
        except (UltrascaleError, OSError, ValueError) as error:
            note = f"Not known before it runs: whether --{option}={path} will do: {error}."
            yield replace(config.refuse(stated.at(option), note), severity="note")
    yield from _suits(part, job, method, figures)


def _suits(
    part: JobRequest, job: config.TrainingJob, method: Method, figures: _Figures
) -> Mistakes:
    stated = posttraining.stated_in(job.args)
    model, teacher = (figures.get(stated.text(option) or "") for option in (MODEL, TEACHER))
    if model and teacher and model.vocabulary != teacher.vocabulary:
        problem = f"{teacher.vocabulary:,} tokens, and the student has {model.vocabulary:,}"
        yield config.refuse(stated.at(TEACHER), problem, "take a teacher with the same tokens")
    if part.role == posttraining.ROLLOUT:
        served = stated.text("model") or posttraining.trained_model(part)
        yield from posttraining.heads_mistakes(figures.get(served or ""), stated)
    elif model and model.hidden:
        device = smallest_device(node_share(job, part.nodes), part.nodes)
        if device is not None and not device.is_neuron:
            yield from posttraining.memory_mistakes(method, model, job, device)


def _files(part: JobRequest, plan: ClusterPlan, path: PurePosixPath) -> _Files:
    if (here := Path(path)).is_dir():
        sizes = {file.name: file.stat().st_size for file in here.iterdir() if file.is_file()}
        return sizes, partial(_read, here), True
    mounts = [mount for mount in part.mounts if path.is_relative_to(mount.mount_path)]
    if not mounts:
        raise ValueError("it is on no volume of the job")
    mount = max(mounts, key=lambda mount: len(mount.mount_path))
    for place, complete in _places(plan, part.namespace, mount.claim):
        root, prefix = place
        inside = path.relative_to(mount.mount_path)
        if inside.is_relative_to(root):
            return *_files_in(part, f"{prefix}{inside.relative_to(root)}"), complete
    raise ValueError(f"no bucket of the cluster file is behind claim {mount.claim}")


def _read(folder: Path, name: str, start: int, end: int) -> bytes:
    with (folder / name).open("rb") as file:
        file.seek(start)
        return file.read(end - start)


def _places(
    plan: ClusterPlan, namespace: str, claim: str
) -> Iterator[tuple[tuple[str, str], bool]]:
    """Yield a folder of a claim, the bucket and prefix that it shows, and if it shows no more."""
    for volume in plan.storage.volumes:
        if (volume.claim.namespace, volume.claim.name) != (namespace, claim):
            continue
        if volume.claim.source == "bucket":
            prefix = " ".join(volume.mount_options).partition("prefix ")[2].partition(" ")[0]
            yield ("", f"{volume.component}/{prefix}"), True
        for system in plan.storage.lustre:
            if system.name == volume.component and (link := system.repository) is not None:
                # What a job writes may not be in the bucket yet.
                yield (link.path.strip("/"), f"{link.bucket}/{link.prefix}"), False


def _files_in(part: JobRequest, stated: str) -> tuple[_Sizes, _Read]:
    from ultrascale.account import connect
    from ultrascale.parts.models.bucket import place_of

    account = connect(part.cluster.region)
    place, s3 = place_of(account, part.cluster, stated), account.client("s3")
    bucket, folder = place.s3_name, f"{place.prefix}/"

    def read(name: str, start: int, end: int) -> bytes:
        span = f"bytes={start}-{end - 1}"
        answer = account.ask(s3.get_object, Bucket=bucket, Key=f"{folder}{name}", Range=span)
        return answer["Body"].read()

    pages = account.ask_pages(s3.list_objects_v2, Bucket=bucket, Prefix=folder, Delimiter="/")
    items = [item for page in pages for item in page["Contents"]]
    return {item.get("Key", "")[len(folder) :]: item.get("Size", 0) for item in items}, read


def _problem_of_model(path: str, files: _Files, figures: _Figures) -> str:
    from ultrascale.parts.models.bucket import CONFIG, model_of

    sizes, read, complete = files

    def document(file: str) -> Mapping[str, Json]:
        name = file.rpartition("/")[2]
        return mapping(parse_json(read(name, 0, sizes[name])))

    if CONFIG not in sizes and _ADAPTERS in sizes:
        base = document(_ADAPTERS).get("base_model_name_or_path") or "their base model"
        return f"adapters alone, of {base}; merge them into it, or name it"
    problem, known = "no model of Hugging Face's libraries, which has a config.json; name one", True
    if CONFIG in sizes:
        model = model_of(path, sizes, document)
        problem, known = model.problem, model.figures is not None or not model.files
        if model.figures is not None:
            figures[path] = replace(model.figures, name=path)
    if problem and not (complete and known):
        raise ValueError(problem)
    return problem


def _problem_of_rows(files: _Files, columns: Sequence[Sequence[str]]) -> str:
    sizes, read, _ = files
    names = sorted(name for name in sizes if name.endswith((".jsonl", ".json")))
    if not names:
        raise ValueError("it has no files of JSON lines")
    name = next((name for name in names if "train" in name), names[0])
    size = sizes[name]
    first = read(name, 0, min(size, _MOST_BYTES)).partition(b"\n")[0]
    last = read(name, max(0, size - _MOST_BYTES), size).rstrip().rpartition(b"\n")[2]
    for row in [mapping(parse_json(line)) for line in (first, last)]:
        if not row:
            raise ValueError(f"{name} has no JSON lines")
        if columns and not any(row.keys() >= {*named} for named in columns):
            needed = ", or ".join(" and ".join(named) for named in columns)
            return f"a row of {name} has {', '.join(row)}; it needs {needed}"
    return ""
