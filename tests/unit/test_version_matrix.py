"""The page of supported versions is written from what ran."""

from __future__ import annotations

from pathlib import Path

import pytest

from versionmatrix.__main__ import BEGIN, END, PAGE, cells, results, with_row

EMPTY = f"before\n{BEGIN}\n{END}\nafter\n"


def row(version: str, result: str, part: str = "kafka") -> tuple[str, ...]:
    return (part, version, "2026-11-29", result, "demo")


def test_rows_stay_in_the_order_of_their_versions() -> None:
    page = with_row(with_row(with_row(EMPTY, row("3.22.0", "a", "helm")), row("4.10.0", "b")), row("4.4.0", "c"))
    assert [found[1] for found in cells(page.partition(BEGIN)[2])] == ["4.4.0", "4.10.0", "3.22.0"]
    assert (page[:7], page[-7:]) == ("before\n", "\nafter\n")


def test_version_that_ran_again_has_one_row() -> None:
    page = with_row(with_row(EMPTY, row("4.4.0", "failed: 1 of 2 tests")), row("4.4.0", "passed: 2 tests"))
    assert [found[3] for found in cells(page.partition(BEGIN)[2])] == ["passed: 2 tests"]


def test_page_without_a_table_is_refused() -> None:
    with pytest.raises(SystemExit, match="has no table"):
        with_row("nothing", row("4.4.0", "passed"))


def test_failures_and_errors_of_a_report_are_named(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(
        "<testsuites><testsuite><testcase name='a'/><testcase name='b'><skipped/></testcase>"
        "<testcase name='c'><failure/></testcase><testcase name='d'><error/></testcase></testsuite></testsuites>"
    )
    counts, broken = results(report)
    assert (counts["passed"], counts["skipped"], broken) == (1, 1, ["`c`", "`d`"])


def test_missing_report_counts_as_a_failure(tmp_path: Path) -> None:
    assert results(tmp_path / "none.xml") == ({}, ["pytest wrote no report"])


def test_every_version_that_is_claimed_passed() -> None:
    rows = cells(PAGE.read_text().partition(BEGIN)[2].partition(END)[0])
    assert rows
    assert [found for found in rows if not found[3].startswith("passed")] == []
