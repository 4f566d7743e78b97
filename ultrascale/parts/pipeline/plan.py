"""The pipeline of a cluster file, and of the files whose clusters it deploys."""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import file_digest
from itertools import groupby
from pathlib import Path, PurePath

from ultrascale import config
from ultrascale.catalog import build_environment, regions
from ultrascale.errors import ConfigError, Diagnostic
from ultrascale.frozen import Frozen
from ultrascale.parts.pipeline import facts
from ultrascale.parts.pipeline.builds import plan_builds
from ultrascale.parts.pipeline.model import (
    APPROVAL_PREFIX,
    OWN_STACK,
    PipelinePlan,
    StagePlan,
    WavePlan,
)
from ultrascale.parts.pipeline.section import Pipeline, Stage, is_cluster_path
from ultrascale.plan import names, retention
from ultrascale.plan.cluster import assemble
from ultrascale.plan.mistakes import all_mistakes
from ultrascale.plan.model import EventPlan
from ultrascale.plan.stacks import (
    all_layers,
    node_windows,
    planned_layers,
    planned_stacks,
    stacks_on_nodes,
    stacks_that_may_lack_capacity,
)
from ultrascale.release import source_folder

Mistakes = Iterator[config.Mistake]


class _StageFiles(Frozen):
    """The files of a pipeline's stages."""

    path: Path  # The file with the pipeline
    own: config.Cluster  # Its cluster
    pipeline: Pipeline  # The section
    # Clusters of other files that could be read, by the number of their stage.
    clusters: dict[int, config.Cluster]


# Only a reader of the files beside this one judges by these rules.
_rule = config.Rules(given=(config.Parts, _StageFiles, PipelinePlan))

# The build before a deployment, the check of permissions, and their confirmation.
_LOOKING = 3
# Source, build, update of the pipeline, files and rules; and facts, at the end. A role for each
# stage comes between.
_BESIDE_WAVES = 6


def plan_pipeline(
    path: Path, reading: config.Reading, own: config.Cluster, pipeline: Pipeline
) -> PipelinePlan:
    """Read the files of the stages of a pipeline, and plan it.

    Args:
        path: The file that has it, from the repository's folder, which is the current one.
        reading: The file, without mistakes.
        own: Its cluster.
        pipeline: The section.

    Raises:
        ConfigError: One of the files is wrong, or says something else than its stage. One line for
            each mistake, ``file: key.path: …``.
    """
    here = Path.cwd()
    path = path.relative_to(here) if path.is_relative_to(here) else path
    if not is_cluster_path(path.as_posix()):
        todo = "name it from the repository's folder, as clusters/prod.yaml"
        wrong = "the pipeline has to find this file as well"
        code = "pipeline_finds_the_file"
        raise ConfigError([Diagnostic(message=wrong, file=str(path), fix=todo, code=code)])
    if absent := [*_rule.judge(reading.parts)]:
        raise reading.refusal(absent)
    others = _read_others(pipeline.stages)
    clusters = {number: other.cluster for number, other in others.items() if other.cluster}
    files = _StageFiles(path=path, own=own, pipeline=pipeline, clusters=clusters)
    mistakes = [*_rule.judge(files)]
    diagnostics = [*(reading.refusal(mistakes).diagnostics if mistakes else ())]
    for other in others.values():
        if mistakes := all_mistakes(other):
            diagnostics += other.refusal(mistakes).diagnostics
    if diagnostics:
        raise ConfigError(diagnostics)
    plan = _plan(path, reading, own, pipeline, others)
    if crowded := [*_rule.judge(plan)]:
        raise reading.refusal(crowded)
    return plan


def stage_actions(wave: WavePlan) -> int:
    """Return how many actions look at the clusters of ``wave``, and deploy their stacks.

    Stacks that need nodes have a stage of their own.
    """
    return sum(_actions(stage) for stage in wave.stages)


def pipeline_actions(plan: PipelinePlan) -> int:
    """Return how many actions a pipeline has."""
    roles = len(plan.stages)
    on_nodes = sum(len(stage.on_nodes) for stage in plan.stages)
    beside = _BESIDE_WAVES + (1 if plan.builds.tests else 0)
    return beside + roles + on_nodes + sum(stage_actions(wave) for wave in plan.waves)


def _actions(stage: StagePlan) -> int:
    stacks = len(planned_stacks(stage.cluster)) - len(stage.on_nodes)
    return _LOOKING + stage.approval + stacks


