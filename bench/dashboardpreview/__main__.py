"""``python -m dashboardpreview``: both dashboards in health and in a fault, in ``reports/dashboards``.

Real brokers, a real operator and real probers, scraped by a real Prometheus with the chart's rules. The fault cuts the
external listener of broker 2 and, after its demotion, that of broker 3. Each page is HTML; Chromium, where it is
installed (``apt-get install chromium``), makes a picture of its first screen.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from dashboardpreview.page import SCREEN, WIDTH, Page
from realparts.apiserver import ApiServer
from realparts.kafka import KafkaCluster
from testkit.alerts.dashboard_panels import boards
from testkit.alerts.monitored_site import WatchedSite, monitored_site
from waiting import until

ROOT = Path(__file__).resolve().parents[2]
REPORTS = ROOT / "reports" / "dashboards"
SETTLING_SECONDS, CALM_SECONDS, DEMOTED_SECONDS, SYSTEMIC_SECONDS = 20.0, 60.0, 60.0, 45.0
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


def main() -> None:
    """Write all pages and pictures."""
    REPORTS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as directory, KafkaCluster(3, controllers=1) as kafka, ApiServer() as server:
        server.apply(ROOT / "crds")
        with monitored_site(server, kafka, Path(directory), "kafka") as watched:
            time.sleep(SETTLING_SECONDS)
            start = time.time()
            time.sleep(CALM_SECONDS)
            until(lambda: all(watched.site.verdict(b)[0] == "Healthy" for b in (1, 2, 3)), 120, "all are healthy")
            picture(watched, "health", start)
            assert kafka.proxy is not None
            kafka.proxy.cut("broker-2")
            time.sleep(DEMOTED_SECONDS)
            kafka.proxy.cut("broker-3")
            time.sleep(SYSTEMIC_SECONDS)
            picture(watched, "fault", start)


def picture(watched: WatchedSite, name: str, start: float) -> None:
    """Write each dashboard as it is now."""
    page = Page(watched.prometheus, start, time.time())
    for file, board in boards().items():
        target = REPORTS / f"{Path(file).stem}-{name}.html"
        target.write_text(page.draw(board))
        if (chromium := shutil.which("chromium")) is not None:
            with tempfile.TemporaryDirectory() as profile:
                drawn = (f"--user-data-dir={profile}", f"--window-size={WIDTH},{SCREEN}")
                screenshot = f"--screenshot={target.with_suffix('.png')}"
                subprocess.run(
                    [chromium, *FLAGS, *drawn, screenshot, target.as_uri()],
                    check=True,
                    capture_output=True,
                    timeout=120,
                )
        print(target)


if __name__ == "__main__":
    main()
