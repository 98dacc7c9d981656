import gzip
import hashlib
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from swf_samples import job_line

from workloads.errors import WorkloadError
from workloads.logs.archive import BASE_URL, LOGS, ArchiveLog, fetch_log, find_log
from workloads.logs.cache import cache_folder
from workloads.logs.log import ArchiveWorkload
from workloads.streams import Streams

TEXT = "; MaxProcs: 8\n" + "".join(
    f"{job_line(job_number=number, submit_time=number * 7919 % 10**6)}\n"
    for number in range(1, 3000)
)
CONTENT = gzip.compress(TEXT.encode(), mtime=0)
FILE = "KTH-SP2-1996-2.1-cln.swf.gz"


class Server(ThreadingHTTPServer):
    """A loopback archive whose faults a test chooses."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.content = CONTENT
        self.etag: str | None = '"one"'
        self.ranges = True
        self.stop_after: list[int] = []  # bytes after which the next answers break off
        self.status: list[int] = []  # answers to give before any file
        self.length = ""  # announced instead of the right one
        self.sent = 0  # bytes
        self.claim = 0  # bytes to announce beyond what is sent
        self.requests: list[tuple[str, str | None]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/archive"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *arguments: object) -> None:
        pass

    def do_GET(self) -> None:
        asked = self.headers.get("Range")
        self.server.requests.append((self.path, asked))
        if self.server.status:
            self.send_error(self.server.status.pop(0))
            return
        content, start = self.server.content, 0
        fits = self.headers.get("If-Range") in (None, self.server.etag)
        if asked and self.server.ranges and fits:
            start = int(re.match(r"bytes=(\d+)-", asked)[1])
            if start >= len(content):
                self.send_error(416)
                return
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        else:
            self.send_response(200)
        if self.server.etag:
            self.send_header("ETag", self.server.etag)
        length = self.server.length or str(len(content) - start + self.server.claim)
        self.send_header("Content-Length", length)
        self.end_headers()
        end = start + self.server.stop_after.pop(0) if self.server.stop_after else len(content)
        for place in range(start, end, 1 << 16):
            try:
                self.server.sent += self.wfile.write(content[place : min(place + (1 << 16), end)])
            except OSError:
                break


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def names(folder):
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


def test_a_log_is_fetched_once_with_progress_and_then_cached(server, tmp_path):
    seen = []
    path = fetch_log("kth-sp2", tmp_path, server.url, lambda *step: seen.append(step))
    assert path == tmp_path / FILE
    assert path.read_bytes() == CONTENT
    assert names(tmp_path) == [FILE]
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert fetch_log("KTH-SP2", tmp_path, server.url) == path
    assert server.requests == [(f"/archive/l_kth_sp2/{FILE}", None)]


def test_a_broken_transfer_is_resumed_where_it_broke(server, tmp_path):
    server.stop_after = [1000, 500]
    seen = []
    path = fetch_log("KTH-SP2", tmp_path, server.url, lambda *step: seen.append(step))
    assert path.read_bytes() == CONTENT
    assert [asked for _, asked in server.requests] == [None, "bytes=1000-", "bytes=1500-"]
    assert [there for there, _ in seen][:3] == [1000, 1500, len(CONTENT)]
    assert names(tmp_path) == [FILE]


def test_a_later_call_takes_up_what_an_earlier_one_left(server, tmp_path):
    server.stop_after = [700]
    with pytest.raises(WorkloadError) as refusal:
        fetch_log("KTH-SP2", tmp_path, server.url, attempts=1)
    assert str(refusal.value) == (
        f"{server.url}/l_kth_sp2/{FILE} cannot be fetched: the transfer broke off after 700 of "
        f"{len(CONTENT):,} bytes; the log KTH-SP2 is at {BASE_URL}/l_kth_sp2/index.html: fetch "
        f"it by hand and use workload=swf workload.path=FILE, or put it into {tmp_path}"
    )
    assert names(tmp_path) == [f"{FILE}.part", f"{FILE}.part.version"]
    assert fetch_log("KTH-SP2", tmp_path, server.url).read_bytes() == CONTENT
    assert server.requests[-1][1] == "bytes=700-"
    assert names(tmp_path) == [FILE]


def test_a_file_that_changed_in_between_is_fetched_anew(server, tmp_path):
    server.stop_after = [700]
    with pytest.raises(WorkloadError, match="broke off"):
        fetch_log("KTH-SP2", tmp_path, server.url, attempts=1)
    server.content, server.etag = gzip.compress(TEXT.upper().encode(), mtime=0), '"two"'
    assert fetch_log("KTH-SP2", tmp_path, server.url).read_bytes() == server.content
    assert len(server.requests) == 2


def test_a_mixture_of_two_versions_is_noticed_without_any_tag(server, tmp_path):
    server.etag, server.stop_after = None, [700]
    with pytest.raises(WorkloadError, match="broke off"):
        fetch_log("KTH-SP2", tmp_path, server.url, attempts=1)
    server.content = gzip.compress(TEXT.replace("60", "61").encode(), mtime=0)
    assert fetch_log("KTH-SP2", tmp_path, server.url).read_bytes() == server.content
    assert [asked for _, asked in server.requests] == [None, "bytes=700-", None]


def test_a_server_without_ranges_begins_anew(server, tmp_path):
    server.ranges, server.stop_after = False, [700]
    assert fetch_log("KTH-SP2", tmp_path, server.url).read_bytes() == CONTENT
    assert len(server.requests) == 2


def test_a_kept_part_that_is_too_long_is_thrown_away(server, tmp_path):
    (tmp_path / f"{FILE}.part").write_bytes(b"x" * (len(CONTENT) + 10))
    assert fetch_log("KTH-SP2", tmp_path, server.url).read_bytes() == CONTENT


def test_passing_faults_of_the_server_are_tried_again(server, tmp_path):
    server.status = [503, 500]
    assert fetch_log("KTH-SP2", tmp_path, server.url).read_bytes() == CONTENT
    server.status = [503, 503, 503]
    with pytest.raises(WorkloadError, match="the server answers 503 Service Unavailable"):
        fetch_log("SDSC-SP2", tmp_path, server.url)


def test_a_missing_file_is_not_tried_again(server, tmp_path):
    server.status = [404]
    with pytest.raises(WorkloadError) as refusal:
        fetch_log("KTH-SP2", tmp_path, server.url)
    assert "cannot be fetched: the server answers 404 Not Found; the log KTH-SP2 is at" in str(
        refusal.value
    )
    assert len(server.requests) == 1
    assert names(tmp_path) == []


def test_an_announced_size_that_never_comes_is_an_error(server, tmp_path):
    server.claim = 5
    with pytest.raises(WorkloadError, match="cannot be fetched"):
        fetch_log("KTH-SP2", tmp_path, server.url)
    assert FILE not in names(tmp_path)


def test_a_page_in_place_of_the_log_is_not_stored(server, tmp_path):
    server.content = b"<html>Please log in</html>"
    with pytest.raises(WorkloadError, match="what arrived is not a gzip file"):
        fetch_log("KTH-SP2", tmp_path, server.url)
    assert names(tmp_path) == []


def test_noise_is_refused_by_its_first_bytes(server, tmp_path):
    server.content = b"\x00noise" * 10_000_000
    with pytest.raises(WorkloadError, match="not a gzip file"):
        fetch_log("KTH-SP2", tmp_path, server.url)
    assert server.sent < 30_000_000
    assert names(tmp_path) == []


def test_more_than_the_limit_is_refused_before_it_is_taken(server, tmp_path):
    server.length = str(2**40)
    with pytest.raises(WorkloadError, match=r"1,099,511,627,776 bytes are announced"):
        fetch_log("KTH-SP2", tmp_path, server.url)
    server.length = "abc"  # says nothing, so bytes are counted
    with pytest.raises(WorkloadError, match=r"at most 1,000 bytes are taken; workload.limits.size"):
        fetch_log("KTH-SP2", tmp_path, server.url, most=1000)
    with pytest.raises(WorkloadError, match=r"it unpacks to more, at most"):
        fetch_log("KTH-SP2", tmp_path, server.url, most=len(CONTENT) + 1)
    assert names(tmp_path) == []
    server.length = "-7"
    assert fetch_log("KTH-SP2", tmp_path, server.url).read_bytes() == CONTENT


@pytest.mark.parametrize("url", ["nonsense", "http://", "htp://host", "http://[::1"])
def test_an_address_that_is_none_is_one_line(tmp_path, url):
    with pytest.raises(WorkloadError) as refusal:
        fetch_log("KTH-SP2", tmp_path, url)
    assert "\n" not in str(refusal.value)
    assert url in str(refusal.value)


def test_another_text_than_the_known_one_is_told(server, tmp_path, caplog):
    fetch_log("SDSC-SP2", tmp_path, server.url)
    assert "its text is not the one known under this name" in caplog.text


def test_offline_is_one_line_that_names_the_page(server, tmp_path, monkeypatch):
    monkeypatch.setenv("MOLDSIM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MOLDSIM_ARCHIVE_URL", "http://127.0.0.1:1/")
    with pytest.raises(WorkloadError) as refusal:
        ArchiveWorkload("SDSC-SP2").trace(Streams(seed=1))
    message = str(refusal.value)
    assert "\n" not in message
    assert "Connection refused" in message
    assert "is at https://www.cs.huji.ac.il/labs/parallel/workload/l_sdsc_sp2/" in message
    assert str(tmp_path / "cache" / "archive") in message


def test_the_workload_replays_the_fetched_log(server, tmp_path):
    workload = ArchiveWorkload("KTH-SP2", jobs=100, load=0.5, cache=tmp_path, url=server.url)
    trace = workload.trace(Streams(seed=1))
    assert (len(trace.jobs), trace.processors, trace.source) == (100, 8, FILE)
    assert trace.checksum == hashlib.sha256(CONTENT).hexdigest()


def test_a_cache_that_cannot_be_written_is_refused(server, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(WorkloadError, match="cannot be stored"):
        fetch_log("KTH-SP2", tmp_path / "file" / "cache", server.url)


def test_logs_are_found_by_name_or_file_and_else_the_nearest_is_offered():
    for log in LOGS:
        assert find_log(log.name.upper()) == log
        assert find_log(log.file) == log
        assert find_log(log.file.removesuffix(".swf.gz")) == log
    assert isinstance(LOGS[0], ArchiveLog)
    with pytest.raises(WorkloadError, match=r"Did you mean SDSC-SP2\b.*There are ANL-Intrepid, "):
        find_log("SDSC SP2")
    with pytest.raises(WorkloadError, match=r"workload.name is not set; give a log"):
        ArchiveWorkload(None)


def test_the_cache_is_the_named_folder_else_the_users(monkeypatch, tmp_path):
    monkeypatch.setenv("MOLDSIM_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("MOLDSIM_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setattr(
        "workloads.logs.archive.os.uname", lambda: type("U", (), {"sysname": "Linux"})
    )
    assert cache_folder() == tmp_path / "xdg" / "moldsim"
