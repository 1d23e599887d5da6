"""An example's README, followed as a person follows it: its commands in turn, each until it prints what is shown.

In: the example's folder and a site. Out: a ``Guide`` whose sections a test goes through, and between them looks at
Kafka with eyes of its own. Commands are run by a shell in a copy of the folder, with the site's API and namespace as
kubectl's own and Kafka's tools on the PATH. What the README calls its cluster represents the site's.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from realparts import kafka_tools, kubernetes_binaries
from testkit.processes.sites import Site
from waiting import TooLate, ran, until

BOOTSTRAP = "kafka-bootstrap.kafka:9092"
"""What every example calls its brokers."""
ANY = "..."
"""A line that represents any number of lines, or any text within a line."""
REPEATED = re.compile(r"kubectl (get|wait) |.* --verify$", re.DOTALL)
"""Commands that only look: run again until they print what is shown."""


class Unlike(AssertionError):
    """A command failed, or did not print what its README shows; the message holds both."""


class Step(NamedTuple):
    """One command of a README, and what it is shown to print; empty where nothing is shown."""

    command: str
    shown: str

    def fits(self, printed: str) -> bool:
        """Whether that is what the README shows; blanks count as one."""
        if not self.shown:
            return True
        lines = [".*" if line == ANY else _line(line) for line in self.shown.splitlines()]
        return re.fullmatch(r"\n".join(lines), "\n".join(map(_blanks, printed.splitlines())), re.DOTALL) is not None


class Guide:
    """See the module. ``stands_for`` replaces further words of the folder's files."""

    def __init__(self, site: Site, example: Path, stands_for: Mapping[str, str] | None = None) -> None:
        self._site = site
        self._folder = site.directory / example.name
        self._words = {BOOTSTRAP: site.kafka.bootstrap, **(stands_for or {})}
        shutil.copytree(example, self._folder)
        for file in self._folder.iterdir():
            file.write_text(self._here(file.read_text()))
        self.sections = steps((example / "README.md").read_text())
        self._environment = self._surroundings()

    def follow(self, heading: str, seconds: float = 120) -> None:
        """Go through a section. Raises Unlike when a command fails, or shows something else for so long."""
        for step in self.sections[heading]:
            self._take(step, seconds)

    def _take(self, step: Step, seconds: float) -> None:
        def fits() -> bool:
            ended = self._run(self._here(step.command))
            said[:] = [f"{ended.stdout}{ended.stderr}\n(exit status {ended.returncode})"]
            return ended.returncode == 0 and step.fits(ended.stdout)

        said = [""]
        try:
            until(fits, seconds, every=0.2, alive=lambda: REPEATED.match(step.command))
        except TooLate as late:
            shown = f"--- shown\n{step.shown}\n--- here\n{said[0]}"
            raise Unlike(f"$ {step.command}\n{shown}\n{self._site.logs()}") from late

    def _run(self, command: str) -> subprocess.CompletedProcess[str]:
        return ran(["/bin/sh", "-c", command], 120, cwd=self._folder, env=self._environment)

    def _here(self, text: str) -> str:
        for word, other in self._words.items():
            text = text.replace(word, other)
        return text

    def _surroundings(self) -> dict[str, str]:
        tools, kubeconfig = self._site.directory / "tools", self._site.directory / "kubeconfig"
        kafka_tools.install(tools)
        (tools / "kubectl").symlink_to(kubernetes_binaries.kubectl())
        config = json.loads(self._site.server.kubeconfig.read_text())
        config["contexts"][0]["context"]["namespace"] = self._site.namespace
        kubeconfig.touch(mode=0o600)
        kubeconfig.write_text(json.dumps(config))
        path = f"{tools}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        return {**os.environ, "KUBECONFIG": str(kubeconfig), "PATH": path}


def steps(text: str) -> dict[str, list[Step]]:
    """The commands of a README by the heading above them; those before the first ``##`` under its title."""
    sections: dict[str, list[Step]] = {}
    heading, fenced = "", False
    for line in text.splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced and line.startswith("#"):
            heading = line.lstrip("#").strip()
        elif fenced and line.startswith("$ "):
            sections.setdefault(heading, []).append(Step(line.removeprefix("$ "), ""))
        elif fenced and (taken := sections.get(heading)):
            last = taken[-1]
            if last.command.endswith("\\"):
                taken[-1] = Step(f"{last.command}\n{line}", "")
            else:
                taken[-1] = last._replace(shown=f"{last.shown}\n{line}" if last.shown else line)
    return sections


def _line(shown: str) -> str:
    return "[^\n]*".join(re.escape(part) for part in _blanks(shown).split(ANY))


def _blanks(line: str) -> str:
    return re.sub(r"\s+", " ", line).strip()
