"""``bellwether probe certificates``: read until when the certificates of the brokers' external listeners are valid."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from bellwether.adapters.clocks import SystemClock
from bellwether.cli.probe.plugin import Chosen, measure_once, run_measurer
from bellwether.cli.probe.prober_options import ProberRun, prober_command
from bellwether.core.settings.detection import CertificateExpiry, Reachability
from bellwether.core.signals import SignalType

if TYPE_CHECKING:
    from bellwether.adapters.kubernetes.kafka_cluster.secret_reader import SecretReader
    from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
    from bellwether.probes.runtime.prober_process import PolicyProber


@prober_command(
    click.option("--source", metavar="NAME", help="Stable name of this location, such as eu-west-1a."),
    click.option(
        "--listener",
        "listeners",
        metavar="NAME",
        multiple=True,
        help="With --bootstrap: name of an external listener; repeatable.  [default: EXTERNAL]",
    ),
    kafka=True,
)
def certificates(run: ProberRun, source: str | None, listeners: tuple[str, ...]) -> None:
    """Read when the brokers' certificates expire.

    Once a minute it makes a TLS handshake with each external listener of each broker, and reports the certificate that
    expires first. Nothing is verified. The policy must enable detection.certificateExpiry.
    """
    from bellwether.adapters.kafka.brokers.broker_certificate import CertificateReader
    from bellwether.adapters.kubernetes.kafka_cluster.connection_resolver import sides
    from bellwether.probes.certificates.certificate_expiry import BrokerCertificates, measured_by

    def chosen(reader: CertificateReader, found: LeadershipPolicy, secrets: SecretReader) -> Chosen:
        detection = found.policy().detection
        outside = detection.external_reachability
        both = sides(found.spec.kafka, secrets, outside.listeners, outside.bootstrap_servers)
        reader.security = both.connection.security
        return both.connection, measured_by(detection.certificate_expiry, both.listeners)

    def measure(prober: PolicyProber) -> None:
        reader = CertificateReader()

        def enabled(found: LeadershipPolicy) -> Chosen | None:
            on = found.policy().detection.certificate_expiry.enabled
            return chosen(reader, found, prober.secrets) if on else None

        run_measurer(prober, BrokerCertificates(reader.ends, prober.clock), enabled)

    if listeners and not run.kafka:
        raise click.UsageError("--listener requires --bootstrap: with --policy the listeners are the policy's.")
    run.need_policy()
    reader = CertificateReader()
    measurer = BrokerCertificates(reader.ends, SystemClock())
    if run.kafka:
        reader.security = run.kafka.security
        settings = measured_by(CertificateExpiry(), listeners or Reachability().listeners)
        sys.exit(measure_once(measurer, (run.kafka, settings), run.output))
    if run.once:
        sys.exit(measure_once(measurer, chosen(reader, *run.read_policy()), run.output))
    run.process(SignalType.CERTIFICATE_EXPIRY, "--source", source).run(measure)
