"""Synthesis of a cluster file into new folders, which replace the old folders on success.

The app runs in a process of its own (``python -m ultrascale_stacks``), with the CDK CLI's context.
The findings of its validation are judged as by `cdk synth --strict`: an error or a warning without
acknowledgement fails the synthesis.
"""

import fcntl
import glob
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

from ultrascale import documents, processes
from ultrascale.documents import Json, JsonObject, look_up, mapping, objects, sequence, text
from ultrascale.errors import QuestionError, UltrascaleError
from ultrascale.frozen import Frozen
from ultrascale.node import node
from ultrascale.plan.model import ClusterPlan
from ultrascale.plan.stacks import planned_stacks
from ultrascale.progress import progress
from ultrascale.release import PRODUCT, VERSION

ASSEMBLY = Path("cdk.out")
"""Folder of the working folder for the assembly, by default."""
MANIFESTS = Path("dist")
"""Folder of the working folder for the manifests, by default."""
CLUSTER = "cluster"
"""Key of the app's context that names the file of a cluster."""
APP = ("-P", "-m", "ultrascale_stacks")
"""The app, without the working folder on Python's path, which may have a folder `constructs`."""

# The CDK CLI passes an app the same context with its default options.
# Source: https://github.com/aws/aws-cdk-cli (cloud-assembly/environment.ts, contextFromSettings)
_CONTEXT: Mapping[str, Json] = {
    "aws:cdk:enable-path-metadata": True,
    "aws:cdk:enable-asset-metadata": True,
    "aws:cdk:disable-version-reporting": True,
    "aws:cdk:bundling-stacks": ["**"],
    # This module judges the findings itself.
    "@aws-cdk/core:failSynthOnValidationErrors": False,
}
_REPORT = "validation-report.json"
_REFUSED = frozenset({"fatal", "error", "warning"})
_MANIFEST = "manifest.json"
# Files that the CDK writes into an assembly beside its manifest, or the CDK CLI into `.cache`.
_PART = re.compile(
    r"asset\..*|(assembly|cluster)-.*|.*\.(template|assets|metadata)\.json|tree\.json|cdk\.out"
    r"|.*\.lock|.*\.dot|buildspec-.*\.yaml|(.*-)?validation-report\.json|\.cache|\.DS_Store"
)
# Written by `ultrascale bootstrap-policy`, beside the manifests.
_BOOTSTRAP = "bootstrap"


class Target(Frozen):
    """The folders that a synthesis replaces."""

    assembly: Path = ASSEMBLY  # Folder of the assembly
    manifests: Path = MANIFESTS  # Folder of the manifests


def synthesize(file: Path, target: Target, *, app: str = CLUSTER) -> None:
    """Synthesize a cluster file, or the app of a part of it, and replace the folders of ``target``.

    The folders stay as they are if the synthesis fails or is interrupted.

    Args:
        file: The cluster file, without mistakes.
        target: The folders.
        app: Key of the app's context that names the file: `CLUSTER`, or the name of the part.

    Raises:
        QuestionError: A folder holds files that no synthesis wrote.
        UltrascaleError: As `synthesize_into`; or a folder cannot be written.
    """
    assembly, manifests = target.assembly.resolve(), target.manifests.resolve()
    _refuse_target(file, assembly, manifests)
    with ExitStack() as stack:
        new = {folder: stack.enter_context(_new_folder(folder)) for folder in (assembly, manifests)}
        _reuse_assets(assembly, new[assembly])
        synthesize_into(file, assembly=new[assembly], manifests=new[manifests], app=app)
        _replace(new)


def synthesize_into(file: Path, *, assembly: Path, manifests: Path, app: str = CLUSTER) -> None:
    """Synthesize a cluster file, or the app of a part of it, into two folders.

    Args:
        file: The cluster file, without mistakes.
        assembly: Folder for the assembly.
        manifests: Folder for the manifests.
        app: Key of the app's context that names the file: `CLUSTER`, or the name of the part.

    Raises:
        QuestionError: The file is standard input.
        UltrascaleError: The CDK is not installed, the app fails, or its validation has findings.
    """
    refuse_stdin(file)
    require_cdk()
    context = {
        **_CONTEXT,
        app: str(file),
        "manifests": str(manifests),
    }
    environment = {
        # A user's CDK settings must not change a template or switch validation off.
        **{name: value for name, value in os.environ.items() if not name.startswith("CDK_")},
        "CDK_CONTEXT_JSON": json.dumps(context),
        "CDK_OUTDIR": str(assembly),
        "JSII_NODE": str(node()),
    }
    with progress(f"synthesizing {file}"):
        answer = processes.run([sys.executable, *APP], environment=environment)
    printed = answer.stdout.strip()
    if answer.returncode:
        raise UltrascaleError(printed or f"{file}: the synthesis ended with {answer.returncode}")
    lines = [*_findings(assembly)]
    if lines:
        head = f"{file}: the synthesis has findings that nobody has acknowledged:"
        raise UltrascaleError("\n".join([*filter(None, [printed]), head, *lines]))
    if printed:
        sys.stderr.write(f"{printed}\n")


