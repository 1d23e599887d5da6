"""What a person can do with a demo that is kept: the commands, with the names and addresses of this run.

In: a ``Stage``. Out: the text that ``__main__`` prints before it waits for Ctrl-C.
"""

from __future__ import annotations

import shutil
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

from demo.stage import NAMESPACE, POLICY, Stage
from realparts.kubernetes_binaries import kubectl


def commands(stage: Stage, broker: int, delay_milliseconds: int) -> str:
    """The whole text; ``broker`` is the one to break again."""
    return "\n".join(_lines(stage, broker, delay_milliseconds))


def _lines(stage: Stage, broker: int, delay: int) -> Iterator[str]:
    paths = [str(Path(sys.executable).parent)]
    if not shutil.which("kubectl"):
        paths.append(str(kubectl().parent))
    yield "Everything is left up, and the traffic goes on. In another terminal, first:"
    yield ""
    yield f"  export KUBECONFIG={stage.api.kubeconfig} PATH={':'.join(paths)}:$PATH"
    yield ""
    yield "Look at it; README's commands work here, too, as the names are the same:"
    yield ""
    yield f"  kubectl --namespace {NAMESPACE} get lp,bh"
    yield f"  bellwether explain {broker} --namespace {NAMESPACE}"
    yield f"  bellwether history {POLICY} --namespace {NAMESPACE}"
    yield ""
    yield f"Break broker {broker} again, one at a time, and repair it:"
    yield ""
    url = f"{stage.proxy_url}/proxies/{stage.kafka.broker(broker).proxy_name}"
    control = stage.kafka.slow_disk(broker).control
    yield f"""  curl -d '{{"enabled": false}}' {url}   # cut its external listener"""
    yield f"""  curl -d '{{"enabled": true}}' {url}    # and repair it"""
    yield f"  printf '{octal(delay)}' 1<> {control}   # slow its disk by {delay} ms a write"
    yield f"  printf '{octal(0)}' 1<> {control}   # and make it fast again"
    yield ""
    yield "Or demote it by hand:"
    yield ""
    yield f'  bellwether demote {broker} --policy {POLICY} --namespace {NAMESPACE} --reason "trying it out" --for 10m'
    yield f"  bellwether release {broker} --policy {POLICY} --namespace {NAMESPACE}"
    yield ""
    yield f"Kafka, internal listeners  {stage.kafka.bootstrap}"
    yield f"Kafka, external listeners  {stage.kafka.external_bootstrap}"
    yield f"Bellwether's metrics       http://127.0.0.1:{stage.metrics_port}/metrics"
    yield ""
    yield "Ctrl-C here stops all of it."


def octal(milliseconds: int) -> str:
    """The control file of a slow disk (two integers, for syncs and for writes), as printf's escapes."""
    return "".join(f"\\{byte:03o}" for byte in struct.pack("=ii", milliseconds, milliseconds))
