"""How much of the tree there may be: lines of each package, Python files, files of one folder, circles, literary words.

A limit is what there was when it was set, lines with 2 % more. A change that grows something beyond its limit makes
something there smaller, or raises the limit with a comment that says why. A change that makes something much smaller
lowers its limit, so that what was gained stays. Counted are Python files that people write.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from sourcetree import LITERARY_WORD, ROOT, files, prose_lines

LINES = {
    "operator/bellwether": 1535,  # where policies may connect: one list, and one check at the connection itself
    "operator/bellwether/adapters": 11281,  # large objects trimmed, librdkafka asks first; what Strimzi has
    "operator/bellwether/api": 4487,  # identities with their destination; requests; a preset for kafka_exporter
    "operator/bellwether/cli": 9832,  # lint reads policies in texts and in other objects
    "operator/bellwether/controllers": 3092,  # who may still send; other installations; kopf's lists and events bounded
    "operator/bellwether/core": 13650,  # cures by a table; causes, freezes, links; identity, partial answers, drains
    "operator/bellwether/ports": 620,  # the seam to the load side, bounded messages, answers of probes once
    "operator/bellwether/probes": 5800,  # several listeners, causes, gaps of both sides, slow answers, pairs that lag
    "operator/bellwether/probes/runtime": 751,
    "operator/bellwether/quarantine": 737,  # ends connections; which field keeps it from holding; whose process it is
    "operator/bellwether/recording": 1346,  # all fields of signals and records, so that a replay decides alike
    "operator/bellwether/simulation": 2103,  # replays, and the cluster in memory that all of it runs on
    "operator/bellwether/telemetry": 1420,  # one scrape at a time
    "spark": 3443,
    "spark/bellwether_load/api": 226,
    "spark/bellwether_load/cli": 1201,  # losses, a verb of its own; requests
    "spark/bellwether_load/controller": 1243,  # losses of brokers and racks as numbers in status; requests
    "spark/bellwether_load/losses": 931,  # leaders with orders within limits by hour, heavy partitions in the bound
    "spark/bellwether_load/page": 498,  # the sentences of terminal and status, too
    "spark/bellwether_load/plan": 1215,  # what a plan rests on, what is missing for a proposal, losses; requests
    "spark/bellwether_load/sampling": 976,  # rolls up hours, removes old files; requests
    "spark/bellwether_load/store": 1993,  # what a file unpacks to, by its footer; requests; loads for limits, packed
    "spark/bellwether_load/verify": 1017,  # evidence, and losses with their bound; requests; what moves change
    "bench": 11419,  # the simulated months have acks=all, holds, fencing, slow syncs and freezes; destinations
    "examples": 3032,  # the demo draws its own moving picture
    "helm": 2209,  # prints the rights of a rendered chart; requests; Artifact Hub
    "docs": 435,
    "packaging": 478,  # a release: built twice, signed, published, pulled back; what it refuses, what differs
    "tests": 210,
    "tests/architecture": 3010,  # one version everywhere, linted workflows, what a release refuses, on a registry
    "tests/cluster": 985,  # installed from a registry, and upgraded during a demotion
    "tests/contract": 855,
    "tests/e2e": 166,  # the cures bench in its quick form
    "tests/integration": 18365,  # losses behind a frozen broker; what ended a sender; floods of each kind; destinations
    "tests/properties": 5445,  # each field with each credential and destination; what was not seen or may be stopped
    "tests/scenarios": 179,
    "tests/spark": 390,  # standalone: workers and jobs that are killed, late and dirty samples
    "tests/support": 21409,  # adverse owners, whom two tests had; faults of ports and processes in memory; a registry
    "tests/unit": 64847,  # the shapes in which repositories keep policies, and of pods of Strimzi
}
"""Lines of the Python files below a folder, but for those below a longer name of the table."""

FILES = {"operator": 388, "spark": 109, "bench": 98, "tests": 840}  # bench: exact optima of small plans
"""Python files below a folder."""

FILES_IN_ONE_FOLDER = {"operator": 15, "spark": 12, "bench": 23, "tests": 49}
"""Python files that lie in one folder, subfolders left out."""

IMPORT_CIRCLES = 0
"""Groups of modules of the product that import each other, imports inside functions included."""

LISTS = ("tests/architecture/test_plain_english.py", "tests/architecture/test_budget.py", "tests/support/sourcetree.py")
"""Files that list the words of the deny-list."""

WORDS = {"literary names of tests": 0, "literary words in texts of tests": 4, "names of tests over ten words": 828}
"""Test functions with a word of the deny-list in their name, such words in texts of tests and benches, and
test functions whose name has more than ten words. All fall; a name says subject, condition and result."""

SLACK = 1.02
WORTH_KEEPING = 1.06
"""A limit of lines that is this many times what there is must be lowered."""

IMPORT = re.compile(r"^ *(?:from (bellwether[\w.]*) import (\([^)]*\)|[^\n]+)|import (bellwether[\w.]*))", re.MULTILINE)


def python_files(root: Path) -> list[Path]:
    return [path for path in files(root) if path.suffix == ".py"]


def line_counts(root: Path, folders: Iterable[str]) -> dict[str, int]:
    """Lines of the Python files by folder; a file counts for the longest name that it lies below."""
    counts = dict.fromkeys(sorted(folders, key=len, reverse=True), 0)
    for path in python_files(root):
        name = path.relative_to(root).as_posix()
        if folder := next((folder for folder in counts if name.startswith(f"{folder}/")), None):
            counts[folder] += path.read_bytes().count(b"\n")
    return counts


def beyond_limits(now: Mapping[str, int], limits: Mapping[str, int], unit: str) -> list[str]:
    """What is over its limit, and what is so far below that the limit has to follow; a sentence each."""
    over = [
        f"{name}: {now[name]:,} {unit}, limit {limit:,}. Make something there smaller, or raise the limit in"
        f" tests/architecture/{Path(__file__).name} with a comment that says why."
        for name, limit in limits.items()
        if now[name] > limit
    ]
    return over + [
        f"{name}: {now[name]:,} {unit}, limit {limit:,}. Lower the limit to {int(now[name] * SLACK)}."
        for name, limit in limits.items()
        if now[name] * WORTH_KEEPING < limit
    ]


def word_counts(root: Path) -> dict[str, int]:
    """What ``WORDS`` limits, as it is."""
    counts = dict.fromkeys(WORDS, 0)
    for path in python_files(root):
        name = path.relative_to(root).as_posix()
        if name.startswith(("tests/", "bench/")) and name not in LISTS:
            text = path.read_text()
            for test in re.findall(r"^ *(?:async )?def test_(\w+)", text, re.MULTILINE):
                counts["literary names of tests"] += bool(LITERARY_WORD.search(test.replace("_", " ")))
                counts["names of tests over ten words"] += test.count("_") >= 10
            if LITERARY_WORD.search(text):
                words = sum(len(LITERARY_WORD.findall(line)) for _, line in prose_lines(text))
                counts["literary words in texts of tests"] += words
    return counts


def import_circles(root: Path) -> list[list[str]]:
    """Groups of two or more modules of ``operator`` and ``spark`` that import each other."""
    texts = {
        ".".join(path.relative_to(root).with_suffix("").parts[1:]).removesuffix(".__init__"): path.read_text()
        for path in python_files(root)
        if path.relative_to(root).parts[0] in ("operator", "spark")
    }
    imports = {module: imported(text, texts) for module, text in texts.items()}
    reached = {module: reachable(module, imports) for module in texts}
    circles = {tuple(sorted(n for n in reached[m] if m in reached[n])) for m in texts if m in reached[m]}
    return [list(circle) for circle in sorted(circles)]


def imported(text: str, modules: Mapping[str, str]) -> set[str]:
    """The modules that a text imports, wherever in it; a package only where nothing else of it is named."""
    found = set()
    for package, names, plain in IMPORT.findall(text):
        inside = {f"{package}.{name}" for name in re.findall(r"\w+", names)}.intersection(modules)
        found |= inside or {plain or package}.intersection(modules)
    return found


def reachable(module: str, imports: Mapping[str, set[str]]) -> set[str]:
    """Every module that one leads to; itself only through another."""
    found: set[str] = set()
    todo = [module]
    while todo:
        new = imports[todo.pop()] - found
        found |= new
        todo += new
    return found


def test_every_package_keeps_to_its_lines() -> None:
    assert beyond_limits(line_counts(ROOT, LINES), LINES, "lines") == []


def test_every_python_file_counts_for_a_package() -> None:
    assert sum(line_counts(ROOT, LINES).values()) == sum(p.read_bytes().count(b"\n") for p in python_files(ROOT))


def test_there_are_no_more_files_than_the_limit() -> None:
    counts = Counter(path.relative_to(ROOT).parts[0] for path in python_files(ROOT))
    assert beyond_limits(counts, FILES, "Python files") == []


def test_no_folder_holds_more_files_than_the_limit() -> None:
    counts = Counter(path.parent.relative_to(ROOT) for path in python_files(ROOT))
    most = {top: max(n for folder, n in counts.items() if folder.parts[:1] == (top,)) for top in FILES_IN_ONE_FOLDER}
    assert beyond_limits(most, FILES_IN_ONE_FOLDER, "Python files in one folder") == []


def test_there_are_no_more_import_circles_than_the_limit() -> None:
    circles = import_circles(ROOT)
    assert len(circles) <= IMPORT_CIRCLES, circles


def test_words_of_tests_keep_to_their_limits() -> None:
    assert beyond_limits(word_counts(ROOT), WORDS, "of them") == []


def test_a_package_that_grows_is_refused_with_what_to_do(tmp_path: Path) -> None:
    package = tmp_path / "operator" / "bellwether" / "core"
    package.mkdir(parents=True)
    (package / "growing.py").write_text("x = 1\n" * 103)
    (package.parent / "other.py").write_text("x = 1\n" * 100)
    limits = {"operator/bellwether": 102, "operator/bellwether/core": 102}
    (refusal,) = beyond_limits(line_counts(tmp_path, limits), limits, "lines")
    assert refusal.startswith("operator/bellwether/core: 103 lines, limit 102. Make something there smaller, or raise")


def test_words_in_names_and_texts_of_tests_are_counted(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_a.py").write_text(f"def test_told{'_b' * 10}():\n    told = 1  # nobody, not `told`\n")
    assert list(word_counts(tmp_path).values()) == [1, 1, 1]


def test_a_circle_through_a_function_is_found(tmp_path: Path) -> None:
    package = tmp_path / "operator" / "bellwether"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "one.py").write_text("from bellwether import (\n    two,\n)\n")
    (package / "two.py").write_text("def late():\n    from bellwether.three import name\n")
    (package / "three.py").write_text("import bellwether.one\nfrom bellwether import four\n")
    (package / "four.py").write_text("x = 1\n")
    assert import_circles(tmp_path) == [["bellwether.one", "bellwether.three", "bellwether.two"]]
