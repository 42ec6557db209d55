"""The benchmark file's [nightly] section and its calendar: which night is due, until when. What a night does: flows."""

from calendar import monthrange
from datetime import UTC, date, datetime, time, timedelta
from typing import Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError
from cronsim.cronsim import Field as CronField
from pydantic import Field, field_validator

from schemas.benchmark.lines import Section

_FIELDS = ("minute", "hour", "day of the month", "month", "day of the week")
_DAY, _WEEKDAY = 2, 4
_LAST = (59, 23, 31, 12, 6)


class Nightly(Section):
    """When the nightly flow runs, until when it is to be done, and what it is held against."""

    schedule: str = Field(
        default="0 2 * * *",
        description="A cron line of five fields and of one moment a day at most: a night is named by its date.",
    )
    timezone: str = "UTC"
    finish_by: str | None = Field(
        default=None,
        pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$",
        description="A night that ends with exit code 3 or crashes is started again until then, as HH:MM in `timezone`.",
    )
    on_no_fresh_checkpoint: Literal["alert", "fail"] = Field(
        default="alert",
        description="Where no model has a newer checkpoint than the night before, or one's is gone; fail: exit code 1.",
    )
    baseline: str | None = None
    checkpoints: str | None = Field(
        default=None, description="A table (CSV, JSONL or Parquet) of model, checkpoint, date: which are ready, in which order."
    )
    n_earlier: int = Field(
        default=1, ge=0, description="Judged checkpoints of each model that stand beside its newest one in the night's table."
    )

    @field_validator("schedule")
    @classmethod
    def _is_once_a_day(cls, line: str) -> str:
        if (
            len(line.split()) != len(_FIELDS) or not line.isascii()
        ):  # with a sixth field the seconds are the first to one, the last to another
            raise ValueError(
                f'{line!r} is not a cron line of five fields ({", ".join(_FIELDS)}). Write a cron line such as "0 2 * * *"'
            )
        try:
            due = CronSim(line, datetime(2026, 1, 1, tzinfo=UTC))
        except CronSimError as error:
            raise ValueError(f'{line!r} is not a cron line ({error}). Write a cron line such as "0 2 * * *"') from error
        longest = max(monthrange(2028, month)[1] for month in due.months)
        if min(due.days) > longest:  # beside days of the week Prefect would look for such a day, and start no night
            raise ValueError(f"{line!r}: none of its months has a day {min(due.days)}; write days of the month that they have")
        if why := _why_prefect_differs(line, due):
            raise ValueError(f"{line!r}: Prefect, which starts the nights of salon deploy, {why}")
        if len(due.minutes) * len(due.hours) > 1:
            raise ValueError(
                f"{line!r} is due several times a day, but a night is named by its date. Write one minute and one hour, such as "
                '"0 2 * * *"; a night that failed is started again by finish_by'
            )
        return line

    @field_validator("timezone")
    @classmethod
    def _is_known(cls, name: str) -> str:
        try:
            ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise ValueError(f'{name!r} is not a time zone; write one such as "Europe/Berlin" or "UTC"') from error
        return name

    def today(self, now: datetime) -> date:
        """The date of this moment in `timezone`: of a run or a backfill, as of a night."""
        return now.astimezone(ZoneInfo(self.timezone)).date()

    def newest_due(self, now: datetime) -> datetime:
        """The latest moment at or before `now` at which a night is due, in the schedule's own time zone."""
        local = now.astimezone(ZoneInfo(self.timezone)).replace(second=1, microsecond=0)  # what is looked for lies before it
        due = next(CronSim(self.schedule, local, reverse=True))
        if not local.fold:
            return due
        # In an hour that the clocks repeat, what was due later in its first pass lies before now too.
        end = local.replace(fold=0)
        while end.utcoffset() != end.replace(fold=1).utcoffset():
            end += timedelta(minutes=1)
        first = next(CronSim(self.schedule, end - timedelta(minutes=1), reverse=True))
        return max((one for one in (due, first) if one.timestamp() <= now.timestamp()), key=datetime.timestamp)

    def next_due(self, now: datetime) -> datetime:
        """The first moment after `now` at which a night is due, in the schedule's own time zone."""
        later = CronSim(self.schedule, now.astimezone(ZoneInfo(self.timezone)))
        return next(one for one in later if one.timestamp() > now.timestamp())  # in an hour that is repeated the first was before

    def due_for(self, start: datetime) -> datetime:
        """When a night is due that Prefect scheduled at `start`: Prefect has no hour that the clocks leave out.

        It begins one of 02:30 at 01:30 before the change; the night is due after it, as cron begins it.
        """
        due = self.next_due(start)
        local = start.astimezone(due.tzinfo)
        wall = local.replace(tzinfo=None) + (due.utcoffset() or timedelta()) - (local.utcoffset() or timedelta())
        is_left_out = wall.replace(tzinfo=due.tzinfo).astimezone(UTC).astimezone(due.tzinfo).replace(tzinfo=None) != wall
        is_of_schedule = next(CronSim(self.schedule, wall - timedelta(minutes=1))) == wall
        return due if is_left_out and is_of_schedule else start

    def gives_up_at(self, night: date) -> datetime | None:
        """The first `finish_by` after the night is due; None without one. A date on which none is due begins at midnight."""
        if self.finish_by is None:
            return None
        zone = ZoneInfo(self.timezone)
        midnight = datetime.combine(night, time(), zone)
        due = self.newest_due(datetime.combine(night, time(23, 59), zone))
        finish = datetime.combine(night, time.fromisoformat(self.finish_by), zone)
        return finish if finish > max(due, midnight) else datetime.combine(night + timedelta(days=1), finish.time(), zone)


