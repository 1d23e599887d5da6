"""Cron schedule in UTC: a five-field expression, and the times at which it is due.

Pure: times in, times out. Used by ``bellwether_load.controller.lifecycle``, and by the API models to validate
expressions.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cronsim import CronSim, CronSimError

_FIELDS = 5


@dataclass(frozen=True, slots=True)
class Schedule:
    """Minute, hour, day of the month, month and day of the week, as in cron and Kubernetes CronJobs; in UTC.

    Raises ValueError for an invalid expression, or one whose time never comes.
    """

    expression: str

    def __post_init__(self) -> None:
        if len(self.expression.split()) != _FIELDS:
            raise ValueError(_invalid(self.expression, "it must have five fields"))
        try:
            next(CronSim(self.expression, datetime(2000, 1, 1, tzinfo=UTC)))
        except CronSimError as error:
            raise ValueError(_invalid(self.expression, str(error))) from None
        except StopIteration:
            raise ValueError(_invalid(self.expression, "it matches no date")) from None

    def after(self, moment: datetime) -> datetime:
        """The first scheduled time later than ``moment``."""
        return next(CronSim(self.expression, moment.astimezone(UTC)))

    def due(self, noted: datetime | None, now: datetime) -> datetime:
        """The next scheduled time: ``noted`` from an earlier call, even if it has passed, unless the schedule has
        changed.

        So a time that was missed is made up for once, and a changed schedule takes effect at once.
        """
        if noted is not None and self.after(noted - timedelta(seconds=1)) == noted and noted <= self.after(now):
            return noted
        return self.after(now)


def _invalid(expression: str, why: str) -> str:
    return f"{expression!r} is not a schedule ({why}): use minute, hour, day, month and weekday, as in '0 4 * * *'"
