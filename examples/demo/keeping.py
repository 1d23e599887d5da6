"""What a person can do with a demo that is kept: the commands, with the names and addresses of this run.

In: a ``Stage``. Out: the text that ``__main__`` prints before it waits for Ctrl-C.
"""

from __future__ import annotations

import shutil
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

from demo.stage import NAMESPACE, POLICY, VANTAGES, Stage
from realparts.kubernetes_binaries import kubectl


def commands(stage: Stage, broker: int, delay_milliseconds: int) -> str:
    """The whole text; ``broker`` is the one to break again."""
    return "\n".join(_lines(stage, broker, delay_milliseconds))


def _lines(stage: Stage, broker: int, delay: int) -> Iterator[str]:
    paths = [str(Path(sys.executable).parent)]
    if not shutil.which("kubectl"):
        paths.append(str(kubectl().parent))
    named = f"--namespace {NAMESPACE}"
    url = f"{stage.proxy_url}/proxies/{stage.kafka.broker(broker).proxy_name}"
    control = stage.kafka.slow_disk(broker).control
    process, agent = stage.kafka.broker(broker).process.pid, stage.pid(f"agent-{broker}")
    prober = stage.pid(f"reachability-{VANTAGES[-1]}")
    yield "Everything is left up, and the traffic goes on. In another terminal:"
    yield ""
    yield f"  export KUBECONFIG={stage.api.kubeconfig}"
    yield f"  export PATH={':'.join(paths)}:$PATH"
    yield ""
    yield "To look at it (the names are those of README, whose commands work here, too):"
    yield ""
    yield f"  bellwether status --policy {POLICY} {named}"
    yield f"  bellwether explain {broker} {named}"
    yield f"  bellwether history --policy {POLICY} {named}"
    yield f"  kubectl {named} get lp,bh"
    yield ""
    yield f"To cut broker {broker}'s external listener again, and to repair it:"
    yield ""
    yield f"""  curl -d '{{"enabled": false}}' {url}"""
    yield f"""  curl -d '{{"enabled": true}}' {url}"""
    yield ""
    yield f"To slow its disk by {delay} ms a write (its leaders leave; quarantine is off again, as nothing here"
    yield "would start a broker that was shut down), and to make it fast again:"
    yield ""
    yield f"  printf '{octal(delay)}' 1<> {control}"
    yield f"  printf '{octal(0)}' 1<> {control}"
    yield ""
    yield "To freeze its process, together with the agent that would resume it, and to go on:"
    yield ""
    yield f"  kill -STOP {agent} {process}"
    yield f"  kill -CONT {process} {agent}"
    yield ""
    yield "To silence a prober, and to let it go on:"
    yield ""
    yield f"  kill -STOP {prober}"
    yield f"  kill -CONT {prober}"
    yield ""
    yield "To demote the broker by hand, and to end that:"
    yield ""
    yield f'  bellwether demote {broker} --policy {POLICY} {named} --reason "trying it" --for 10m'
    yield f"  bellwether release {broker} --policy {POLICY} {named}"
    yield ""
    yield "To stop every move of leaders, and to allow moves again:"
    yield ""
    yield "  bellwether suspend --all"
    yield "  bellwether resume --all"
    yield ""
    yield f"Kafka, internal listeners  {stage.kafka.bootstrap}"
    yield f"Kafka, external listeners  {stage.kafka.external_bootstrap}"
    yield f"Bellwether's metrics       http://127.0.0.1:{stage.metrics_port}/metrics"
    yield ""
    yield "Ctrl-C here stops all of it."


def octal(milliseconds: int) -> str:
    """The control file of a slow disk (integers for syncs and for writes), as printf's escapes."""
    return "".join(f"\\{byte:03o}" for byte in struct.pack("=ii", milliseconds, milliseconds))
