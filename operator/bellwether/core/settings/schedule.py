"""Cron schedule in UTC: a five-field expression, and the times at which it is due.

Pure: times in, times out. Called by ``rebalance.lifecycle``, and by the API's models to refuse what is no expression.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cronsim import CronSim, CronSimError

_FIELDS = 5


@dataclass(frozen=True, slots=True)
class Schedule:
    """Minute, hour, day of the month, month and day of the week, as cron and Kubernetes' CronJob have them; in UTC.

    ValueError where it is none, or where its time never comes.
    """

    expression: str

    def __post_init__(self) -> None:
        if len(self.expression.split()) != _FIELDS:
            raise ValueError(_amiss(self.expression, "it has not five fields"))
        try:
            next(CronSim(self.expression, datetime(2000, 1, 1, tzinfo=UTC)))
        except CronSimError as error:
            raise ValueError(_amiss(self.expression, str(error))) from None
        except StopIteration:
            raise ValueError(_amiss(self.expression, "its time never comes")) from None

    def after(self, moment: datetime) -> datetime:
        """The first time of the schedule that is later than ``moment``."""
        return next(CronSim(self.expression, moment.astimezone(UTC)))

    def due(self, noted: datetime | None, now: datetime) -> datetime:
        """When it is due next: the time that was noted before, which may have passed, unless the schedule is another.

        So a time that passed while nobody looked is made up for once, and a changed schedule counts at once.
        """
        if noted is not None and self.after(noted - timedelta(seconds=1)) == noted and noted <= self.after(now):
            return noted
        return self.after(now)


def _amiss(expression: str, why: str) -> str:
    return f"{expression!r} is no schedule ({why}): give minute, hour, day, month and weekday, as in '0 4 * * *'"
