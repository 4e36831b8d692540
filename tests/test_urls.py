from __future__ import annotations

import pytest

from traceparse.urls import is_url, protocol_of, redacted, shown


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("s3://bucket/run/rank0.json", "s3://bucket/run/rank0.json"),
        ("s3://bucket/run/rank?.json", "s3://bucket/run/rank?.json"),
        ("ftp://me:pass@host/a", "ftp://***@host/a"),
        ("ftp://me:p@ss@host/a@b", "ftp://***@host/a@b"),
        ("https://token@host/a", "https://***@host/a"),
        ("https://host/a.json?X-Amz-Signature=f00&b=c", "https://host/a.json?***"),
        ("https://host?sig=f00", "https://host?***"),
        ("abfs://container@account.dfs.core.windows.net/a", None),
        ("abfs://me:key@account/a", "abfs://***@account/a"),
        ("runs/rank?a=b.json", None),
    ],
)
def test_what_is_secret_in_a_url_is_not_shown(url, expected):
    assert shown(url) == (url if expected is None else expected)


def test_what_is_a_url():
    assert is_url("s3://bucket/run")
    assert is_url("gs+x://a\nb")
    assert not is_url("C:\\traces")
    assert not is_url("runs/s3://x")
    assert not is_url(b"s3://bucket")
    assert protocol_of("S3://Bucket") == "s3"


def test_urls_inside_a_text_are_redacted():
    text = "403, url='https://u:p@host/x?sig=f00', and <ftp://a:b@c/d> too"
    assert redacted(text) == "403, url='https://***@host/x?***', and <ftp://***@c/d> too"
