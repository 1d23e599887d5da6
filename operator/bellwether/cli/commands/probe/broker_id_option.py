"""Broker id option of a sidecar: a number, or the name of its pod.

Names of pods of a StatefulSet and of Strimzi's node pools end with the broker's id. The downward API can pass a pod's
name to a container, but cannot extract the id from it.
"""

from __future__ import annotations

import re

import click

_POD = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?-(0|[1-9][0-9]{0,9})")
LARGEST = 2147483647


class BrokerId(click.ParamType[int]):
    """``3`` and ``my-cluster-brokers-3`` are broker 3."""

    name = "id|pod"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The id. Fails if the value is not an id and does not end with one."""
        text = str(value)
        pod = _POD.fullmatch(text)
        number = pod.group(2) if pod else text
        if not (number.isascii() and number.isdigit()) or int(number) > LARGEST:
            self.fail(
                f"{text!r} is neither a broker id nor a pod name that ends with one: use a value such as 3 or kafka-3",
                param,
                ctx,
            )
        return int(number)
