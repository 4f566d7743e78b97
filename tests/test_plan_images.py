"""What the images of a cluster are called, and which are built."""

import pytest

from ultrascale.plan.images import image_uri


@pytest.mark.parametrize(
    ("region", "registry"),
    [
        ("us-west-2", "111122223333.dkr.ecr.us-west-2.amazonaws.com"),
        ("us-gov-west-1", "111122223333.dkr.ecr.us-gov-west-1.amazonaws.com"),
        ("cn-north-1", "111122223333.dkr.ecr.cn-north-1.amazonaws.com.cn"),
    ],
)
def test_job_pulls_from_the_registry_of_its_cluster(region: str, registry: str) -> None:
    uri = image_uri(
        account="111122223333",
        region=region,
        cluster="research",
        repository="bert-pretrain",
        tag="0123456789ab",
    )

    assert uri == f"{registry}/research/bert-pretrain:0123456789ab"
