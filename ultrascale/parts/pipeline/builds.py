"""The release of this product that the builds of a pipeline install, and their commands.

A run begins with the commands that the pipeline has, and updates the pipeline by what they
synthesize. So the first build follows the commit: it installs the release that the commit's file
names, and only where that fails the release that the pipeline has. Otherwise no commit could name a
release that the earlier one cannot read, or take the earlier wheel out of the repository, or name
an object in a folder that the role may not read before the update.
"""

from collections.abc import Mapping, Sequence

from ultrascale import config
from ultrascale.parts.pipeline import facts
from ultrascale.parts.pipeline.model import BuildsPlan, StagePlan
from ultrascale.parts.pipeline.section import Pipeline
from ultrascale.release import PRODUCT

_FOLDER = "$HOME/.ultrascale"
_LINTER = "$HOME/.cfn-lint"
_SOON = "30d"
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
# As `parse`, without the product: the installed release may not be able to read the file.
_NAMED = (
    "import sys, yaml; "
    "print((yaml.safe_load(open(sys.argv[1]))['pipeline'].get('package') or sys.argv[2]))"
)


def plan_builds(pipeline: Pipeline, file: str, stages: Sequence[StagePlan]) -> BuildsPlan:
    """Return the commands of the builds of a pipeline.

    Args:
        pipeline: The section of the cluster file.
        file: The cluster file, from the repository's folder.
        stages: Stages of the pipeline.
    """
    release = pipeline.release
    if release.source == "checkout":
        return _checkout_builds(file, stages, release)
    named = pipeline.package or release.place
    install = (*_PREPARE, f"{_INSTALL}install_package '{named}'")
    return BuildsPlan(
        facts=(*install, _fact_commands(PRODUCT, stages)),
        version=release.version,
        synth=(*_PREPARE, _follow(file, named), f"{PRODUCT} synth --pipeline {file}"),
        tests=(),
        rules=(
            *install,
            *_linter(),
            *(command for stage in stages for command in _rule_commands(stage)),
        ),
        looks={stage.name: (*install, f"{PRODUCT} synth {stage.file}") for stage in stages},
        program=PRODUCT,
        bucket_object=release.object_name,
    )


def _follow(file: str, had: str) -> str:
    """Return the command that installs the release of the commit's file, or the pipeline's."""
    again = (
        f"cannot be installed yet: {had} updates the pipeline first. If it cannot read the files "
        "of this commit, change pipeline.package alone, in a commit of its own before this one"
    )
    return (
        f"{_INSTALL}{_PIP} PyYAML=={facts.YAML_VERSION}\n"
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
        f"cfn-lint=={facts.CFN_LINT_VERSION}",
    )


def _rule_commands(stage: StagePlan) -> tuple[str, ...]:
    ignored = " ".join(facts.CFN_LINT_IGNORED)
    return (
        f"{PRODUCT} synth {stage.file}",
        f'"{_LINTER}/bin/cfn-lint" --ignore-checks {ignored} --regions {stage.cluster.region} '
        "--template cdk.out/*.template.json",
    )


def _fact_commands(program: str, stages: Sequence[StagePlan]) -> str:
    """Return the commands that fail where facts of a stage expire, and list those of all stages."""
    lists = (
        f"{program} facts {stage.file} --expired --within {_SOON} || old=1" for stage in stages
    )
    return "\n".join((*lists, 'test -z "$old"'))


def _checkout_builds(file: str, stages: Sequence[StagePlan], release: config.Release) -> BuildsPlan:
    looks: Mapping[str, tuple[str, ...]] = {
        stage.name: (f"make synth CLUSTER={stage.file}",) for stage in stages
    }
    program = ".venv/bin/ultrascale"
    return BuildsPlan(
        version=release.version,
        synth=(f"make pipeline CLUSTER={file}",),
        facts=(*looks[stages[0].name], _fact_commands(program, stages)),
        tests=("make test",),
        rules=tuple(
            command
            for stage in stages
            for command in (*looks[stage.name], f"make lint-templates CLUSTER={stage.file}")
        ),
        looks=looks,
        program=program,
        bucket_object=None,
    )
