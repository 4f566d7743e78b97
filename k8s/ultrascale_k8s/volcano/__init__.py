"""Volcano, the gang scheduler: its kinds, its three programs and its webhooks.

`VolcanoCrdsChart` is applied first and `VolcanoWebhooksChart` last, after `VolcanoChart` and the
queues, so that the first deploy never waits for a webhook that does not run yet.
"""
