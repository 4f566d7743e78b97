"""Tables of `ultrascale summary`: stacks, pools, images and findings of a cluster file."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.box import SIMPLE

from ultrascale.cli.output import say
from ultrascale.cli.screen import Table, screen
from ultrascale.documents import mapping, objects, sequence
from ultrascale.errors import UltrascaleError
from ultrascale.plan import ClusterPlan, PoolPlan, names
from ultrascale.plan.model import ImagesPlan, TeamPlan
from ultrascale.synthesis import read_json

_REPORT = "validation-report.json"


def print_summary(
    plan: ClusterPlan, *, stacks: Mapping[str, Path], assembly: Path, manifests: Path
) -> None:
    """Print stacks, pools, teams, images, manifests and findings.

    Args:
        plan: The cluster.
        stacks: The template of each of its stacks.
        assembly: Folder that `cdk synth` wrote.
        manifests: Folder of the manifests.

    Raises:
        UltrascaleError: The assembly was not validated, or there are no manifests.
    """
    console = screen()
    console.print(_stacks(plan.name, plan.region, stacks))
    console.print(_pools(plan.all_pools))
    if plan.teams:
        console.print(_teams(plan.teams))
    if plan.images.repositories:
        console.print(_images(plan.images))
    if plan.images.builds:
        say(f"images are built by: {names.build_command(plan.name, plan.region)}")
    files = sorted(manifests.glob("*.k8s.yaml"))
    if not files:
        raise UltrascaleError(f"{manifests}: no manifests here; run `ultrascale synth FILE`")
    say(f"{len(files)} manifests in {manifests}/: " + ", ".join(f.name for f in files))
    findings, acknowledged = _findings(assembly)
    say(f"{findings} findings, {acknowledged} acknowledged with a reason")


def _stacks(cluster_name: str, region: str, stacks: Mapping[str, Path]) -> Table:
    title = f"{cluster_name} in {region}"
    table = Table("stack", "resources", title=title, title_justify="left", box=SIMPLE)
    for name, template in stacks.items():
        table.add_row(name, str(len(mapping(read_json(template), "Resources"))))
    return table


def _pools(pools: Sequence[PoolPlan]) -> Table:
    per_node = ("accelerators/node", "EFA interfaces/node")
    columns = ("pool", "instance types", "provisioner", "purchase", "nodes")
    table = Table(*columns, *per_node, box=SIMPLE)
    table.columns[0].min_width = max(len(pool.name) for pool in pools)
    for pool in pools:
        accelerators = (
            f"{pool.accelerators_per_node} {pool.accelerator}" if pool.accelerator else "none"
        )
        table.add_row(
            pool.name,
            ", ".join(pool.instance_types),
            pool.provisioner,
            pool.purchase,
            _nodes(pool),
            accelerators,
            f"none ({pool.without_efa})" if pool.without_efa else str(pool.efa_interfaces),
        )
    return table


def _teams(teams: Sequence[TeamPlan]) -> Table:
    table = Table("team", "nodes of its own", "weight", "lends", "borrows", "namespace", box=SIMPLE)
    for team in teams:
        borrowed = team.borrow_limit_percent
        table.add_row(
            team.name,
            ", ".join(f"{count} {name}" for name, count in team.nodes.items()) or "none",
            str(team.fair_share_weight),
            "no" if team.sharing == "DontLend" else "yes",
            "no" if borrowed is None else f"up to {borrowed} % more",
            team.namespace,
        )
    return table


def _images(images: ImagesPlan) -> Table:
    table = Table("repository", "image", box=SIMPLE)
    builds = {build.repository: build for build in images.builds}
    for name in images.repositories:
        build = builds.get(name)
        table.add_row(
            name,
            f"{build.source} for {build.architecture}, tag {build.tag}"
            if build
            else f"not built: {images.unbuilt[name]}",
        )
    return table


def _nodes(pool: PoolPlan) -> str:
    """Return the number of nodes of a pool, and the window of its Capacity Block."""
    if pool.window is None:
        if pool.initial_nodes == pool.max_nodes:
            return str(pool.max_nodes)
        on_demand = f", {pool.fallback_nodes} On-Demand" if pool.fallback_nodes else ""
        return f"{pool.min_nodes} to {pool.max_nodes}{on_demand}"
    count = f"up to {pool.max_nodes}" if pool.sized_by == "provisioner" else str(pool.max_nodes)
    starts, until = (
        f"{at:%Y-%m-%d %H:%M}" for at in (pool.window.starts, pool.window.usable_until)
    )
    return f"{count} from {starts} until {until} UTC"


def _findings(assembly: Path) -> tuple[int, int]:
    report = assembly / _REPORT
    if not report.exists():
        raise UltrascaleError(f"{report}: missing; run `ultrascale synth`, which validates")
    plugins = objects(read_json(report), "pluginReports")
    count = {
        key: sum(len(sequence(plugin, key)) for plugin in plugins)
        for key in ("violations", "suppressedViolations")
    }
    return count["violations"], count["suppressedViolations"]
