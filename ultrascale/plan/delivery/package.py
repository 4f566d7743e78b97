"""The release of this product that the builds of a pipeline install, and their commands.

A run begins with the commands that the pipeline has, and updates the pipeline by what they
synthesize. So the first build follows the commit: it installs what the file in it names, and only
where that cannot be installed the release that the pipeline has. Otherwise no commit could name a
release that the earlier one cannot read, or take the earlier wheel out of the repository, or name
an object in a folder that the role may not read before the update.
"""

from collections.abc import Iterator, Mapping, Sequence

from ultrascale import config
from ultrascale.catalog import build_environment
from ultrascale.plan.model import PackageObject, PackagePlan
from ultrascale.plan.model.pipeline import BuildsPlan, StagePlan
from ultrascale.plan.rules import rule
from ultrascale.release import PRODUCT, VERSION

_FOLDER = "$HOME/.ultrascale"
_LINTER = "$HOME/.cfn-lint"
_PIP = "python -m pip install --quiet --disable-pip-version-check"
_PREPARE = (
    f'python -m venv "{_FOLDER}"',
    f'export PATH="{_FOLDER}/bin:$PATH"',
    # The index of a company, if the repository names one there.
    'if [ -f pip.conf ]; then export PIP_CONFIG_FILE="$PWD/pip.conf"; fi',
)
# The extra `tested` has the exact versions of the libraries that the release was tested with.
_INSTALL = f"""\
install_package() {{
  place="${{1%%#*}}"
  wheel="$place"
  case "$place" in *://*) wheel="{_FOLDER}/${{place##*/}}" ;; esac
  case "$place" in
    s3://*) aws s3 cp --only-show-errors "$place" "$wheel" || return ;;
    https://*) curl --fail --silent --show-error --location --output "$wheel" "$place" || return ;;
  esac
  case "$1" in *#sha256=*) echo "${{1#*#sha256=}}  $wheel" | sha256sum --check || return ;; esac
  case "$wheel" in /*) ;; *) wheel="./$wheel" ;; esac
  {_PIP} "$wheel[tested]"
}}
"""
# As `parse`, without the product: what is installed may not be able to read the file.
_NAMED = (
    "import sys, yaml; "
    "print((yaml.safe_load(open(sys.argv[1]))['pipeline'].get('package') or sys.argv[2]))"
)


def released(pipeline: config.Pipeline) -> config.Release:
    """Return the release that the builds of ``pipeline`` install.

    Without the key, the repository is this product's own and builds itself.
    """
    return config.release_of(pipeline.package or ".")


def plan_package(pipeline: config.Pipeline | None) -> PackagePlan:
    """Return the package that the builds of ``pipeline`` install."""
    return PackagePlan(words=package_words(pipeline), object=package_object(pipeline))


def package_object(pipeline: config.Pipeline | None) -> PackageObject | None:
    """Return the object that the builds of ``pipeline`` install; None where they install none."""
    if pipeline is None or pipeline.package is None:
        return None
    release = config.release_of(pipeline.package)
    if release.object_name is None:
        return None
    bucket, _, key = release.object_name.partition("/")
    return PackageObject(
        bucket=bucket, key=key, sha256=release.sha256, account=pipeline.home.account
    )


@rule(severity="warning")
def pipeline_runs_this_release(pipeline: config.Pipeline) -> Iterator[config.Mistake]:
    """Yield that the pipeline synthesizes with another release than the one that runs here."""
    release = released(pipeline)
    if not release.is_running:
        wrong = (
            f"the pipeline installs {PRODUCT} {release.version}, and this is {VERSION}: what it "
            "synthesizes may differ from what you see here"
        )
        todo = f"install {release.place} here, or change the key"
        yield config.refuse("package", wrong, todo, got="")


@rule(severity="note")
def release_is_named(pipeline: config.Pipeline) -> Iterator[config.Mistake]:
    """Yield the release that the builds of the pipeline install."""
    yield config.refuse("", f"the pipeline's {package_words(pipeline)}", got="")


def package_words(pipeline: config.Pipeline | None) -> str | None:
    """Return what the builds of ``pipeline`` install and from where; None without a pipeline."""
    if pipeline is None:
        return None
    release = released(pipeline)
    place = f"from {release.place}" if release.place else "as this repository has it"
    return f"builds install {PRODUCT} {release.version} {place}"


def plan_builds(
    pipeline: config.Pipeline, file: str, stages: Sequence[StagePlan], release: config.Release
) -> BuildsPlan:
    """Return the commands of the builds of a pipeline.

    Args:
        pipeline: The section of the cluster file.
        file: The cluster file, from the repository's folder.
        stages: Stages of the pipeline.
        release: The release that they install.
    """
    if release.source == "checkout":
        return _of_the_checkout(file, stages, release)
    named = pipeline.package or release.place
    install = (*_PREPARE, f"{_INSTALL}install_package '{named}'")
    return BuildsPlan(
        version=release.version,
        synth=(*_PREPARE, _follow(file, named), f"{PRODUCT} synth --pipeline {file}"),
        tests=(),
        rules=(*install, *_linter(), *(each for stage in stages for each in _held(stage))),
        looks={stage.name: (*install, f"{PRODUCT} synth {stage.file}") for stage in stages},
        program=PRODUCT,
        bucket_object=release.object_name,
    )


def _follow(file: str, had: str) -> str:
    """Return the command that installs what the commit's file names, or what the pipeline has."""
    again = (
        f"cannot be installed yet: {had} updates the pipeline first. If it cannot read the files "
        "of this commit, change pipeline.package alone, in a commit of its own before this one"
    )
    return (
        f"{_INSTALL}{_PIP} PyYAML=={build_environment.YAML_VERSION}\n"
        f'named="$(python -c "{_NAMED}" {file} \'{had}\')"\n'
        'echo "pipeline.package: $named"\n'
        f'install_package "$named" || {{ test "$named" != \'{had}\' && '
        f"echo '{again}' && install_package '{had}'; }}"
    )


def _linter() -> tuple[str, ...]:
    """Return the commands that install cfn-lint apart: its own libraries have ranges of theirs."""
    return (
        f'python -m venv "{_LINTER}"',
        f'"{_LINTER}/bin/python" -m pip install --quiet --disable-pip-version-check '
        f"cfn-lint=={build_environment.CFN_LINT_VERSION}",
    )


def _held(stage: StagePlan) -> tuple[str, ...]:
    ignored = " ".join(build_environment.CFN_LINT_IGNORED)
    return (
        f"{PRODUCT} synth {stage.file}",
        f'"{_LINTER}/bin/cfn-lint" --ignore-checks {ignored} --regions {stage.cluster.region} '
        "--template cdk.out/*.template.json",
    )


def _of_the_checkout(file: str, stages: Sequence[StagePlan], release: config.Release) -> BuildsPlan:
    looks: Mapping[str, tuple[str, ...]] = {
        stage.name: (f"make synth CLUSTER={stage.file}",) for stage in stages
    }
    return BuildsPlan(
        version=release.version,
        synth=(f"make pipeline CLUSTER={file}",),
        tests=("make test",),
        rules=tuple(
            command
            for stage in stages
            for command in (*looks[stage.name], f"make lint-templates CLUSTER={stage.file}")
        ),
        looks=looks,
        program=".venv/bin/ultrascale",
        bucket_object=None,
    )
