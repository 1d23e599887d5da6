"""Timeline of a replay: verdicts that change, brokers demoted and promoted, leaders moved.

In: the report of each reconcile, and the changes of each instant. Out: rows in order of time, as values, for a person
(``str``), for a machine (``Row.document``) and for golden tests. Called by ``replay_run``.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bellwether.core.model.log_dirs import LogDir
from bellwether.core.model.undo_record import Link
from bellwether.core.reporting.report import Report
from bellwether.recording.recorded_status import RecordedStatus, recorded_statuses
from bellwether.recording.traces.merge_patch import Document
from bellwether.recording.traces.trace_lines import text_of

_NOTHING: Document = {}


@dataclass(frozen=True, slots=True)
class Row:
    """One thing that happened. ``broker`` is None for what concerns no single one."""

    at: datetime
    what: str
    text: str
    broker: int | None = None

    def __str__(self) -> str:
        about = "" if self.broker is None else f"broker {self.broker} "
        return f"{self.at:%H:%M:%S} {about}{self.text}"

    def document(self) -> dict[str, Any]:
        """The row as JSON values."""
        about = {} if self.broker is None else {"broker": self.broker}
        return {"at": text_of(self.at), "what": self.what, **about, "text": self.text}


class Timeline:
    """Rows in order, with each broker's statuses in the replay and in the recording, for comparison."""

    def __init__(self, moves: bool = True) -> None:
        self.rows: list[Row] = []
        self.replayed: list[tuple[datetime, dict[int, RecordedStatus]]] = []
        self.said: list[tuple[datetime, dict[int, RecordedStatus]]] = []
        self._moves = moves
        self._statuses: dict[int, RecordedStatus] = {}
        self._lasting: dict[tuple[int, str], str | None] = {}
        self._would: frozenset[int] = frozenset()
        self._log_dirs: frozenset[LogDir] = frozenset()
        self._links: frozenset[Link] = frozenset()

    def recorded(self, now: datetime, news: Document, state: Document) -> None:
        """An instant of the recording: manual changes and the recorder's own notes."""
        if "said" in news:
            self.said.append((now, recorded_statuses(state.get("said", _NOTHING))))
        for broker, override in (news.get("overrides") or _NOTHING).items():
            text = "its override is removed"
            if override is not None:
                whole = state["overrides"][broker]
                reason = f": {whole['reason']}" if whole.get("reason") else ""
                text = f"gets the override {whole['state']}{reason}"
            self.rows.append(Row(now, "override", text, int(broker)))
        for what, trouble in (news.get("away") or _NOTHING).items():
            text = f"the recorder sees {what} again" if trouble is None else f"the recorder lost {what}: {trouble}"
            self.rows.append(Row(now, "recorder", text))
        if "policy" in news and self.replayed:
            self.rows.append(Row(now, "policy", "the policy was changed"))

    def took(self, now: datetime, report: Report, demoted_before: frozenset[int]) -> None:
        """A reconcile of the replay."""
        statuses = {
            b.broker: RecordedStatus(str(b.verdict.state), str(b.verdict.reason), b.demoted is not None)
            for b in report.brokers
        }
        for broker in report.brokers:
            self._verdict(now, broker.broker, statuses[broker.broker], broker.verdict.message)
            hold, waited_for = broker.hold, next(c for c in broker.conditions if c.type == "HoldsBackISR")
            if self._begins(broker.broker, "held", None if hold is None else str(hold.reason)):
                text = f"is held, {hold.reason}: {hold.message}" if hold is not None else ""
                self.rows.append(Row(now, "held", text, broker.broker))
            if self._begins(broker.broker, "holds back", str(waited_for.reason) if waited_for.status else None):
                self.rows.append(Row(now, "holds back", f"delays acks=all: {waited_for.message}", broker.broker))
        demoted = {b.broker: b.demoted for b in report.brokers if b.demoted is not None}
        for number, one in demoted.items():
            if number not in demoted_before:
                self.rows.append(Row(now, "demoted", f"is demoted, {one.cause} {one.reason}", number))
        for number in sorted(demoted_before - set(demoted)):
            self.rows.append(Row(now, "promoted", "may lead again", number))
        self._directories(now, report)
        self._broken(now, report)
        self._observing(now, report)
        if self._moves and report.result.changed:
            text = f"{report.result.elected} leaders moved, {report.result.reordered} partitions reordered"
            self.rows.append(Row(now, "moved", text))
        if statuses != self._statuses:
            self.replayed.append((now, statuses))
        self._statuses = statuses

    def _directories(self, now: datetime, report: Report) -> None:
        found = {one.demoted.log_dir: one for b in report.brokers for one in b.log_dirs if one.acts}
        for log_dir, one in found.items():
            if log_dir not in self._log_dirs:
                text = f"log directory {log_dir.path} is demoted with {one.partitions} partitions, {one.demoted.reason}"
                self.rows.append(Row(now, "demoted", text, log_dir.broker))
        for log_dir in sorted(self._log_dirs - found.keys()):
            self.rows.append(Row(now, "promoted", f"log directory {log_dir.path} may lead again", log_dir.broker))
        self._log_dirs = frozenset(found)

    def _broken(self, now: datetime, report: Report) -> None:
        found = {Link.between(b.broker, one.peer) for b in report.brokers for one in b.links if one.since is not None}
        for link in sorted(found - self._links):
            self.rows.append(
                Row(now, "demoted", f"{link} do not reach each other: others lead what both have", link.one)
            )
        for link in sorted(self._links - found):
            self.rows.append(Row(now, "promoted", f"{link} may lead again what both have", link.one))
        self._links = frozenset(found)

    def _verdict(self, now: datetime, broker: int, status: RecordedStatus, message: str) -> None:
        before = self._statuses.get(broker)
        if before is not None and (before.state, before.reason) == (status.state, status.reason):
            return
        began = f"{before.state} -> " if before is not None else ""
        self.rows.append(Row(now, "verdict", f"{began}{status.state} {status.reason}: {message}", broker))

    def _begins(self, broker: int, what: str, reason: str | None) -> bool:
        """Whether a lasting state begins, or gets another reason; its end is not shown."""
        before, self._lasting[broker, what] = self._lasting.get((broker, what)), reason
        return reason is not None and reason != before

    def _observing(self, now: datetime, report: Report) -> None:
        would = frozenset(report.would_demote)
        for broker in sorted(would - self._would):
            one = report.plan.decisions.demoted[broker]
            self.rows.append(Row(now, "would demote", f"would be demoted, {one.cause} {one.reason}", broker))
        for broker in sorted(self._would - would):
            self.rows.append(Row(now, "would promote", "would no longer be demoted", broker))
        self._would = would