def require_cdk() -> None:
    """Refuse an installation of the wheel without the extra that brings the CDK.

    Raises:
        UltrascaleError: The CDK is not installed.
    """
    if find_spec("aws_cdk") is None:
        wheel = f"'./{PRODUCT}-{VERSION}-py3-none-any.whl[tested]'"
        raise UltrascaleError(f"this needs the CDK, which is not installed; pip install {wheel}")


def refuse_stdin(file: Path) -> None:
    """Refuse standard input, which the process of the app could not read again.

    Raises:
        QuestionError: ``file`` is "-".
    """
    if str(file) == "-":
        raise QuestionError(["-: a synthesis reads a file, and not standard input; name a file"])


# --- findings -----------------------------------------------------------------------------------


def _findings(assembly: Path) -> Iterator[str]:
    """Yield the reasons against a deployment: findings, and facts that an account has to state."""
    if missing := sequence(_read(assembly / _MANIFEST), "missing"):
        keys = ", ".join(sorted(text(fact, "key") for fact in missing))
        yield f"facts are missing that the CDK would look up in an account: {keys}"
    reports = sorted(assembly.glob(f"**/{_REPORT}"))
    if assembly / _REPORT not in reports:
        yield f"{_REPORT} is missing: nothing was validated"
    for report in reports:
        for plugin in objects(_read(report), "pluginReports"):
            yield from _findings_of(plugin)


def _findings_of(plugin: Json) -> Iterator[str]:
    name, refused = text(plugin, "pluginName"), False
    for violation in objects(plugin, "violations"):
        if (severity := text(violation, "severity")) not in _REFUSED:
            continue
        refused = True
        yield f"{severity} {text(violation, 'ruleName')} ({name}): {text(violation, 'description')}"
        if fix := text(violation, "suggestedFix"):
            yield f"  fix: {fix}"
        for construct in objects(violation, "violatingConstructs"):
            resource = mapping(construct, "cloudFormationResource")
            where = [text(resource, "templatePath"), text(resource, "logicalId")]
            paths = map(str, sequence(resource, "propertyPaths"))
            place = [text(construct, "constructPath"), *where, *paths]
            yield "  at " + " ".join(filter(None, place))
    if not refused and text(plugin, "conclusion") == "failure":
        yield f"error ({name}): the validation failed and names no finding"


def _read(file: Path) -> Json:
    try:
        return documents.read_json(file)
    except (OSError, ValueError) as error:
        raise UltrascaleError(f"{file}: {error}; synthesize again") from error


# --- folders ------------------------------------------------------------------------------------


def _refuse_target(file: Path, assembly: Path, manifests: Path) -> None:
    wrong = [*_mistakes(file.resolve(), {"--output": assembly, "--manifests": manifests})]
    if assembly == manifests or assembly in manifests.parents or manifests in assembly.parents:
        wrong.append(f"--manifests: lies in the folder of --output, or that in it, got {manifests}")
    if wrong:
        raise QuestionError(wrong)


def _mistakes(file: Path, folders: Mapping[str, Path]) -> Iterator[str]:
    """Yield a line for each folder whose own content the replacement would lose."""
    for option, folder in folders.items():
        if folder.exists() and not folder.is_dir():
            yield f"{option}: is no folder, got {folder}; name another one"
        elif folder in (Path.cwd(), *Path.cwd().parents, *file.parents):
            yield f"{option}: would be replaced as a whole, got {folder}; name another folder"
        elif (stranger := _foreign_file(folder, is_assembly=option == "--output")) is not None:
            yield (
                f"{option}: holds what no synthesis wrote and would be replaced, got {stranger}; "
                "move it, or name another folder"
            )


def _foreign_file(folder: Path, *, is_assembly: bool) -> Path | None:
    if is_assembly:
        if not folder.is_dir():
            return None
        manifest = folder / _MANIFEST
        known = {_MANIFEST} if _is_assembly_manifest(manifest) else set[str]()
        # A failed synthesis by the CDK CLI leaves a part without a manifest.
        strangers = (
            file
            for file in sorted(folder.iterdir())
            if file.name not in known and not _PART.fullmatch(file.name)
        )
        return manifest if manifest.exists() and not known else next(strangers, None)
    for file in folder.glob("**/*"):
        if not (
            file.is_dir()
            or file.name.endswith(".k8s.yaml")
            or file.name == ".DS_Store"
            or file.relative_to(folder).parts[0] == _BOOTSTRAP
        ):
            return file
    return None


def _is_assembly_manifest(file: Path) -> bool:
    """Return whether the CDK wrote a ``manifest.json``: web pages have files of that name, too."""
    try:
        document = documents.read_json(file)
    except (OSError, ValueError):
        return False
    return bool(text(document, "version")) and isinstance(look_up(document, "artifacts"), dict)


