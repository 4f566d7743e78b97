"""Retention times, in days."""

# A quarter: long enough to look back after an incident, audit logs of a large fleet are not cheap.
LOG_DAYS = 90
# Events that CloudWatch has made metrics of, which it keeps for 15 months.
METRIC_EVENT_DAYS = 7
# Backups of file systems: a user misses an overwritten or deleted file within a week.
BACKUP_DAYS = 7
# Image layers without a tag: those of failed or replaced pushes.
UNTAGGED_IMAGE_DAYS = 14
# Overwritten or deleted versions of an object. Each is a checkpoint that is paid for.
OBJECT_VERSION_DAYS = 7
# Parts of an upload that ended with its job: no list of objects shows them, every bill does.
UPLOAD_DAYS = 7
