"""Reference backend: records requests for jobs in PostgreSQL, and submits each exactly once.

One transaction commits a request and the objects to send for it. Workers of every replica take
these entries from the database, send the objects to Kubernetes under a name that follows from the
request, and record the submission. If a process dies in between, the next attempt finds the objects
of the previous attempt.
"""
