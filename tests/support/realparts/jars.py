"""Fetches jars from the user's Maven repositories, side by side, with ``jgo``'s client: no Java and no Maven is
needed.

In: a lock file in ``locks/`` that names every jar by its coordinates, with its sha256: nothing is left to resolve.
Out: a folder of the jars in the cache. Which repositories are asked is ``jgo``'s to know: Maven Central, or those of
the user's ``jgo.conf``. Called by ``kafka_jars``, ``kafka_tools`` and ``strimzi``.

For another version: ``jgo list`` (of ``jgo[cli]``) resolves ``org.apache.kafka:kafka_2.13`` with
``org.slf4j:slf4j-simple``, and ``io.strimzi:crd-generator`` with ``io.strimzi:api``, of which what only Strimzi's
tests need is left out.
"""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from realparts import cache
from realparts.causes import cause
from realparts.downloads import LOCKS, check, sha256_of
from realparts.progress import say
from realparts.toolruns import DownloadFailed

AT_ONCE = 8
TIMEOUT_SECONDS = 60


def folder(name: str) -> Path:
    """The cached folder of the jars that ``locks/NAME.sha256`` names. Raises DownloadFailed."""
    lock = LOCKS / f"{name}.sha256"
    wanted = [(coordinates, sha256) for sha256, coordinates in map(str.split, lock.read_text().splitlines())]

    def make(staged: Path) -> None:
        staged.mkdir()
        pool = ThreadPoolExecutor(AT_ONCE)
        repository = staged.parent / "repository"
        fetching = [pool.submit(_fetch, coordinates, sha256, repository, staged) for coordinates, sha256 in wanted]
        try:
            for done, one in enumerate(as_completed(fetching), 1):
                one.result()
                say(f"{done} of {len(wanted)} jars")
        finally:
            pool.shutdown(cancel_futures=True)

    return cache.once(f"jars/{name}-{sha256_of(lock)[:12]}", f"fetching {len(wanted)} jars of {name}", make)


def _fetch(coordinates: str, sha256: str, repository: Path, target: Path) -> None:
    from jgo.config import GlobalSettings
    from jgo.constants import MAVEN_CENTRAL_URL
    from jgo.maven import MavenContext

    group, artifact, version = coordinates.split(":")
    repositories = {"central": MAVEN_CENTRAL_URL, **GlobalSettings.load().repositories}
    context = MavenContext(repo_cache=repository, remote_repos=repositories, timeout=TIMEOUT_SECONDS)
    try:
        jar = context.project(group, artifact).at_version(version).artifact().resolve()
    except (OSError, RuntimeError) as problem:  # what requests raises is an OSError
        raise DownloadFailed(f"fetching {coordinates} failed: {cause(str(problem)) or problem}") from problem
    check(jar, sha256)
    shutil.move(jar, target / jar.name)
