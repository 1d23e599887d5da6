"""A Kafka broker that authenticates as Amazon MSK with IAM does: OAUTHBEARER, a presigned request as the token.

In: a folder. Out: a cluster of one broker with the listener SECURE, and the access keys that it knows. It checks tokens
by ``MskIamValidator.java``, which needs a JDK. Tests of that way to authenticate start it.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from realparts import jvm, kafka_jars
from realparts.kafka import KafkaCluster
from realparts.started import Started
from realparts.tls import Authority

REGION = "eu-central-1"
_LISTENER = "listener.name.secure"
_LOGIN = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


def compiler() -> str | None:
    """The Java compiler next to the Java that runs Kafka, or on PATH; None without one."""
    beside = jvm.java().path.resolve().with_name("javac")
    return str(beside) if beside.exists() else shutil.which("javac")


class MskKafka(Started):
    """One broker. ``keys`` maps access key ids to their secrets. A context manager."""

    def __init__(self, directory: Path, keys: dict[str, str]) -> None:
        classes = directory / "classes"
        found = compiler()
        if found is None:
            raise RuntimeError("the broker's validator needs a Java compiler: install a JDK")
        source = Path(__file__).with_name("MskIamValidator.java")
        jars = f"{kafka_jars.folder()}/*"
        subprocess.run([found, "--release", "17", "-cp", jars, "-d", classes, source], check=True)
        self.kafka = KafkaCluster(
            1,
            directory=directory / "kafka",
            proxied=False,
            sasl_ssl=True,
            heap="192m",
            classes=[classes],
            jvm_options=[f"-Dmsk.region={REGION}", *(f"-Dmsk.secret.{key}={secret}" for key, secret in keys.items())],
            properties={
                f"{_LISTENER}.sasl.enabled.mechanisms": "OAUTHBEARER",
                f"{_LISTENER}.oauthbearer.sasl.jaas.config": f"{_LOGIN} required;",
                f"{_LISTENER}.oauthbearer.sasl.server.callback.handler.class": "MskIamValidator",
            },
        )
        if self.kafka._authority is None:
            raise RuntimeError("the cluster has no secure listener")
        self.authority: Authority = self.kafka._authority

    @property
    def bootstrap(self) -> tuple[str, ...]:
        """The listener with TLS and IAM authentication."""
        if self.kafka.security is None:
            raise RuntimeError("the cluster has no secure listener")
        return tuple(self.kafka.security.bootstrap.split(","))

    def start(self) -> None:
        """Start the broker."""
        self.kafka.start()

    def stop(self) -> None:
        """End it."""
        self.kafka.stop()
