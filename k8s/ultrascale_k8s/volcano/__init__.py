"""Volcano, the gang scheduler: its kinds, its three programs, its queues' webhooks.

`VolcanoCrdsChart` is applied first and `VolcanoWebhooksChart` last, after `VolcanoChart` and the
queues (`k8s.queues`), so that the first deploy never waits for a webhook that does not run yet.
"""
