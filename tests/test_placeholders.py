"""Placeholders: a volume that keeps one mounts nothing, a script that loses one is another."""

from k8s import define_charts
from stacks._placeholders import fill
from tests.assembly import ROOT
from ultrascale import plan

VALUES = {"${FSX_FAST_ID}": "fs-0123456789abcdef0", "${BUCKET_DATASETS}": "datasets-1x2y"}


def test_a_volumes_handle_keeps_its_ending() -> None:
    volume = {"spec": {"csi": {"volumeHandle": "${FSX_FAST_ID}-training-data"}}}

    assert fill(volume, VALUES) == {
        "spec": {"csi": {"volumeHandle": "fs-0123456789abcdef0-training-data"}}
    }


def test_variables_of_a_script_are_left_to_its_shell() -> None:
    script = {"command": ["sh", "-c", "echo ${HOME} $BUCKET_DATASETS ${BUCKET_DATASETS}"]}

    assert fill(script, VALUES) == {
        "command": ["sh", "-c", "echo ${HOME} $BUCKET_DATASETS datasets-1x2y"]
    }


def test_every_volume_of_the_hybrid_cluster_waits_for_what_its_storage_tells() -> None:
    cluster = plan.load(ROOT / "clusters" / "hybrid-hyperpod.yaml")
    told = {word for each in cluster.lustre for word in (each.file_system_id, each.dns_name)}
    told |= {each.mount_name for each in cluster.lustre}
    told |= {each.bucket_name for each in cluster.buckets if each.access != "none"}
    charts = {chart.name: chart for chart in define_charts(cluster).all}
    names = ["lustre-volumes", "bucket-volumes", "team-lustre-volumes", "team-bucket-volumes"]

    written = [manifest for name in names for manifest in charts[name].manifests]

    assert len(written) == 2 * len(cluster.volumes)
    assert "${" not in str([fill(each, dict.fromkeys(told, "known")) for each in written])
    assert all(placeholder in str(written) for placeholder in told)
