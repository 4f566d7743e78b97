"""Functions reach the API server by what EKS says of it now."""

import boto3
import pytest

from tests.support.fake_aws import FakeAws
from ultrascale.lambdas.kubernetes import ApiServer, look_up


def test_the_authority_is_the_one_that_the_cluster_has_now(monkeypatch: pytest.MonkeyPatch) -> None:
    aws = FakeAws(
        answers={
            "eks:DescribeCluster": {
                "cluster": {
                    "name": "research",
                    "endpoint": "https://0123.example",
                    "certificateAuthority": {"data": "bmV3"},
                }
            }
        }
    )
    monkeypatch.setattr(boto3, "client", aws.client)

    assert look_up("research") == ApiServer(
        endpoint="https://0123.example", certificate_authority="bmV3"
    )
    assert aws.parameters("eks:DescribeCluster") == [{"name": "research"}]