@contextmanager
def _new_folder(target: Path) -> Generator[Path]:
    """Make a folder for the replacement of ``target``, on the same file system: it is renamed."""
    with ExitStack() as stack:
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with _locked(target.parent):
                _remove_leftovers(target)
                name = stack.enter_context(
                    tempfile.TemporaryDirectory(
                        dir=target.parent, prefix=f".{target.name}-", ignore_cleanup_errors=True
                    )
                )
                new = Path(name, "new")
                new.mkdir()
                # Held until this process ends, however it ends.
                stack.enter_context(_locked(Path(name)))
        except OSError as error:
            raise UltrascaleError(
                f"{target.parent}: cannot be written to: {error.strerror}; name other folders by "
                "--output and --manifests"
            ) from error
        yield new


def _remove_leftovers(target: Path) -> None:
    """Remove folders that killed syntheses made for the replacement of ``target``."""
    for folder in target.parent.glob(f".{glob.escape(target.name)}-????????"):
        if not {*_names(folder)} <= {"new", "old"}:
            continue
        # A file system without locks keeps them: another synthesis may be under way.
        with suppress(OSError), _opened(folder) as descriptor:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder)


def _names(folder: Path) -> Iterator[str]:
    with suppress(OSError):
        yield from (entry.name for entry in os.scandir(folder))


def _reuse_assets(old: Path, new: Path) -> None:
    """Link old assets, named by the digest of their content: the CDK would copy 60 MB.

    The CDK writes manifests of assets last. A zip that no manifest names may be incomplete, as a
    killed `cdk synth` left it, or belong to a state before the last.
    """
    manifests: list[Path] = []
    # Another synthesis may replace the folder meanwhile.
    with suppress(FileNotFoundError):
        manifests += old.rglob("*.assets.json")
    for asset in {old / name for manifest in manifests for name in _zips(manifest)}:
        # A file system without links gets a copy from the CDK.
        with suppress(OSError):
            os.link(asset, new / asset.name)


def _zips(manifest: Path) -> Iterator[str]:
    with suppress(OSError, ValueError):
        for file in mapping(documents.read_json(manifest), "files").values():
            name = Path(text(file, "source", "path")).name
            if name.startswith("asset.") and name.endswith(".zip"):
                yield name


def _replace(new: Mapping[Path, Path]) -> None:
    """Rename the new folders to their targets: all of them or none."""
    with ExitStack() as stack:
        for folder in sorted({target.parent for target in new}):
            stack.enter_context(_locked(folder))
        with processes.uninterrupted():
            done: list[tuple[Path, Path]] = []
            try:
                for target, folder in new.items():
                    old = folder.with_name("old")
                    if target.exists():
                        target.rename(old)
                        done.append((old, target))
                    folder.rename(target)
                    done.append((target, folder))
            except OSError as error:
                for now, before in reversed(done):
                    now.rename(before)
                raise UltrascaleError(
                    f"{error.filename2 or error.filename}: cannot be replaced: {error.strerror}; "
                    "name another folder"
                ) from error


@contextmanager
def _locked(folder: Path) -> Generator[None]:
    """Keep other syntheses from replacing folders in ``folder``: two would mix their files."""
    with _opened(folder) as descriptor:
        # Some network file systems have no locks.
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


@contextmanager
def _opened(folder: Path) -> Generator[int]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


# --- The stacks of a synthesized assembly: the folder `cdk.out` that `cdk synth` writes -----------


_STACK = "aws:cloudformation:stack"


def read_stacks(folder: Path) -> Mapping[str, Path]:
    """Return the template of each stack of an assembly, without nested assemblies.

    Raises:
        UltrascaleError: Nothing is synthesized there, or it is incomplete.
    """
    manifest = folder / "manifest.json"
    if not manifest.exists():
        raise UltrascaleError(f"{folder}: nothing is synthesized here; run `ultrascale synth FILE`")
    artifacts = mapping(read_json(manifest), "artifacts")
    return {
        text(mapping(artifact, "properties"), "stackName") or name: folder
        / text(mapping(artifact, "properties"), "templateFile")
        for name, artifact in artifacts.items()
        if text(artifact, "type") == _STACK
    }


def read_stacks_of(plan: ClusterPlan, folder: Path) -> Mapping[str, Path]:
    """Return the template of each stack of a cluster's assembly.

    Raises:
        UltrascaleError: As `read_stacks`; or the assembly is of another file, or of an earlier
            version of this one.
    """
    stacks = read_stacks(folder)
    if different := stacks.keys() ^ planned_stacks(plan):
        message = (
            f"{folder}: not what the file of {plan.name} becomes now: {min(different)} is in one "
            "alone; run `ultrascale synth` for the file"
        )
        raise UltrascaleError(message)
    return stacks


def read_json(file: Path) -> JsonObject:
    """Return the content of a file of an assembly.

    Raises:
        UltrascaleError: The file is incomplete: a synthesis was interrupted.
    """
    try:
        return mapping(documents.read_json(file))
    except (FileNotFoundError, ValueError) as error:
        raise UltrascaleError(f"{file}: {error}; run `ultrascale synth` again") from None
