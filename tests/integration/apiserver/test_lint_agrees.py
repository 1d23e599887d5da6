"""``bellwether lint`` and the real API server accept and refuse the same policies."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from bellwether.cli.policies.lint import check_files
from bellwether.cli.policies.object_checks import ERROR
from testkit.kubernetes.random_policies import random_policy

pytestmark = pytest.mark.apiserver

COUNT = 350
OPERATOR_ALONE = ("schedule",)
"""Fields that lint and the operator judge more strictly than the API server can."""


def test_lint_and_the_api_server_agree_on_random_policies(
    dry_run: Callable[[str, str, str], tuple[Any, str]], crds: None, namespace: str
):
    rng = random.Random(20)
    verdicts = {True: 0, False: 0}
    disagreements = []
    for number in range(COUNT):
        text = random_policy(rng)
        errors = [p for p in check_files([("policy.yaml", text)]).problems if p.severity == ERROR]
        refusal = dry_run(namespace, "leadershippolicies", text)[1]
        beyond = bool(errors) and all(p.field.endswith(OPERATOR_ALONE) for p in errors)
        verdicts[not refusal] += 1
        if bool(errors) != bool(refusal) and not (beyond and not refusal):
            disagreements.append(f"{number}: server {refusal or 'accepts'}; lint {[p.message for p in errors]}\n{text}")
    assert not disagreements, "\n".join([f"{len(disagreements)} disagreements", *disagreements[:5]])
    assert min(verdicts.values()) > COUNT / 4, verdicts
