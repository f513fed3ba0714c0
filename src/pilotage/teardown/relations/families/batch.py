"""Jobs and CronJobs."""

from __future__ import annotations

from pilotage.teardown.relations.families.pods import workload_rows

ROWS = (
    *workload_rows("batch", "Job", "spec.template.spec"),
    *workload_rows("batch", "CronJob", "spec.jobTemplate.spec.template.spec"),
)
