"""What a pipeline must be to its connection, and its stages to each other and to the file."""

from collections.abc import Iterator

from ultrascale.catalog import codepipeline, regions
from ultrascale.config._errors import Mistake, refuse
from ultrascale.config.pipeline import Stage, connection_id

Mistakes = Iterator[Mistake]


def connection_can_be_used(connection: str) -> Mistakes:
    region = connection_id(connection).region
    if region not in regions.REGIONS:
        todo = "copy the ARN from the console"
        yield refuse("connection", f"in no Region that is known, {region}", todo)
    elif region not in codepipeline.CONNECTION_REGIONS:
        wrong = f"CloudFormation lists no CodeConnections in {region}"
        todo = "make a connection in another Region: the pipeline lies there, its clusters need not"
        yield refuse("connection", wrong, todo)


def connection_is_of_the_partition(connection: str, cluster_region: str) -> Mistakes:
    partition = regions.lookup_region(cluster_region).partition
    if connection_id(connection).partition != partition:
        wrong = f"outside partition {partition} of {cluster_region}"
        yield refuse("connection", wrong, "make one there: no role reaches across partitions")


def waves_stand_together(stages: tuple[Stage, ...]) -> Mistakes:
    last: dict[str, int] = {}
    for number, stage in enumerate(stages):
        if stage.wave is None:
            continue
        if last.get(stage.wave, number - 1) != number - 1:
            wrong = f"parted from stages.{last[stage.wave]} of the same wave"
            todo = "let them follow each other: a wave is deployed as one"
            yield refuse(f"stages.{number}.wave", wrong, todo)
        last[stage.wave] = number


def stages_are_there(stages: tuple[Stage, ...]) -> Mistakes:
    if not stages:
        todo = "add one, such as {name: prod} for the cluster of this file"
        yield refuse("stages", "no stage to deploy", todo, got="")


def pipeline_has_room(stages: tuple[Stage, ...]) -> Mistakes:
    room = codepipeline.PIPELINE_STAGES - len(codepipeline.OWN_STAGES)
    waves = len(dict.fromkeys(stage.wave or stage.name for stage in stages))
    if waves > room:
        wrong = f"{waves} waves, and a pipeline has room for {room}"
        yield refuse("stages", wrong, "write the same wave: for several stages", got="")


def stages_have_names_of_their_own(stages: tuple[Stage, ...]) -> Mistakes:
    waves = {stage.wave for stage in stages}
    for number, stage in enumerate(stages):
        for key, name in (("name", stage.name), ("wave", stage.wave)):
            if name in codepipeline.OWN_STAGES:
                wrong = "the name of a stage that each pipeline has"
                yield refuse(f"stages.{number}.{key}", wrong, "choose another")
        if stage.wave is None and stage.name in waves:
            wrong = "the name of a wave too"
            yield refuse(f"stages.{number}.name", wrong, "choose another")


def stages_deploy_a_file_each(stages: tuple[Stage, ...]) -> Mistakes:
    seen: dict[str | None, int] = {}
    for number, stage in enumerate(stages):
        if stage.cluster in seen:
            first = f"stages.{seen[stage.cluster]}"
            if stage.cluster is None:
                wrong = f"this file's cluster, which {first} deploys already"
                yield refuse(f"stages.{number}", wrong, "add cluster: with another file", got="")
            else:
                wrong = f"the cluster of {first} too"
                yield refuse(f"stages.{number}.cluster", wrong, "keep one of them")
        seen.setdefault(stage.cluster, number)


def own_stage_states_what_the_file_does(
    stages: tuple[Stage, ...], cluster_account: str | None, cluster_region: str
) -> Mistakes:
    for number, stage in enumerate(stages):
        if stage.cluster is not None:
            continue
        at = f"stages.{number}"
        if cluster_account is None:
            wrong = "deploys this file, which states no account"
            yield refuse(at, wrong, "write account: beside region:, at the top", got="")
        elif stage.account not in (None, cluster_account):
            todo = f"this file says {cluster_account}; leave it out, or add cluster:"
            yield refuse(f"{at}.account", "not the account of this file", todo)
        if stage.region not in (None, cluster_region):
            todo = f"this file says {cluster_region}; leave it out, or add cluster:"
            yield refuse(f"{at}.region", "not the Region of this file", todo)
