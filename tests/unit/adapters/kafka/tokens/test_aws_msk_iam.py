"""Tokens of Amazon MSK: their form, whose credentials sign them, and every way in which there are none."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlsplit

import pytest

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kafka.tokens import aws_msk_iam
from bellwether.adapters.kafka.tokens.token_source import TokenSource
from bellwether.kafka_connection import AwsMskIam, HttpProxy
from bellwether.ports.errors import BellwetherError, Transient, Unauthenticated
from realparts.awssts import Sts
from realparts.httpproxy import HttpProxy as RealProxy
from testkit.messages import assert_wording
from waiting import limit

EMPTY = hashlib.sha256(b"").hexdigest()


def signature(url: str, secret: str, *, added_later: tuple[str, ...] = (), payload: str = EMPTY) -> str:
    """The signature of a presigned GET, of which ``added_later`` and the signature itself are not signed."""
    parts = urlsplit(url)
    asked = parse_qsl(parts.query, keep_blank_values=True)
    fields = dict(asked)
    signed = sorted((quote(k, safe="-_.~"), quote(v, safe="-_.~")) for k, v in asked if k not in added_later)
    query = "&".join(f"{name}={value}" for name, value in signed if name != "X-Amz-Signature")
    canonical = "\n".join(("GET", parts.path or "/", query, f"host:{parts.netloc}", "", "host", payload))
    _, *scope = fields["X-Amz-Credential"].split("/")
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    to_sign = "\n".join(("AWS4-HMAC-SHA256", fields["X-Amz-Date"], "/".join(scope), digest))
    key = f"AWS4{secret}".encode()
    for part in scope:
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, to_sign.encode(), hashlib.sha256).hexdigest()


def opened(token: str) -> tuple[str, dict[str, str]]:
    """The URL in a token of Amazon MSK, and the fields of its query."""
    url = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()
    return url, dict(parse_qsl(urlsplit(url).query, keep_blank_values=True))


SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
NAMES = (("region", "spec.kafka.sasl.awsMskIam.region"),)
KEY = AwsMskIam(region="eu-central-1", access_key_id="AKIDEXAMPLE", secret_access_key=SECRET, names=NAMES)
CHAIN = AwsMskIam(region="eu-central-1", names=(("region", "spec.kafka.sasl.workloadIdentity (orders):"),))
ROLE = "arn:aws:iam::111122223333:role/orders"


@pytest.fixture(autouse=True)
def no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Nothing of this machine's own; no instance metadata is asked for."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_ROLE_ARN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    aws_msk_iam._ambient.cache_clear()
    yield
    aws_msk_iam._ambient.cache_clear()


@pytest.fixture
def sts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sts]:
    with Sts() as running:
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", running.url)
        yield running


@pytest.fixture
def web_identity(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sts: Sts) -> Path:
    """What IRSA puts into a pod; the file with the token."""
    token = tmp_path / "web-identity"
    token.write_text("w3b-identity")
    monkeypatch.setenv("AWS_ROLE_ARN", "arn:aws:iam::111122223333:role/pod")
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(token))
    return token


def refusal(origin: AwsMskIam) -> BellwetherError:
    with pytest.raises(BellwetherError) as caught:
        aws_msk_iam.sign(origin)
    assert str(caught.value).startswith(origin.called("region"))
    assert not any(secret in str(caught.value) for secret in (SECRET, "w3b-identity", "sts-secret", "sts-session"))
    return caught.value


def test_the_verification_gives_the_known_answer_of_aws_documentation():
    # Authenticating Requests: Using Query Parameters (AWS Signature Version 4), Amazon S3 API reference.
    url = (
        "https://examplebucket.s3.amazonaws.com/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256"
        "&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request"
        "&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host"
    )
    found = signature(url, "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", payload="UNSIGNED-PAYLOAD")
    assert found == "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"


def test_token_is_presigned_connect_to_cluster_s_region():
    grant = aws_msk_iam.sign(KEY)
    url, fields = opened(grant.token)
    assert url.startswith("https://kafka.eu-central-1.amazonaws.com/?Action=kafka-cluster%3AConnect&")
    assert fields.keys() == {
        "Action", "X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Date", "X-Amz-Expires", "X-Amz-SignedHeaders",
        "X-Amz-Signature", "User-Agent",
    }  # fmt: skip
    began = datetime.strptime(fields["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    assert abs(SystemClock().now() - began) < timedelta(seconds=limit(60))
    assert fields["X-Amz-Credential"] == f"AKIDEXAMPLE/{began:%Y%m%d}/eu-central-1/kafka-cluster/aws4_request"
    assert fields["X-Amz-Expires"] == "900"
    assert fields["X-Amz-Signature"] == signature(url, SECRET, added_later=("User-Agent",))
    assert "=" not in grant.token
    assert grant.token not in repr(grant)
    assert 0 < grant.seconds < 900, "renewed while it is valid"


def test_temporary_credentials_are_signed_with_their_session_token():
    temporary = AwsMskIam(
        region="eu-central-1", access_key_id="ASIA1", secret_access_key=SECRET, session_token="s3ssion"
    )
    url, fields = opened(aws_msk_iam.sign(temporary).token)
    assert fields["X-Amz-Security-Token"] == "s3ssion"
    assert fields["X-Amz-Signature"] == signature(url, SECRET, added_later=("User-Agent",))
    assert "s3ssion" not in repr(temporary)


def test_another_secret_has_another_signature():
    url, fields = opened(aws_msk_iam.sign(KEY).token)
    assert fields["X-Amz-Signature"] != signature(url, SECRET[:-1], added_later=("User-Agent",))


def test_the_standard_chain_takes_an_access_key_of_the_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAENVIRONMENT")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    _, fields = opened(aws_msk_iam.sign(CHAIN).token)
    assert fields["X-Amz-Credential"].startswith("AKIAENVIRONMENT/")


def test_irsa_exchanges_the_web_identity_of_the_pod_once(web_identity: Path, sts: Sts):
    _, fields = opened(aws_msk_iam.sign(CHAIN).token)
    aws_msk_iam.sign(CHAIN)
    (asked,) = sts.asked
    assert asked["Action"] == "AssumeRoleWithWebIdentity"
    assert (asked["WebIdentityToken"], asked["RoleArn"]) == ("w3b-identity", "arn:aws:iam::111122223333:role/pod")
    url, fields = opened(aws_msk_iam.sign(CHAIN).token)
    assert fields["X-Amz-Security-Token"] == "sts-session-1"
    assert fields["X-Amz-Signature"] == signature(url, sts.keys["ASIA0"], added_later=("User-Agent",))


def test_a_role_is_assumed_with_the_credentials_of_the_pod(web_identity: Path, sts: Sts):
    origin = AwsMskIam(region="eu-central-1", role_arn=ROLE)
    url, fields = opened(aws_msk_iam.sign(origin).token)
    assert [asked["Action"] for asked in sts.asked] == ["AssumeRoleWithWebIdentity", "AssumeRole"]
    assert (sts.asked[1]["RoleArn"], "Credential=ASIA0/" in sts.asked[1]["signed"]) == (ROLE, True)
    assert fields["X-Amz-Signature"] == signature(url, sts.keys["ASIA1"], added_later=("User-Agent",))


def test_no_proxy_of_environment_is_used_and_chosen_one_is(
    web_identity: Path, sts: Sts, monkeypatch: pytest.MonkeyPatch
):
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    aws_msk_iam.sign(CHAIN)
    assert len(sts.asked) == 1
    with RealProxy() as proxy:
        aws_msk_iam.sign(AwsMskIam(region="eu-central-1", proxy=HttpProxy(url=proxy.url)))
        assert len(proxy.asked) == 1
    assert len(sts.asked) == 2


def test_a_proxy_that_is_down_is_named(web_identity: Path, sts: Sts):
    error = refusal(AwsMskIam(region="eu-central-1", proxy=HttpProxy(url="http://127.0.0.1:1", name="proxyUrl")))
    assert isinstance(error, Transient)
    assert "through proxyUrl http://127.0.0.1:1" in str(error)


def test_no_credentials_at_all_say_where_to_give_them():
    error = refusal(CHAIN)
    assert isinstance(error, Unauthenticated)
    assert_wording(str(error))


def test_credentials_that_are_given_later_are_found(monkeypatch: pytest.MonkeyPatch):
    refusal(CHAIN)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIALATER")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    assert opened(aws_msk_iam.sign(CHAIN).token)[1]["X-Amz-Credential"].startswith("AKIALATER/")


def test_role_that_may_not_be_assumed_names_only_code(web_identity: Path, sts: Sts, caplog: pytest.LogCaptureFixture):
    caplog.set_level("DEBUG")
    sts.refuse = "AccessDenied"
    error = refusal(CHAIN)
    assert isinstance(error, Unauthenticated)
    assert_wording(str(error))
    sts.refuse = ""
    aws_msk_iam.sign(CHAIN)
    assert [one for one in caplog.records if "botocore" in one.name] == [], "it logs what it is given"


def test_sts_that_is_down_is_tried_again_later(web_identity: Path, sts: Sts):
    sts.stop()
    error = refusal(CHAIN)
    assert isinstance(error, Transient)
    assert_wording(str(error))


def test_unmounted_web_identity_is_no_fault_of_broker(web_identity: Path):
    web_identity.unlink()
    error = refusal(CHAIN)
    assert isinstance(error, Unauthenticated)
    assert_wording(str(error))


def test_a_source_of_tokens_signs_and_keeps_them():
    source = TokenSource(KEY)
    token = source.token(limit(30))
    assert opened(token.text)[1]["X-Amz-Credential"].startswith("AKIDEXAMPLE/")
    assert source.token(0) is token


@pytest.mark.parametrize("region", ["", "Frankfurt", "eu-central-1.evil.example/?", "eu-central-1\n"])
def test_region_that_is_none_is_refused_before_anything_is_signed(region: str):
    with pytest.raises(ValueError, match="is not an AWS region, such as eu-central-1"):
        AwsMskIam(region=region)
