"""An AWS account with a cluster in it that keeps its state, for tests of its end.

`account` models stacks, a few services and an API server as AWS and Kubernetes document them; each
deletion takes one more look, and a test says what fails and where the process is killed. Requests
and answers have to fit botocore's models, and what is found by tags was held against moto
(`tests/teardown/test_in_moto.py`). `cluster` fills it, `foreign` adds what others have there.
"""
