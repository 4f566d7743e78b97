"""Decisions of KEDA and of the autoscaler of Kubernetes, by their documented arithmetic.

KEDA reads a metric of each ready pod, and hands on the sum or the average of those that answer;
where it fails too often, an amount by which the replicas stay. Of an amount for each replica
(`AverageValue`) the autoscaler takes as many as share it; else (`Value`) it multiplies the ready
pods by its ratio to the target. Either way it keeps to its behavior.

Sources:
    https://github.com/kedacore/keda/blob/v2.20.2/pkg/scalers/metrics_api_scaler.go
    https://github.com/kedacore/keda/blob/v2.20.2/pkg/fallback/fallback.go
    https://github.com/kubernetes/kubernetes/blob/v1.35.0/pkg/controller/podautoscaler/replica_calculator.go
    https://github.com/kubernetes/kubernetes/blob/v1.35.0/pkg/controller/podautoscaler/horizontal.go
    https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ultrascale.lambdas.serving import samples

TOLERANCE = 0.1
SYNC_SECONDS = 15


def series(text: str, name: str) -> float:
    """Return the first sample of a metric, as KEDA takes it.

    Raises:
        LookupError: There is none.
    """
    for sample in samples(text, {name}):
        return sample.value
    raise LookupError(f"metric '{name}' not found")


@dataclass
class Autoscaler:
    """One ScaledObject and the autoscaler that KEDA makes of it."""

    spec: Mapping[str, Any]  # Spec of the ScaledObject
    replicas: int  # Replicas of its target
    now: int = 0  # Seconds since it began
    _failures: dict[int, int] = field(default_factory=dict[int, int])
    _wanted: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    _events: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    def sync(self, pods: Sequence[str | None]) -> int:
        """Return the replicas after one look at the metrics of the ready pods.

        Args:
            pods: What each ready pod answers to a GET of its metrics; None: nothing.
        """
        self.now += SYNC_SECONDS
        found = [self._wanted_by(index, pods) for index in range(len(self.spec["triggers"]))]
        known = [each for each in found if each is not None]
        wanted = max(known, default=self.replicas)
        if len(known) < len(found) and wanted < self.replicas:
            wanted = self.replicas
        self.replicas = self._within_behavior(wanted)
        return self.replicas

    def _wanted_by(self, index: int, pods: Sequence[str | None]) -> int | None:
        trigger = self.spec["triggers"][index]
        target = float(trigger["metadata"]["targetValue"])
        amount = self._amount(index, trigger, target, pods)
        if amount is None:
            return None
        shared = trigger["metricType"] == "AverageValue"
        ratio = amount / (target * (self.replicas if shared else 1))
        wanted = amount / target if shared else ratio * len(pods)
        return self.replicas if abs(ratio - 1) <= TOLERANCE else math.ceil(wanted)

    def _amount(
        self, index: int, trigger: Mapping[str, Any], target: float, pods: Sequence[str | None]
    ) -> float | None:
        found: list[float] = []
        metadata = trigger["metadata"]
        for text in pods:
            try:
                found.append(series(text or "", metadata["valueLocation"]))
            except LookupError:
                continue
        if found:
            self._failures[index] = 0
            total = math.fsum(found)
            return total if metadata["aggregationType"] == "sum" else total / len(found)
        fallback = self.spec["fallback"]
        self._failures[index] = self._failures.get(index, 0) + 1
        if self._failures[index] <= fallback["failureThreshold"]:
            return None
        assert fallback["behavior"] == "currentReplicasIfHigher"
        replicas = max(self.replicas, fallback["replicas"])
        if trigger["metricType"] == "Value":
            return target * replicas / len(pods) if pods else None
        return target * replicas

    def _within_behavior(self, wanted: int) -> int:
        """Return what the limits, the time to wait and the speed leave of ``wanted``."""
        behavior = self.spec["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
        wanted = min(max(wanted, self.spec["minReplicaCount"]), self.spec["maxReplicaCount"])
        self._wanted.append((self.now, wanted))
        up, down = behavior["scaleUp"], behavior["scaleDown"]
        least = min(self._since(up["stabilizationWindowSeconds"]), default=wanted)
        most = max(self._since(down["stabilizationWindowSeconds"]), default=wanted)
        steady = min(max(self.replicas, min(least, wanted)), max(most, wanted))
        if steady > self.replicas:
            result = min(steady, self._bound(up, 1))
        elif steady < self.replicas:
            result = max(steady, self._bound(down, -1))
        else:
            return self.replicas
        if result != self.replicas:
            self._events.append((self.now, result - self.replicas))
        return result

    def _since(self, seconds: int) -> list[int]:
        return [wanted for at, wanted in self._wanted if at > self.now - seconds]

    def _bound(self, rules: Mapping[str, Any], sign: int) -> int:
        """Return the replicas that the fastest of the policies leaves."""
        bounds: list[int] = []
        for policy in rules["policies"]:
            recent = [
                change for at, change in self._events if at > self.now - policy["periodSeconds"]
            ]
            done = sum(change for change in recent if change * sign > 0)
            start = self.replicas - done
            if policy["type"] == "Pods":
                bounds.append(start + sign * policy["value"])
            elif sign > 0:
                bounds.append(math.ceil(start * (1 + policy["value"] / 100)))
            else:
                bounds.append(int(start * (1 - policy["value"] / 100)))
        assert rules["selectPolicy"] == "Max"
        return max(bounds) if sign > 0 else min(bounds)
