"""Metrics for Prometheus."""

from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from ultrascale_backend import store
from ultrascale_backend.database import Database
from ultrascale_backend.errors import UnavailableError
from ultrascale_backend.records import ACTIVE

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class _Backlog(Collector):
    """Collector of the backlog of requests, read from the database at each scrape."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def describe(self) -> Iterable[Metric]:
        """Return nothing, so that the registration does not query the database."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Yield the counts of all replicas; nothing while the database is out of reach."""
        try:
            counts, oldest = self._database.run(store.backlog)
        except UnavailableError:
            return
        requests = GaugeMetricFamily(
            "ultrascale_backend_requests", "Requests that have not ended.", labels=["state"]
        )
        for state in ACTIVE:
            requests.add_metric([state], counts.get(state, 0))
        yield requests
        yield GaugeMetricFamily(
            "ultrascale_backend_outbox_oldest_seconds",
            "Age of the oldest request for which something is to be done in the cluster.",
            value=oldest,
        )


class Metrics:
    """Metrics of a process."""

    def __init__(self, database: Database) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_Backlog(database))
        # Answers, by method and status
        self.http = Counter(
            "ultrascale_backend_http_requests",
            "Answers over HTTP.",
            ["method", "status"],
            registry=self._registry,
        )
        # Time to answer, by method
        self.seconds = Histogram(
            "ultrascale_backend_http_seconds",
            "Time to answer over HTTP.",
            ["method"],
            registry=self._registry,
        )
        # Outcomes of the outbox's entries in the cluster
        self.outbox = Counter(
            "ultrascale_backend_outbox_entries",
            "What was done in the cluster, by its outcome.",
            ["outcome"],
            registry=self._registry,
        )

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self._registry)
