"""Jobs and CronJobs."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from zoneinfo import available_timezones

from pilotage_harbor.apimachinery.field_errors import immutable, invalid, nonnegative, not_supported, required
from pilotage_harbor.apimachinery.metadata_rules import selector_matches, selector_problems
from pilotage_harbor.builtin.base import MAX_INT32, Builtin, kind, path
from pilotage_harbor.builtin.cells import ago, at, number, selector, template_columns, text
from pilotage_harbor.builtin.cron import schedule_problem
from pilotage_harbor.builtin.pod_defaults import fill_template
from pilotage_harbor.builtin.pod_rules import template_problems
from pilotage_harbor.builtin.workload_rules import mismatch, name_warnings
from pilotage_harbor.kinds import TableColumn
from pilotage_harbor.kinds.table import AGE, NAME, duration, since

if TYPE_CHECKING:
    from pilotage_harbor.apimachinery.errors import StatusCause
    from pilotage_harbor.kinds import Json, Kind, View

_COUNTS = ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished")
_LABEL = "batch.kubernetes.io/"


def fill_job_spec(spec: Json) -> None:
    """Defaults that a Job and the template of a CronJob share."""
    fill_template(spec["template"])


def job_spec_problems(spec: Json, field: str) -> list[StatusCause]:
    """Problems of the spec of a Job, or of a template of Jobs."""
    problems: list[StatusCause] = []
    for name in (*_COUNTS, "backoffLimitPerIndex", "maxFailedIndexes"):
        problems += nonnegative(f"{field}.{name}", spec.get(name))
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        problems.append(required(f"{field}.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    mode = spec.get("completionMode")
    if mode not in (None, "NonIndexed", "Indexed"):
        problems.append(not_supported(f"{field}.completionMode", mode, ("NonIndexed", "Indexed")))
    if mode == "Indexed":
        if spec.get("completions") is None:
            problems.append(required(f"{field}.completions", "when completion mode is Indexed"))
        if (spec.get("parallelism") or 0) > 100000:
            why = "must be less than or equal to 100000 when completion mode is Indexed"
            problems.append(invalid(f"{field}.parallelism", spec["parallelism"], why))
    elif mode in (None, "NonIndexed"):
        for name in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if spec.get(name) is not None:
                problems.append(invalid(f"{field}.{name}", spec[name], "requires indexed completion mode"))
    replace = spec.get("podReplacementPolicy")
    supported = ("Failed",) if spec.get("podFailurePolicy") else ("Failed", "TerminatingOrFailed")
    if replace is not None and replace not in supported:
        problems.append(not_supported(f"{field}.podReplacementPolicy", replace, supported))
    problems += template_problems(spec["template"], f"{field}.template")
    return problems + _restart_problems(spec, f"{field}.template.spec.restartPolicy")


def _restart_problems(spec: Json, field: str) -> list[StatusCause]:
    policy = spec["template"]["spec"]["restartPolicy"]
    if policy == "Always":
        return [required(field, 'valid values: "OnFailure", "Never"')]
    if policy not in ("OnFailure", "Never"):
        return [not_supported(field, policy, ("OnFailure", "Never"))]
    if spec.get("podFailurePolicy") is not None and policy != "Never":
        return [invalid(field, policy, 'only "Never" is supported when podFailurePolicy is specified')]
    return []


class JobStrategy(Builtin):
    """A Job: it selects its pods by its own uid, and leaves them behind if nobody says otherwise."""

    go_type = "batch.Job"
    counts = ("spec",)
    default_propagation = "orphan"

    def fill(self, obj: Json) -> None:
        """Defaults."""
        spec = obj["spec"]
        if spec.get("completions") is None and spec.get("parallelism") is None:
            spec["completions"] = spec["parallelism"] = 1
        spec.setdefault("parallelism", 1)
        spec.setdefault("backoffLimit", 6 if spec.get("backoffLimitPerIndex") is None else MAX_INT32)
        if (found := spec["template"]["metadata"].get("labels")) and not obj["metadata"].get("labels"):
            obj["metadata"]["labels"] = dict(found)
        spec.setdefault("completionMode", "NonIndexed")
        spec.setdefault("suspend", False)
        spec.setdefault("podReplacementPolicy", "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed")
        spec.setdefault("manualSelector", False)
        for rule in path(spec, "podFailurePolicy", "rules") or ():
            for condition in rule.get("onPodConditions", ()):
                condition.setdefault("status", "True")
        fill_job_spec(spec)

    def prepare_create(self, obj: Json, view: View) -> None:
        """Make the selector, unless somebody else does."""
        super().prepare_create(obj, view)
        if obj["spec"]["manualSelector"]:
            return
        name, uid = obj["metadata"].get("name", ""), obj["metadata"].get("uid", "")
        found = obj["spec"]["template"]["metadata"].setdefault("labels", {})
        own = obj["metadata"].get("labels")
        inherited = not own or own == found
        for key, value in (("job-name", name), ("controller-uid", uid)):
            found.setdefault(key, value)
            found.setdefault(f"{_LABEL}{key}", value)
        if inherited:
            obj["metadata"]["labels"] = dict(found)
        chosen = obj["spec"].get("selector") or {}
        chosen.setdefault("matchLabels", {}).setdefault(f"{_LABEL}controller-uid", uid)
        obj["spec"]["selector"] = chosen

    def check(self, obj: Json) -> list[StatusCause]:
        """The spec, and a selector that nobody else made."""
        spec, meta = obj["spec"], obj["metadata"]
        problems: list[StatusCause] = []
        if not spec["manualSelector"] and spec.get("selector") is not None:
            own = {"controller-uid": meta.get("uid", ""), "job-name": meta.get("name", "")}
            own |= {f"{_LABEL}{key}": value for key, value in own.items()}
            if not selector_matches(spec["selector"], own):
                shown = spec["selector"] | {
                    "matchLabels": dict(sorted(spec["selector"].get("matchLabels", {}).items()))
                }
                problems.append(invalid("spec.selector", shown, "`selector` not auto-generated"))
        return problems + self._check_spec(spec)

    def _check_spec(self, spec: Json) -> list[StatusCause]:
        problems = job_spec_problems(spec, "spec")
        chosen, found = spec.get("selector"), spec["template"]["metadata"].get("labels")
        if chosen is None:
            return [*problems, required("spec.selector")]
        wrong = selector_problems(chosen, "spec.selector")
        problems += wrong
        if not wrong and not selector_matches(chosen, found):
            problems.append(mismatch("spec.template", found))
        return problems

    def check_change(self, obj: Json, old: Json) -> list[StatusCause]:
        """Most of it stays."""
        new, was = obj["spec"], old["spec"]
        problems = self._check_spec(new)
        if new.get("completionMode") != "Indexed":
            problems += immutable("spec.completions", new.get("completions"), was.get("completions"))
        elif new.get("completions") != was.get("completions") and new.get("completions") != new.get("parallelism"):
            why = "can only be modified in tandem with spec.parallelism"
            problems.append(invalid("spec.completions", new.get("completions"), why))
        problems += immutable("spec.selector", new.get("selector"), was.get("selector"))
        if _comparable(new, old) != _comparable(was, old):
            problems.append(invalid("spec.template", new["template"], "field is immutable"))
        for name in ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"):
            problems += immutable(f"spec.{name}", new.get(name), was.get(name))
        return problems

    def validate_status_update(self, obj: Json, old: Json, view: View) -> list[StatusCause]:
        """Its counts."""
        status = obj.get("status", {})
        problems: list[StatusCause] = []
        for name in ("active", "succeeded", "failed", "terminating"):
            problems += nonnegative(f"status.{name}", status.get(name))
        ready = status.get("ready")
        if ready is not None and ready > status.get("active", 0):
            problems.append(invalid("status.ready", ready, "cannot set more ready pods than active"))
        return problems

    def fields(self, obj: Json) -> dict[str, str]:
        """Fields for field selectors."""
        return {"status.successful": str(path(obj, "status", "succeeded") or 0)}

    def warnings(self, obj: Json, old: Json | None) -> list[str]:
        """A name that is no host name."""
        return name_warnings(obj, old)


def _comparable(spec: Json, old: Json) -> Json:
    """The template without what may change: where pods go, while it is suspended and never ran."""
    template: Json = spec["template"]
    status = old.get("status", {})
    if not (old["spec"].get("suspend") and not status.get("startTime") and not status.get("active")):
        return template
    free = ("nodeSelector", "tolerations", "schedulingGates", "affinity")
    pod = {name: value for name, value in template["spec"].items() if name not in free}
    pod["containers"] = [each | {"resources": {}} for each in pod.get("containers") or ()]
    return {"spec": pod}


class CronJobStrategy(Builtin):
    """A CronJob."""

    go_type = "batch.CronJob"
    counts = ("spec",)

    def fill(self, obj: Json) -> None:
        """Defaults."""
        spec = obj["spec"]
        spec.setdefault("concurrencyPolicy", "Allow")
        spec.setdefault("suspend", False)
        spec.setdefault("successfulJobsHistoryLimit", 3)
        spec.setdefault("failedJobsHistoryLimit", 1)
        fill_job_spec(spec["jobTemplate"]["spec"])

    def warnings(self, obj: Json, old: Json | None) -> list[str]:
        """A name that is no host name."""
        return name_warnings(obj, old)

    def check(self, obj: Json) -> list[StatusCause]:
        """A new one: its name must leave room for those of its Jobs."""
        problems = self._check_spec(obj["spec"], None)
        name = obj["metadata"].get("name", "")
        if len(name) > 52:
            problems.append(invalid("metadata.name", name, "must be no more than 52 characters"))
        return problems

    def check_change(self, obj: Json, old: Json) -> list[StatusCause]:
        """Any change is fine."""
        return self._check_spec(obj["spec"], old["spec"])

    def _check_spec(self, spec: Json, old: Json | None) -> list[StatusCause]:
        problems: list[StatusCause] = []
        schedule = spec.get("schedule", "")
        if not schedule:
            problems.append(required("spec.schedule"))
        else:
            if why := schedule_problem(schedule):
                problems.append(invalid("spec.schedule", schedule, why))
            if "TZ" in schedule and "TZ" not in (old or {}).get("schedule", ""):
                why = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
                problems.append(invalid("spec.schedule", schedule, why))
        problems += nonnegative("spec.startingDeadlineSeconds", spec.get("startingDeadlineSeconds"))
        if old is None or old.get("timeZone") != spec.get("timeZone"):
            problems += _zone_problems(spec.get("timeZone"))
        if spec["concurrencyPolicy"] not in ("Allow", "Forbid", "Replace"):
            policies = ("Allow", "Forbid", "Replace")
            problems.append(not_supported("spec.concurrencyPolicy", spec["concurrencyPolicy"], policies))
        template = spec["jobTemplate"]["spec"]
        problems += job_spec_problems(template, "spec.jobTemplate.spec")
        if template.get("selector") is not None:
            why = "`selector` will be auto-generated"
            problems.append(invalid("spec.jobTemplate.spec.selector", template["selector"], why))
        if template.get("manualSelector"):
            supported = ("nil", "false")
            problems.append(not_supported("spec.jobTemplate.spec.manualSelector", True, supported))
        for name in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
            problems += nonnegative(f"spec.{name}", spec.get(name))
        return problems


def _zone_problems(zone: str | None) -> list[StatusCause]:
    field = "spec.timeZone"
    if zone is None:
        return []
    if not zone:
        return [invalid(field, zone, "timeZone must be nil or non-empty string")]
    if zone.lower() == "local":
        why = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        return [invalid(field, zone, why)]
    return [] if zone in available_timezones() else [invalid(field, zone, f"unknown time zone {zone}")]


def _completions(obj: Json) -> str:
    done, wanted = path(obj, "status", "succeeded") or 0, obj["spec"].get("completions")
    if wanted is not None:
        return f"{done}/{wanted}"
    parallel = obj["spec"].get("parallelism") or 0
    return f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"


def _job_status(obj: Json) -> str:
    true = {each["type"] for each in path(obj, "status", "conditions") or () if each.get("status") == "True"}
    words = {"Complete": "Complete", "Failed": "Failed"}
    for each, word in words.items():
        if each in true:
            return word
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    for each in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if each in true:
            return each
    return "Running"


def _job_duration(obj: Json, now: float) -> str:
    start, end = path(obj, "status", "startTime"), path(obj, "status", "completionTime")
    if not start:
        return ""
    if not end:
        return since(start, now)
    return duration((datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds())


def kinds() -> list[Kind]:
    """The kinds of this family."""
    return [
        kind(
            "batch/v1",
            "jobs",
            "Job",
            JobStrategy(),
            (
                NAME,
                text("Status", _job_status),
                text("Completions", _completions),
                TableColumn("Duration", "string", _job_duration),
                AGE,
                *template_columns("spec", "template", "spec", select=lambda obj: selector(obj["spec"].get("selector"))),
            ),
            categories="all",
            subresources="status",
            selectable="status.successful",
        ),
        kind(
            "batch/v1",
            "cronjobs",
            "CronJob",
            CronJobStrategy(),
            (
                NAME,
                text("Schedule", at("spec", "schedule")),
                text("Timezone", at("spec", "timeZone", default="<none>")),
                text("Suspend", lambda obj: "True" if obj["spec"].get("suspend") else "False", type_="boolean"),
                number("Active")._replace(cell=lambda obj, _: len(path(obj, "status", "active") or ())),
                ago("Last Schedule", "status", "lastScheduleTime"),
                AGE,
                *template_columns(
                    "spec",
                    "jobTemplate",
                    "spec",
                    "template",
                    "spec",
                    select=lambda obj: selector(path(obj, "spec", "jobTemplate", "spec", "selector")),
                ),
            ),
            short="cj",
            categories="all",
            subresources="status",
        ),
    ]
