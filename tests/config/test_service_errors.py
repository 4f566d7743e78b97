"""Mistakes in the replicas and queues of services."""

import pytest

from ultrascale import config
from ultrascale.config.services import ServiceJob


@pytest.mark.parametrize(
    ("image", "server", "expected"),
    [
        ("public.ecr.aws/deep-learning-containers/vllm:server-cuda-v2.3", None, "vllm"),
        ("docker.io/vllm/vllm-openai:v0.33.0", None, "vllm"),
        ("docker.io/example/answers:1", None, "other"),
        ("docker.io/example/answers:1", "vllm", "vllm"),
        ("docker.io/vllm/vllm-openai:v0.33.0", "other", "other"),
        (None, None, "other"),
    ],
)
def test_a_server_is_known_by_its_image_unless_it_is_named(
    image: str | None, server: config.Server | None, expected: str
) -> None:
    assert config.server_of(ServiceJob(image=image, server=server)) == expected
