"""Files behind URLs, without a network: fsspec's memory, and what packages may raise."""

from __future__ import annotations

import fsspec
import pytest

from traceparse.errors import InputError, MissingExtraError
from traceparse.ingest.remote import Remote, RemoteFile, told


@pytest.fixture
def memory():
    files = fsspec.filesystem("memory")
    yield files
    files.store.clear()
    files.pseudo_dirs[:] = [""]


class NoCredentialsError(Exception):
    """As botocore names it."""


class ReadTimeoutError(Exception):
    """As urllib3 names it."""


class _Refusal(Exception):  # noqa: N818 - as aiohttp's is none by its name
    status = 403


@pytest.mark.parametrize(
    ("url", "error", "expected"),
    [
        pytest.param(
            "s3://b/x",
            FileNotFoundError("b/x"),
            "no such file or folder, or no access to it; check the URL",
            id="missing",
        ),
        pytest.param(
            "s3://b/x",
            NoCredentialsError("Unable to locate credentials"),
            "no credentials were found (Unable to locate credentials); set AWS_ACCESS_KEY_ID "
            "and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or FSSPEC_S3_ANON=true for what is public",
            id="no credentials",
        ),
        pytest.param(
            "az://b/x",
            NoCredentialsError(),
            "no credentials were found; set those that its fsspec package reads",
            id="no credentials of another store",
        ),
        pytest.param(
            "s3://b/x",
            PermissionError("Access Denied"),
            "access is denied (Access Denied); check the credentials, and what they may read",
            id="denied",
        ),
        pytest.param(
            "https://h/x",
            _Refusal("403"),
            "access is denied (403); check the credentials, and what they may read",
            id="denied by the web",
        ),
        pytest.param(
            "s3://b/x",
            ReadTimeoutError("15 s"),
            "no answer in time (15 s); check the network, and try again",
            id="late",
        ),
        pytest.param(
            "s3://b/x",
            TimeoutError(),
            "no answer in time; check the network, and try again",
            id="late without words",
        ),
        pytest.param(
            "s3://b/x",
            RuntimeError("odd\nnews"),
            "cannot be read: RuntimeError (odd news); check the URL and the network",
            id="anything",
        ),
    ],
)
def test_errors_of_any_type_become_one_line(url, error, expected):
    with pytest.raises(InputError) as caught, told(url):
        raise error
    assert str(caught.value) == f"{url}: {expected}"
    assert caught.value.__cause__ is error


def test_a_secret_is_in_no_error():
    url = "https://me:pass%40word@host/x.json?X-Amz-Signature=f00"
    error = RuntimeError(f"GET {url} as me with pass@word, X-Amz-Signature=f00")
    with pytest.raises(InputError) as caught, told(url):
        raise error
    assert str(caught.value) == (
        "https://***@host/x.json?***: cannot be read: RuntimeError "
        "(GET https://***@host/x.json?*** as me with ***, ***); check the URL and the network"
    )
    assert caught.value.__cause__ is None, "a traceback would show it"
    assert "f00" not in repr(Remote(url))
    assert str(Remote(url)) == "https://***@host/x.json?***"


def test_an_error_of_ours_stays_as_it_is():
    with pytest.raises(InputError, match=r"^ours$"), told("s3://b/x"):
        raise InputError("ours")


@pytest.mark.parametrize(
    ("url", "package"),
    [
        ("s3://b/x", "s3fs"),
        ("https://h/x", "aiohttp"),
        ("sftp://h/x", "paramiko"),
        ("odd://h/x", None),
    ],
)
def test_a_package_that_is_missing_is_named(monkeypatch, url, package):
    def without(_url):
        raise ImportError("Install what is missing")

    monkeypatch.setattr("fsspec.core.url_to_fs", without)
    with pytest.raises(MissingExtraError) as caught:
        Remote(url).look_up()
    protocol = url.partition("://")[0]
    assert str(caught.value) == (
        f"{url}: a package that reads {protocol}:// is not installed: "
        + (f"pip install {package}" if package else "Install what is missing")
    )


def test_a_file_is_like_one_on_disk(memory):
    memory.pipe("/run/rank0_trace.json", b"0123456789")
    memory.pipe("/run/rank0_facts.json", b"{}")
    remote = Remote("memory://run/rank0_trace.json")
    assert (remote.name, remote.size(), str(remote)) == ("rank0_trace.json", 10, remote.url)
    with remote.open() as file:
        assert file.read(4) == b"0123"
        file.seek(8)
        assert file.read(4) == b"89"
        assert file.read(4) == b""
    beside = remote.with_name("rank0_facts.json")
    assert beside.exists()
    assert not remote.with_name("rank1_facts.json").exists()
    assert remote.is_of_this_process
    assert not Remote("s3://b/x").is_of_this_process


def test_a_folder_is_no_file(memory):
    memory.pipe("/run/rank0.json", b"")
    with pytest.raises(InputError, match=r"^memory://run: this is no regular file; give a tra"):
        Remote("memory://run").open()


@pytest.mark.usefixtures("memory")
def test_what_is_not_there_is_said():
    with pytest.raises(
        InputError, match=r"^memory://run/x: no such file or folder, or no acce"
    ):
        Remote("memory://run/x").open()


def test_a_query_of_the_web_is_no_part_of_a_name():
    signed = Remote("https://host/run/rank3.json.gz?X-Amz-Signature=a/b")
    assert (signed.name, signed.is_signed) == ("rank3.json.gz", True)
    assert Remote("s3://b/what?.json").name == "what?.json"
    assert not Remote("s3://b/what?.json").is_signed
    assert signed.with_name("x.json").url == "https://host/run/x.json"


def test_a_version_is_that_of_what_is_there(memory):
    remote = Remote("memory://run/x.json")
    memory.pipe("/run/x.json", b"1")
    first = remote.version()
    assert first == remote.version()
    memory.pipe("/run/x.json", b"2")
    assert remote.version() != first, "the size is the same, and the time another"
    assert Remote("s3://b/x", {"size": 3, "type": "file"}).version() is None
    tagged = Remote("s3://b/x", {"size": 3, "type": "file", "ETag": '"a"'})
    assert tagged.version() == "s3://b/x 3 {'ETag': '\"a\"'}"
    assert Remote("s3://b/x", {"size": None}).size() is None


class _Stream:
    """What cannot be read from another place, as the web's without ranges."""

    def __init__(self) -> None:
        self.left = b"abcdefgh"

    def read(self, size):
        found, self.left = self.left[:size], self.left[size:]
        return found

    def seek(self, _place):
        raise ValueError("Cannot seek streaming HTTP file")

    def close(self):
        self.left = b""


def test_what_cannot_seek_is_read_again():
    with RemoteFile("https://h/x", _Stream) as file:
        assert file.read(5) == b"abcde"
        file.seek(2)
        assert file.read(3) == b"cde"
        file.seek(99)
        assert file.read(3) == b""
