"""Schemas of the kinds that run pods: Job, CronJob, JobFlow and JobTemplate.

Source: https://github.com/volcano-sh/volcano/tree/v1.15.1/config/crd
"""

from ultrascale_k8s.volcano.scheduling_schemas import network_topology, queue_name
from ultrascale_k8s.volcano.schema import (
    DNS_LABEL_PATTERN,
    DNS_NAME_PATTERN,
    Schema,
    anything,
    array,
    boolean,
    integer,
    mapping,
    obj,
    resource,
    string,
)

_JOB_EVENTS = (
    "*",
    "PodPending",
    "PodRunning",
    "PodFailed",
    "PodEvicted",
    "Unknown",
    "TaskCompleted",
    "TaskFailed",
    "OutOfSync",
    "CommandIssued",
    "JobUpdated",
)


def _policies() -> Schema:
    return array(
        obj(
            {
                "event": string(enum=_JOB_EVENTS),
                "events": array(string(enum=_JOB_EVENTS)),
                "exitCode": integer(),
                "action": string(),
                "timeout": string(),
            }
        )
    )


def _pod_template() -> Schema:
    spec = obj({"containers": array(anything())}, required=["containers"])
    return obj({"metadata": anything(), "spec": spec})


def _task() -> Schema:
    partition_policy = obj(
        {
            "totalPartitions": integer(minimum=1),
            "partitionSize": integer(minimum=1),
            "minPartitions": integer(minimum=0, default=0),
            "networkTopology": network_topology(),
        },
        required=["partitionSize", "totalPartitions"],
    )
    numa = ["none", "best-effort", "restricted", "single-numa-node"]
    return obj(
        {
            "name": string(max_length=63, pattern=DNS_LABEL_PATTERN),
            "replicas": integer(minimum=0),
            "minAvailable": integer(minimum=0),
            "maxRetry": integer(minimum=0),
            "template": _pod_template(),
            "policies": _policies(),
            "dependsOn": obj({"name": array(string()), "iteration": string()}),
            "topologyPolicy": string(enum=numa),
            "partitionPolicy": partition_policy,
        }
    )


def _job_spec() -> Schema:
    volume = obj(
        {
            "mountPath": string(min_length=1, pattern="^[^:]+$"),
            "volumeClaimName": string(max_length=253),
            "volumeClaim": anything(),
        },
        required=["mountPath"],
    )
    return obj(
        {
            "schedulerName": string(max_length=63),
            "queue": queue_name(),
            "minAvailable": integer(minimum=0),
            "minSuccess": integer(minimum=1),
            "maxRetry": integer(minimum=0, default=3),
            "ttlSecondsAfterFinished": integer(minimum=0),
            "priorityClassName": string(max_length=253, pattern=DNS_NAME_PATTERN),
            "runningEstimate": string(),
            "networkTopology": network_topology(),
            "plugins": mapping(array(string())),
            "policies": _policies(),
            "volumes": array(volume),
            "tasks": array(_task(), min_items=1),
        }
    )


def job() -> Schema:
    """Return the schema of a Job, and of a JobTemplate, whose spec is the same."""
    return resource(_job_spec())


def cron_job() -> Schema:
    """Return the schema of a CronJob."""
    return resource(
        obj(
            {
                "schedule": string(),
                "timeZone": string(),
                "suspend": boolean(default=False),
                "concurrencyPolicy": string(default="Allow", enum=["Allow", "Forbid", "Replace"]),
                "startingDeadlineSeconds": integer(minimum=0, bits=64),
                "successfulJobsHistoryLimit": integer(minimum=0, default=3),
                "failedJobsHistoryLimit": integer(minimum=0, default=1),
                "jobTemplate": obj({"metadata": anything(), "spec": _job_spec()}),
            },
            required=["jobTemplate", "schedule"],
        )
    )


def job_flow() -> Schema:
    """Return the schema of a JobFlow: JobTemplates that run in an order."""
    port = integer(minimum=0, maximum=65535, bits=None)
    task_name = string(max_length=253)
    header = obj({"name": string(), "value": string()}, required=["name", "value"])
    http_get = {"path": string(), "port": port, "taskName": task_name, "httpHeader": header}
    probe = obj(
        {
            "httpGetList": array(obj(http_get)),
            "tcpSocketList": array(obj({"port": port, "taskName": task_name}, required=["port"])),
            "taskStatusList": array(obj({"phase": string(max_length=63), "taskName": task_name})),
        }
    )
    flow = obj(
        {
            "name": string(min_length=1),
            "dependsOn": obj({"targets": array(string()), "probe": probe}),
            "patch": obj({"jobSpec": _job_spec()}),
        },
        required=["name"],
    )
    retain_policy = string(enum=["retain", "delete"])
    return resource(obj({"flows": array(flow), "jobRetainPolicy": retain_policy}))
