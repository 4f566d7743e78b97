"""Reference backend: records requests for jobs in PostgreSQL, and submits each exactly once.

A request and what is to be sent for it are committed together. Workers of every replica take such
entries from the database, send them to Kubernetes under a name that follows from the request, and
record that they did. Whatever dies in between, the next attempt finds what the last one made.
"""
