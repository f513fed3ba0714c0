"""Schedules of CronJobs: whether one can be understood, and if not, why."""

from __future__ import annotations

_FIELDS = (("minute", 0, 59), ("hour", 0, 23), ("day", 1, 31), ("month", 1, 12), ("weekday", 0, 6))
_NAMES = {
    "month": {
        name: index + 1
        for index, name in enumerate(
            ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
        )
    },
    "weekday": {name: index for index, name in enumerate(["sun", "mon", "tue", "wed", "thu", "fri", "sat"])},
}
_INT64_MAX = 2**63 - 1
_INT64_DIGITS = len(str(_INT64_MAX))
_DESCRIPTORS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")


def schedule_problem(schedule: str) -> str | None:
    """Problems of a schedule, in the words of the parser that Kubernetes uses; None if nothing is."""
    text = schedule
    if text.startswith(("TZ=", "CRON_TZ=")):
        text = text.partition(" ")[2].strip()
    if text.startswith("@"):
        if text in _DESCRIPTORS or text.startswith("@every "):
            return None
        return f"unrecognized descriptor: {text}"
    fields = text.split()
    if len(fields) != 5:
        return f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]"
    for field, (name, low, high) in zip(fields, _FIELDS, strict=True):
        for part in field.split(","):
            if problem := _part_problem(part, name, low, high):
                return problem
    return None


def _part_problem(part: str, name: str, low: int, high: int) -> str | None:
    span, *step = part.split("/")
    ends = span.split("-")
    if len(ends) > 2:
        return f"too many hyphens: {part}"
    if len(step) > 1:
        return f"too many slashes: {part}"
    bounds = [low, high]
    if ends[0] not in ("*", "?"):
        numbers = [_number(end, name) for end in ends]
        for number in numbers:
            if isinstance(number, str):
                return number
        found = [number for number in numbers if isinstance(number, int)]
        bounds = [found[0], found[-1] if len(found) > 1 or not step else high]
    if step and isinstance(size := _number(step[0], ""), str):
        return size
    if bounds[0] < low:
        return f"beginning of range ({bounds[0]}) below minimum ({low}): {part}"
    if bounds[1] > high:
        return f"end of range ({bounds[1]}) above maximum ({high}): {part}"
    if bounds[0] > bounds[1]:
        return f"beginning of range ({bounds[0]}) beyond end of range ({bounds[1]}): {part}"
    if step and not step[0].strip("0"):
        return f"step of range should be a positive number: {part}"
    return None


def _number(text: str, name: str) -> int | str:
    known = _NAMES.get(name, {}).get(text.lower())
    if known is not None:
        return known
    if text.isascii() and text.isdigit():
        digits = text.lstrip("0") or "0"
        if len(digits) > _INT64_DIGITS or int(digits) > _INT64_MAX:
            return f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": value out of range'
        return int(digits)
    return f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax'
