"""``bellwether lint`` and the real API server accept and refuse the same policies."""

from __future__ import annotations

import json
import random
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from bellwether.cli.policies.policy_files import check_files
from realparts.apiserver import ApiServer
from testkit.kubernetes.random_policies import random_policy, random_source
from waiting import limit

pytestmark = pytest.mark.apiserver

COUNT = 700
OPERATOR_ALONE = ("schedule",)
"""Fields that lint and the operator judge more strictly than the API server can."""


class Judge:
    """The API server's word on the text of one policy, by a dry run with strict validation."""

    def __init__(self, server: ApiServer, namespace: str, plural: str) -> None:
        self._url = (
            f"{server.url}/apis/bellwether.dev/v1alpha1/namespaces/{namespace}/{plural}"
            "?dryRun=All&fieldValidation=Strict"
        )
        self._headers = {"Authorization": f"Bearer {server.token()}", "Content-Type": "application/yaml"}
        self._context = ssl.create_default_context(cafile=str(server.ca))

    def refusal(self, text: str) -> str:
        """Why it is refused; empty if it is accepted."""
        request = urllib.request.Request(self._url, text.encode(), self._headers, method="POST")  # noqa: S310
        try:
            with urllib.request.urlopen(request, context=self._context, timeout=limit(10)):  # noqa: S310
                return ""
        except urllib.error.HTTPError as error:
            status = json.loads(error.read())
            if error.code not in (400, 422):
                raise
            return str(status["message"])


@pytest.mark.parametrize(
    ("plural", "random_object"), [("leadershippolicies", random_policy), ("signalsources", random_source)]
)
def test_lint_and_the_api_server_agree_on_random_objects(
    apiserver: ApiServer,
    crds: None,
    namespace: str,
    plural: str,
    random_object: Callable[[random.Random], str],
    tmp_path: Path,
):
    file = tmp_path / "object.yaml"
    judge, rng = Judge(apiserver, namespace, plural), random.Random(20)
    verdicts = {True: 0, False: 0}
    disagreements = []
    for number in range(COUNT):
        text = random_object(rng)
        file.write_text(text)
        errors = check_files([str(file)]).errors
        refusal = judge.refusal(text)
        beyond = bool(errors) and all(p.field.endswith(OPERATOR_ALONE) for p in errors)
        verdicts[not refusal] += 1
        if bool(errors) != bool(refusal) and not (beyond and not refusal):
            disagreements.append(f"{number}: server {refusal or 'accepts'}; lint {[p.message for p in errors]}\n{text}")
    assert not disagreements, "\n".join([f"{len(disagreements)} disagreements", *disagreements[:5]])
    assert min(verdicts.values()) > COUNT / 4, verdicts
