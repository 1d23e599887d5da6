"""Run the suites of a part on some of its versions and write each result into docs/supported-versions.md.

In: ``python -m versionmatrix --kafka 4.0.2 --kubernetes 1.30.14 ...``; ``--kafka all`` takes each of a part's
versions. Out: a row of the page for each version, with the date; exit status 1 when one failed. A row is written as
soon as its suites have ended, so an interrupted run keeps what it has.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from sourcetree import ROOT

PAGE = ROOT / "docs" / "supported-versions.md"
BEGIN, END = "<!-- versions: begin -->", "<!-- versions: end -->"
HEADER = ("Part", "Version", "Date", "Result", "Suites")
UNREAL = "not slow and not cluster and not image and not kafka and not apiserver and not prometheus and not chart"


@dataclass(frozen=True, slots=True)
class Part:
    """Something that users bring in a version of their own. ``variable`` tells the real parts which to start."""

    versions: Sequence[str]
    suites: str
    """What they cover, in words."""
    tests: Sequence[Sequence[str]] = ()
    """Arguments of pytest, once for each of its runs."""
    variable: str = ""
    demo: bool = False
    package: str = ""
    """What of PyPI is installed in that version, in an environment of its own."""


PARTS = {
    "kafka": Part(
        ("3.9.2", "4.0.2", "4.1.2", "4.2.2", "4.3.1", "4.4.0"),
        "contract, brokers, moves with late requests, quarantine, demo",
        (
            ("tests/contract", "tests/integration/brokers", "tests/integration/moving", "-m", "kafka and not slow"),
            ("tests/integration/operator/test_quarantine.py",),
        ),
        "KAFKA_VERSION",
        demo=True,
    ),
    "kubernetes": Part(
        ("1.30.14", "1.36.3", "1.37.2"),
        "API server, rights, security, chart",
        (
            ("tests/integration/apiserver", "tests/integration/rights", "tests/integration/security", "-m", "not slow"),
            ("tests/integration/chart", "-m", "not slow"),
        ),
        "KUBERNETES_VERSION",
    ),
    "helm": Part(("3.22.0", "4.3.2"), "every test of the chart", (("-m", "chart"),), "HELM_VERSION"),
    "python": Part(
        ("3.11", "3.12", "3.13", "3.14"),
        "every test without real parts",
        (("tests/unit", "tests/contract", "tests/properties", "-m", f"{UNREAL} and not spark"),),
    ),
    "spark": Part(
        ("3.5.8", "4.0.2", "4.1.1", "4.3.0"),
        "load jobs",
        (("tests/spark", "tests/unit", "-m", "spark and not slow"),),
        package="pyspark",
    ),
}


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m versionmatrix", description=__doc__)
    for name, part in PARTS.items():
        parser.add_argument(f"--{name}", action="append", default=[], metavar="VERSION", help=", ".join(part.versions))
    chosen = vars(parser.parse_args())
    wanted = [(name, v) for name, part in PARTS.items() for v in expanded(chosen[name], part)]
    if not wanted:
        parser.error("name at least one version, such as --kafka 4.0.2, or a part with all: --kafka all")
    failed = []
    for name, version in wanted:
        print(f"==> {name} {version}", flush=True)
        started = time.monotonic()
        result = outcome(name, version)
        print(f"==> {name} {version}: {result} ({time.monotonic() - started:.0f} s)", flush=True)
        row = (name, version, f"{datetime.now(UTC):%Y-%m-%d}", result, PARTS[name].suites)
        if not result.startswith("not run"):
            PAGE.write_text(with_row(PAGE.read_text(), row))
        failed += [f"{name} {version}"] * (not result.startswith("passed"))
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return bool(failed)


def expanded(versions: Iterable[str], part: Part) -> list[str]:
    """The versions that are meant; ``all`` means each of the part."""
    return [v for given in versions for v in (part.versions if given == "all" else given.split(","))]


def outcome(name: str, version: str) -> str:
    """What the suites say of one version, in a few words that begin with ``passed`` or ``failed``."""
    part = PARTS[name]
    environment = {**os.environ, part.variable: version} if part.variable else dict(os.environ)
    with tempfile.TemporaryDirectory() as scratch:
        python = Path(sys.executable)
        if name == "python" or part.package:
            made = other_environment(Path(scratch), version if name == "python" else "", part.package, version)
            if made is None:
                return f"not run: no interpreter python{version} on this machine"
            python = made
        totals: Counter[str] = Counter()
        broken: list[str] = []
        for number, arguments in enumerate(part.tests):
            report = Path(scratch) / f"{number}.xml"
            command = [
                str(python),
                "-m",
                "pytest",
                "-q",
                "--numprocesses=2",
                "--dist=loadscope",
                f"--junitxml={report}",
            ]
            subprocess.run([*command, *arguments], cwd=ROOT, env=environment, check=False)
            counts, names = results(report)
            totals += counts
            broken += names
        said = f"{totals['passed']} tests, {totals['skipped']} skipped"
        if broken:
            return f"failed: {len(broken)} of {said}: {', '.join(broken[:3])}{', ...' if broken[3:] else ''}"
        if not totals["passed"]:
            return "failed: no test ran"
        if part.demo:
            ended = subprocess.run([python, "-m", "demo", "--hold=3"], cwd=ROOT, env=environment, check=False)
            if ended.returncode:
                return f"failed: demo ended with {ended.returncode}; {said}"
            said += "; demo: every invariant held"
        return f"passed: {said}"


def other_environment(scratch: Path, python: str, package: str, version: str) -> Path | None:
    """The interpreter of an environment with what the lock pins, but for one package or the interpreter itself."""
    base = find_interpreter(python) if python else Path(sys.executable)
    if base is None:
        return None
    folder = scratch / "environment"
    lock = ROOT / "requirements" / "dev.lock"
    make = [str(base), "-m", "realparts.environment", str(folder), str(lock)]
    subprocess.run(make, cwd=ROOT, env={**os.environ, "PYTHONPATH": "tests/support"}, check=True)
    if package:
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, f"{package}=={version}"], check=True)
    return folder / "bin" / "python"


def find_interpreter(version: str) -> Path | None:
    """An interpreter of a minor version: on PATH, or one that pyenv has."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [Path(f"python{version}"), *sorted(pyenv.glob(f"{version}.*/bin/python"))]
    check = f"import sys; sys.exit('%d.%d' % sys.version_info[:2] != {version!r})"
    for candidate in candidates:
        try:
            if subprocess.run([candidate, "-c", check], capture_output=True, check=False).returncode == 0:
                return candidate
        except OSError:
            continue
    return None


