import pytest

from bellwether_load.store.store_uri import Redacted
from testkit.messages import assert_wording


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("/data/store", "/data/store"),
        ("relative", "relative"),
        ("file:///data", "file:///data"),
        ("s3://bucket/path", "s3://bucket/path"),
        ("s3://AKIA:topsecret@bucket/path?region=x&scheme=http", "s3://bucket/path"),
        ("s3://AKIA:top@secret@bucket/path", "s3://bucket/path"),
        ("abfs://account:longkey==@files/path", "abfs://files/path"),
        ("gs://anonymous@bucket", "gs://bucket"),
    ],
)
def test_a_uri_is_shown_without_user_and_options(uri, shown):
    assert str(Redacted(uri)) == shown


def test_a_message_that_repeats_the_uri_is_cleaned():
    uri = "s3://AKIAEXAMPLE:top%2Fsecret@bucket/path?session_token=abcdef"
    shown = Redacted(uri).clean(f"cannot open {uri}: key AKIAEXAMPLE with top/secret, token abcdef, refused")
    assert_wording(shown)


def test_region_and_endpoint_are_not_redacted():
    cleaned = Redacted("s3://b/p?region=eu-west-1&endpoint_override=minio:9000").clean("no answer from minio:9000")
    assert cleaned == "no answer from minio:9000"


def test_a_very_short_name_does_not_eat_the_message():
    assert Redacted("s3://a:b@bucket/p").clean("a bad bucket") == "a bad bucket"