@_rule
def pipeline_has_room(plan: PipelinePlan) -> Mistakes:
    """Yield waves, and a pipeline, of more actions than CodePipeline takes.

    The CDK would divide such a wave, and a run locks a stage alone: while the second part of the
    wave is deployed, the next run would look at clusters that are about to change.

    Source: https://docs.aws.amazon.com/codepipeline/latest/userguide/concepts-how-it-works.html
    """
    number = 0
    for wave in plan.waves:
        if stage_actions(wave) > facts.STAGE_ACTIONS:
            wrong = (
                f"takes {stage_actions(wave)} actions to check and deploy, and a stage of "
                f"CodePipeline has room for {facts.STAGE_ACTIONS}"
            )
            shares = ", ".join(f"{stage.name} takes {_actions(stage)}" for stage in wave.stages)
            todo = f"divide the wave: {shares}"
            if len(wave.stages) == 1:
                todo = "take it out, and deploy it by `ultrascale deploy`"
            yield config.refuse(f"pipeline.stages.{number}", wrong, todo, got="")
        number += len(wave.stages)
    on_nodes = [stage for stage in plan.stages if stage.on_nodes]
    stages = len(facts.OWN_STAGES) + len(plan.waves) + len(on_nodes)
    if on_nodes and stages > facts.PIPELINE_STAGES:
        wrong = (
            f"{stages} stages, two for each cluster with nodes, and a pipeline "
            f"has room for {facts.PIPELINE_STAGES}"
        )
        todo = "join stages in a wave, or move some to another pipeline"
        yield config.refuse("pipeline.stages", wrong, todo, got="")
    if pipeline_actions(plan) > facts.PIPELINE_ACTIONS:
        wrong = (
            f"{pipeline_actions(plan)} actions, and a pipeline has room for "
            f"{facts.PIPELINE_ACTIONS}"
        )
        yield config.refuse("pipeline.stages", wrong, "move some to another pipeline", got="")


@_rule
def stage_has_its_file(stage: Stage) -> Mistakes:
    """Yield the file of a stage that is not here."""
    if stage.cluster is not None and not Path(stage.cluster).is_file():
        todo = "run this in the repository's folder, or correct the path"
        yield config.refuse("cluster", "no such file here", todo)


@_rule
def package_is_here(pipeline: Pipeline) -> Mistakes:
    """Yield a wheel that is absent or has another digest, and a clone that is none."""
    release = pipeline.release
    if release.source == "checkout" and source_folder() != Path.cwd():
        todo = f"write {config.PLACES}; only a clone of ultrascale builds ultrascale"
        yield config.refuse("package", "no clone of ultrascale here", todo)
    if release.source != "wheel":
        return
    wheel = Path(release.place)
    if not wheel.is_file():
        todo = "run this in the repository's folder, and add the wheel to it"
        yield config.refuse("package", "no such file here", todo)
    elif release.sha256 and (digest := _sha256(wheel)) != release.sha256:
        todo = "write it if you trust this wheel, or take the right wheel"
        yield config.refuse("package", f"its digest is {digest}", todo)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _read_others(stages: Sequence[Stage]) -> dict[int, config.Reading]:
    """Return the file of each stage that names one, by the stage's number.

    Raises:
        ConfigError: A file cannot be read, or is no mapping; one line for each.
    """
    read: dict[int, config.Reading] = {}
    diagnostics: list[Diagnostic] = []
    for number, stage in enumerate(stages):
        if stage.cluster is not None:
            try:
                read[number] = config.read(Path(stage.cluster))
            except ConfigError as error:
                diagnostics += error.diagnostics
    if diagnostics:
        raise ConfigError(diagnostics)
    return read


@_rule
def stages_agree_with_their_files(files: _StageFiles) -> Mistakes:
    """Yield keys of stages that contradict their files, and files without a stage."""
    own, stages = files.own, files.pipeline.stages
    placed: dict[tuple[str, str | None, str], int] = {}
    for number, stage in enumerate(stages):
        at = f"pipeline.stages.{number}"
        if stage.cluster is None:
            cluster = own
        elif PurePath(stage.cluster) == PurePath(files.path):
            yield config.refuse(f"{at}.cluster", "this very file", "leave it out")
            continue
        elif number in files.clusters:
            cluster = files.clusters[number]
            yield from _differences(at, stage, cluster, own, files.pipeline)
        else:
            continue
        place = (cluster.name, cluster.account, cluster.region)
        if place in placed:
            wrong = (
                f"a cluster of the name, account and Region of stages[{stages[placed[place]].name}]"
            )
            yield config.refuse(at, wrong, "rename one of the clusters", got=f"{cluster.name!r}")
        placed.setdefault(place, number)


