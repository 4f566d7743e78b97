"""A job in a chart is the job that `ultrascale submit` sends."""

from pathlib import Path

import cdk8s
import pytest
import yaml

from tests.support.folders import ROOT
from ultrascale.jobs import prepare
from ultrascale_k8s.jobs import JobChart


@pytest.mark.parametrize("name", ["bert-pretrain", "tensorboard"])
def test_a_chart_holds_exactly_what_would_be_sent(tmp_path: Path, name: str) -> None:
    cluster = ROOT / "clusters" / "trainium-bert.yaml"
    job = prepare(cluster, ROOT / "jobs" / f"{name}.yaml", account="111122223333")
    app = cdk8s.App(outdir=str(tmp_path))

    JobChart(app, name, job=job)
    app.synth()

    (file,) = tmp_path.iterdir()
    assert [*yaml.safe_load_all(file.read_text())] == [*job.objects]
