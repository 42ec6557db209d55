"""The benchmark file's [nightly] section and its calendar: which night is due, until when. What a night does: flows."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError
from pydantic import Field, field_validator

from schemas.benchmark.lines import Section


class Nightly(Section):
    """When the nightly flow runs, until when it is to be done, and what it is held against."""

    schedule: str = Field(
        default="0 2 * * *", description="A cron line of one moment a day at most: a night is named by its date."
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
        try:
            due = CronSim(line, datetime(2026, 1, 1, tzinfo=UTC))
        except CronSimError as error:
            raise ValueError(f'{line!r} is not a cron line ({error}). Write a cron line such as "0 2 * * *"') from error
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