def _differences(
    at: str, stage: Stage, cluster: config.Cluster, own: config.Cluster, pipeline: Pipeline
) -> Mistakes:
    file = stage.cluster
    if cluster.section(Pipeline) is not None:
        wrong = "this file's own pipeline would deploy the cluster too"
        yield config.refuse(f"{at}.cluster", wrong, "remove one pipeline")
    version = pipeline.release.version
    if cluster.requires is not None and not config.may_read(cluster.requires, version):
        wrong = f"this file requires {cluster.requires!r}, but pipeline.package is {version}"
        yield config.refuse(f"{at}.cluster", wrong, "change requires or package")
    if cluster.account is None:
        wrong = "a file that states no account"
        yield config.refuse(f"{at}.cluster", wrong, "write account: there, beside region:")
    elif stage.account not in (None, cluster.account):
        todo = f"{file} says {cluster.account}; change stage or file"
        yield config.refuse(f"{at}.account", "not the account of its file", todo)
    if stage.region not in (None, cluster.region):
        todo = f"{file} says {cluster.region}; change stage or file"
        yield config.refuse(f"{at}.region", "not the Region of its file", todo)
    here = regions.lookup_region(own.region).partition
    there = regions.lookup_region(cluster.region).partition
    if here != there:
        todo = f"a pipeline of {here} reaches no account of {there}: give it one of its own"
        yield config.refuse(f"{at}.cluster", "a file of another partition", todo)


def _plan(
    path: Path,
    reading: config.Reading,
    own: config.Cluster,
    pipeline: Pipeline,
    others: dict[int, config.Reading],
) -> PipelinePlan:
    home = pipeline.home
    stages = [
        _stage(stage, others.get(number, reading), stage.cluster or path.as_posix())
        for number, stage in enumerate(pipeline.stages)
    ]
    name, notices = names.stack(own.name, OWN_STACK), pipeline.notifications
    named = zip((stage.wave or stage.name for stage in pipeline.stages), stages, strict=True)
    return PipelinePlan(
        name=name,
        cluster=own.name,
        file=path.as_posix(),
        partition=home.partition,
        account=home.account,
        region=home.region,
        connection=pipeline.connection,
        repository=pipeline.repository,
        branch=pipeline.branch,
        permissions_boundary=own.permissions_boundary,
        waves=tuple(
            WavePlan(name=wave, stages=tuple(stage for _, stage in members))
            for wave, members in groupby(named, key=lambda pair: pair[0])
        ),
        log_retention_days=retention.LOG_DAYS,
        builds=plan_builds(pipeline, path.as_posix(), stages),
        cdk_variables=build_environment.CDK_CLI_VARIABLES,
        cdk_version=build_environment.CDK_CLI_VERSION,
        email=notices.email if notices else None,
        events=(*pipeline_events(name, home.region, home.account),) if notices else (),
    )


def _stage(stage: Stage, reading: config.Reading, file: str) -> StagePlan:
    cluster = config.check(reading)
    assert cluster.account is not None
    plan = assemble(cluster, reading.own_images, reading.records)
    layers = planned_layers(plan)
    windows = {node_windows(plan, layer) for layer in layers if all_layers()[layer].runs_on}
    return StagePlan(
        name=stage.name,
        file=file,
        account=cluster.account,
        cluster=plan,
        approval=stage.approval,
        replace=stage.replace,
        may_lack_capacity=stacks_that_may_lack_capacity(layers),
        on_nodes=stacks_on_nodes(layers),
        # All of them run on the same pools.
        node_windows=windows.pop() if windows else (),
    )


def pipeline_events(name: str, region: str, account: str) -> Iterator[EventPlan]:
    """Yield the events of a pipeline that need a person.

    The approval of permissions that grow is none of them: it waits in every run, until the check
    gives it itself where nothing grows. The check tells of the others.

    Source:
    https://docs.aws.amazon.com/codepipeline/latest/userguide/detect-state-changes-cloudwatch-events.html

    Args:
        name: Name of the pipeline.
        region: Region that it lies in.
        account: Account that it lies in.
    """
    where = f"CodePipeline in {region}, account {account}"
    yield EventPlan(
        name="approval-waits",
        pattern=_pattern(
            "Action",
            name,
            {
                "state": ["STARTED"],
                "action": [{"prefix": APPROVAL_PREFIX}],
                "type": {"category": ["Approval"]},
            },
        ),
        message=(
            f"The pipeline {name} waits for <action> in its stage <stage>: {where}. It shows there "
            "what changes. Unless somebody answers within seven days, the run <run> fails; until "
            "then no later one deploys the stage."
        ),
        paths={
            "action": "$.detail.action",
            "stage": "$.detail.stage",
            "run": "$.detail.execution-id",
        },
    )
    yield EventPlan(
        name="run-failed",
        pattern=_pattern("Pipeline", name, {"state": ["FAILED"]}),
        message=f"The run <run> of the pipeline {name} failed, and says there why: {where}.",
        paths={"run": "$.detail.execution-id"},
    )


def _pattern(of: str, pipeline: str, detail: Mapping[str, object]) -> Mapping[str, object]:
    return {
        "source": ["aws.codepipeline"],
        "detail-type": [f"CodePipeline {of} Execution State Change"],
        "detail": {"pipeline": [pipeline], **detail},
    }
