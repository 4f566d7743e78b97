"""The flow from pre-training to serving: each step reads the folder that the one before wrote."""

from collections.abc import Iterator

from tests.support.folders import ROOT
from tests.support.jobs import prepared

CLUSTER = ROOT / "clusters" / "post-training.yaml"
READS = ("--model_name_or_path", "--model")
WRITES = ("--export", "--output_dir")


def words(step: str) -> Iterator[str]:
    """Yield the words of the containers of a step, as they are sent."""
    for item in prepared(CLUSTER, ROOT / f"jobs/flow-{step}.yaml").objects:
        text = str(item)
        yield from (word.strip("'\"[],{}") for word in text.replace("\\n", " ").split())


def folders(step: str, options: tuple[str, ...]) -> set[str]:
    pairs = (word.partition("=") for word in words(step))
    return {value for name, _, value in pairs if name in options and value.startswith("/")}


def test_each_step_reads_what_the_one_before_wrote() -> None:
    steps = ("pretrain", "sft", "grpo")
    written = {step: folders(step, WRITES) for step in steps}

    assert written == {step: {f"/models/chat/{step}"} for step in steps}
    assert folders("sft", READS) == written["pretrain"]
    assert folders("grpo", READS) == written["sft"]
    assert folders("evaluate", READS) == written["grpo"]
    assert written["grpo"] <= {*words("serve")}
