# SPDX-License-Identifier: MIT
"""The cost of the first page: its requests and its bytes on the wire, and the files that the browser caches."""

import contextlib
import http.client
import json
import re
from urllib.parse import urlsplit

import pytest
from page import Page

REQUESTS_MAX = 6  # until the list is there
BYTES_MAX = 90_000  # of all that the first page loads


@pytest.fixture(scope="module")
def network(own_chromium):
    with own_chromium("performance") as driver:
        yield driver


def load(driver, daemon):
    """The page until it is at rest: of each request in order {target, bytes, sent, answered}, the cached left out."""
    page = Page(driver, daemon.url)
    driver.get("about:blank")
    driver.get_log("performance")
    driver.get(f"{daemon.url}/")
    page.wait(lambda: page.all("#list a"), "the list")
    page.wait(lambda: page.text("#connection") == "Live" and len(page.all("main .panel")) == 9, "the machine")
    requests, order = {}, 0
    for entry in driver.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        method, event = message["method"], message["params"]
        order += 1
        if method == "Network.requestWillBeSent" and event["request"]["url"].startswith(daemon.url):
            target = event["request"]["url"][len(daemon.url) :]
            requests[event["requestId"]] = {"target": target, "bytes": 0, "cached": False, "sent": order}
        request = requests.get(event.get("requestId"))
        if not request:
            continue
        if method == "Network.requestServedFromCache":
            request["cached"] = True
        elif method == "Network.responseReceived":
            response = event["response"]
            request |= {"status": response["status"], "answered": order}
            request["cached"] |= response.get("fromDiskCache", False)
            request["bytes"] += response["encodedDataLength"]
        elif method == "Network.dataReceived":
            request["bytes"] += event["encodedDataLength"]
        elif method == "Network.loadingFinished":
            request["bytes"] = event["encodedDataLength"]
    assert len(page.all("#list a")) == 25
    return [request for request in requests.values() if not request["cached"]]


@pytest.fixture(scope="module")
def listed(daemon):
    """As many as the list shows at once; all but the first were cancelled before they began, which takes no time."""
    daemon.wait(daemon.submit(name="Done", messages=10, warmup_seconds=0))
    ids = [daemon.submit(name=f"{n} in the list", duration_seconds=600) for n in range(24)]
    for identity in reversed(ids):
        assert daemon.request("POST", f"/experiments/{identity}/cancel")[0] == 200
    daemon.wait(ids[0])


def test_first_page_is_six_requests_and_ninety_kilobytes(network, daemon, listed):
    network.execute_cdp_cmd("Network.clearBrowserCache", {})
    requests = load(network, daemon)
    loaded = [(request["target"], request["bytes"]) for request in requests]
    print(*loaded, sum(size for _, size in loaded), sep="\n")
    lists = [request for request in requests if urlsplit(request["target"]).path == "/experiments"]
    answer = min(request["answered"] for request in lists if "answered" in request)
    before = [request["target"] for request in requests if request["sent"] < answer]
    # where the event stream takes more than a second to open, the list is requested without it, and again
    repeated = max(0, sum(target.startswith("/experiments?") for target in before) - 1)
    assert len(before) - repeated <= REQUESTS_MAX, loaded
    assert sum(size for _, size in loaded) <= BYTES_MAX, loaded
    targets = [target for target, _ in loaded]
    again = {target for target in targets if targets.count(target) > 1 and "/experiments" not in target}
    assert not again, "the same document twice"


def test_second_time_the_assets_are_not_loaded(network, daemon, listed):
    load(network, daemon)
    requests = {request["target"]: request for request in load(network, daemon)}
    assert [target for target in requests if target.startswith("/assets/")] == []
    headers = {"If-None-Match": etag(daemon, "/", {})}
    assert answer(daemon, "/", headers)[0] == 304


def answer(daemon, target, headers):
    """(status, headers, body) of a plain client, which decodes nothing."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=60)) as connection:
        connection.request("GET", target, headers=headers)
        response = connection.getresponse()
        return response.status, response.headers, response.read()


def etag(daemon, target, headers):
    return answer(daemon, target, headers)[1]["ETag"]


def test_built_files_are_compressed_hashed_and_immutable(daemon):
    status, headers, html = answer(daemon, "/", {})
    assert (status, headers["Cache-Control"], headers["Content-Encoding"]) == (200, "no-cache", None)
    names = re.findall(r'(?:src|href)="(/assets/[^"]+)"', html.decode())
    assert sorted(name.rsplit(".")[-1] for name in names) == ["css", "js"]
    for name in names:
        _, plain, text = answer(daemon, name, {})
        _, packed, body = answer(daemon, name, {"Accept-Encoding": "gzip"})
        assert plain["Cache-Control"] == packed["Cache-Control"] == "public, max-age=31536000, immutable"
        assert packed["Content-Encoding"] == "gzip" and packed["Vary"] == plain["Vary"] == "Accept-Encoding"
        assert plain["ETag"] != packed["ETag"] and len(body) < len(text) / 2
