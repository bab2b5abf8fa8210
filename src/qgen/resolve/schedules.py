"""Schedules: when they run, of which job, with which payload."""

from __future__ import annotations

from collections.abc import Iterator

from qgen.diagnostics.catalogue import keys, values
from qgen.diagnostics.catalogue import relations as codes
from qgen.resolve.cron import wrong_part
from qgen.resolve.draft import Draft
from qgen.resolve.payload import constraints, full, kind_of, refuse
from qgen.resolve.types import Unfit, fit
from qgen.resolve.units import seconds
from qgen.spec.finding import Finding
from qgen.spec.messages import shown
from qgen.spec.shape import Schedule
from qgen.spec.spans import Path
from qgen.spec.suggest import nearest


def check(draft: Draft) -> Iterator[Finding]:
    """Each schedule."""
    for name, schedule in draft.spec.schedules.items():
        yield from times(("schedules", name), schedule)
        if schedule.job in draft.jobs:
            yield from payload(draft, ("schedules", name), schedule)
            continue
        near = nearest(schedule.job, draft.jobs)
        yield Finding(
            codes.UNKNOWN_JOB,
            ("schedules", name, "job"),
            f"there is no job {shown(schedule.job)}.",
            f"did you mean `{near}`?" if near else "name a job of this spec",
            unless=(("jobs", schedule.job),),
        )


def times(at: Path, schedule: Schedule) -> Iterator[Finding]:
    """Exactly one of cron and every, in its range."""
    if schedule.cron and schedule.every:
        yield Finding(
            codes.CRON_WITH_EVERY,
            (*at, "every"),
            "`cron` and `every` stand in one schedule.",
            "keep one of them",
            at="key",
            also=(((*at, "cron"), "`cron`"),),
        )
    elif not schedule.cron and not schedule.every:
        message = f"[{'.'.join(map(str, at))}] has neither `cron` nor `every`."
        write = 'write cron = "30 7 * * 1-5" or every = "15m"'
        either = ((*at, "cron"), (*at, "every"))
        yield Finding(keys.MISSING_KEY, at, message, write, at="key", unless=either)
    if schedule.every and seconds(schedule.every) < 1:
        yield Finding(
            codes.EVERY_TOO_SHORT,
            (*at, "every"),
            f"`every` is {schedule.every}, less than one second.",
            'write "1s" or more',
        )
    if schedule.every and "timezone" in schedule.model_fields_set:
        yield Finding(
            codes.ZONE_OF_EVERY,
            (*at, "timezone"),
            "`timezone` has no effect on `every`, which counts real time.",
            "leave it out, or write a cron line",
            at="key",
            also=(((*at, "every"), "`every`"),),
        )
    wrong = wrong_part(schedule.cron) if schedule.cron else None
    if wrong:
        message = f"{wrong} of this cron line is not in its range."
        write = "mend the field: numbers, *, lists 1,2, ranges 1-5, steps */15"
        if wrong.endswith("has"):
            message = f"this cron line never runs: {wrong}."
            write = "name a day that one of its months has"
        yield Finding(values.NOT_CRON, (*at, "cron"), message, write)
    if "max_missed" in schedule.model_fields_set and schedule.missed != "all":
        yield Finding(
            codes.MAX_MISSED,
            (*at, "max_missed"),
            '`max_missed` has no effect unless `missed` is "all".',
            'write missed = "all", or leave it out',
            at="key",
            also=(((*at, "missed"), "`missed`"),),
        )


def payload(draft: Draft, at: Path, schedule: Schedule) -> Iterator[Finding]:
    """Its values against the job's fields."""
    job = schedule.job
    fields = {name: full(each) for name, each in draft.jobs[job].payload.items()}
    where: Path = (*at, "payload")
    also = ((("jobs", job, "payload"), f"the payload of `{job}`"),)
    for name, field in sorted(fields.items()):
        given = name in schedule.payload or "default" in field.model_fields_set
        if not given and not field.type.endswith("?"):
            message = f"the payload lacks `{name}`, which `{job}` needs."
            write = f"add {name} to the payload of the schedule"
            yield Finding(
                codes.SCHEDULE_PAYLOAD,
                where,
                message,
                write,
                at="key",
                also=also,
                unless=(("jobs", job, "payload", name), (*where, name)),
            )
    for name, value in schedule.payload.items():
        path: Path = (*where, name)
        unless: tuple[Path, ...] = (("jobs", job, "payload", name),)
        if name not in fields:
            near = nearest(name, fields)
            message = f"`{job}` has no field `{name}`."
            write = f"did you mean `{near}`?" if near else "leave it out"
            yield Finding(
                codes.SCHEDULE_PAYLOAD,
                path,
                message,
                write,
                at="key",
                also=also,
                unless=unless,
            )
            continue
        kind, limits = kind_of(fields[name]), constraints(fields[name])
        try:
            refuse(fit(value, kind), kind, limits)
        except Unfit as unfit:
            message = f"`{name}` does not fit the field of `{job}`."
            write = f"write {unfit}"
            yield Finding(
                codes.SCHEDULE_PAYLOAD, path, message, write, also=also, unless=unless
            )