def _why_prefect_differs(line: str, due: CronSim) -> str | None:
    """What Prefect refuses of a cron line or reads otherwise than Salon, and what to write; None where both read it alike."""
    fields = line.upper().split()
    for number, field in enumerate(fields):
        for term in field.split(","):
            start, _, step = term.partition("/")
            ends = [*start.split("-"), *([str(_LAST[number])] if step and start.isalnum() else [])]
            if (number == _WEEKDAY and ("L" in term or (step and start.isalnum()))) or (
                number == _DAY and term[0] == "L" != term
            ):
                return (
                    f"does not read {term} as {_FIELDS[number]} as Salon does; write numbers, ranges such as 1-5, and "
                    "steps of * or of a range such as 1-5/2; L alone is a month's last day"
                )
            if len(ends) > 1 and len({CronField(number + 1).int(end) for end in ends}) == 1:
                return f"takes {term} as {_FIELDS[number]} for a whole round; write {ends[0]}"
    days, weekdays = fields[_DAY], fields[_WEEKDAY]
    if "#" in weekdays and (days != "*" or not all("#" in term for term in weekdays.split(","))):
        return f"reads {weekdays} beside other days as Salon does not; write days of the week with # alone"
    if "*" not in (days, weekdays) and "*" in days + weekdays:
        return (
            f"begins on days of the month {days} and on days of the week {weekdays}, Salon on those that are both; write * "
            "alone for one of the two, or both without it: the nights are then those of either"
        )
    if _is_short_of_march(due):
        return "leaves out a day about the first of March where days of the month go up to 30 or 31; write days up to 28"
    return None


def _is_short_of_march(due: CronSim) -> bool:
    """Whether Prefect's cron goes from February on to a day 30 or 31, which lies in March, past days that are due before it."""
    days = sorted(day for day in due.days if day > 0)
    if len(days) < len(due.days) and days and days[-1] > 28:  # beside the last of a month
        return True
    after = [(end, min((day for day in days if day >= end), default=end)) for end in (28, 29)]
    return {2, 3} <= due.months and any(day - end > days[0] for end, day in after if days)