def results(report: Path) -> tuple[Counter[str], list[str]]:
    """How many tests passed and were skipped by a JUnit report, and the names of those that did neither."""
    if not report.exists():
        return Counter(), ["pytest wrote no report"]
    counts: Counter[str] = Counter()
    broken = []
    for case in ET.parse(report).iter("testcase"):  # noqa: S314  pytest's own
        children = {child.tag for child in case}
        if children & {"failure", "error"}:
            broken.append(f"`{case.get('name', '')}`")
        counts["skipped" if "skipped" in children else "passed"] += not children & {"failure", "error"}
    return counts, broken


def with_row(page: str, row: Sequence[str]) -> str:
    """The page with one row of its table added or replaced; rows stay in the order of ``PARTS``."""
    head, begin, rest = page.partition(BEGIN)
    old, end, tail = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"error: {PAGE.name} has no table between {BEGIN} and {END}")
    rows = {tuple(found[:2]): found for found in cells(old)}
    rows[tuple(row[:2])] = list(row)
    kept = sorted(rows.values(), key=lambda cells: (list(PARTS).index(cells[0]), numbers(cells[1])))
    lines = ["| " + " | ".join(line) + " |" for line in (HEADER, ["---"] * len(HEADER), *kept)]
    return f"{head}{BEGIN}\n" + "\n".join(lines) + f"\n{END}{tail}"


def numbers(version: str) -> list[int]:
    """The numbers of a version, by which versions are sorted."""
    return [int(number) for number in re.findall(r"\d+", version)]


def cells(table: str) -> list[list[str]]:
    """The rows of a table of Markdown, without its head."""
    lines = [line for line in table.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


if __name__ == "__main__":
    sys.exit(main())
