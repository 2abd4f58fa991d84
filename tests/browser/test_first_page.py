# SPDX-License-Identifier: MIT
"""The cost of the first page: its requests and its bytes on the wire, and the files that the browser caches."""

import contextlib
import http.client
import json
import re
import time

import pytest
from ipclabd import ENDLESS
from page import Page

REQUESTS_MAX = 6  # of the first visit, the event stream among them
BYTES_MAX = 90_000  # of all of them
IDLE_SECONDS = 4  # without another request, after which there comes none


@pytest.fixture(scope="module")
def network(own_chromium):
    with own_chromium("performance") as driver:
        yield driver


def take(driver, daemon, requests):
    """Whether the browser has begun a request since the last time; adds what it did to those that it has begun."""
    begun = False
    for entry in driver.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        method, event = message["method"], message["params"]
        if method == "Network.requestWillBeSent" and event["request"]["url"].startswith(daemon.url):
            target = event["request"]["url"][len(daemon.url) :]
            requests[event["requestId"]] = {"target": target, "bytes": 0, "cached": False}
            begun = True
        request = requests.get(event.get("requestId"))
        if not request:
            continue
        if method == "Network.requestServedFromCache":
            request["cached"] = True
        elif method == "Network.responseReceived":
            response = event["response"]
            request["cached"] |= response.get("fromDiskCache", False)
            request["bytes"] += response["encodedDataLength"]
        elif method == "Network.dataReceived":
            request["bytes"] += event["encodedDataLength"]
        elif method == "Network.loadingFinished":
            request["bytes"] = event["encodedDataLength"]
    return begun


def load(driver, daemon, screen=(1280, 900)):
    """The page until it is idle: of each request in order {target, bytes}, the cached left out."""
    page = Page(driver, daemon.url)
    page.size(*screen)
    driver.get("about:blank")
    driver.get_log("performance")
    driver.get(f"{daemon.url}/")
    page.wait(lambda: page.all("#list a"), "the list")
    page.wait(lambda: page.text("#connection") == "Live" and len(page.all("main .panel")) == 9, "the machine")
    assert len(page.all("#list a")) == 25
    requests = {}
    while take(driver, daemon, requests):
        time.sleep(IDLE_SECONDS)
    return [request for request in requests.values() if not request["cached"]]


@pytest.fixture(scope="module")
def listed(daemon):
    """As many as the list shows at once; all but the first were cancelled before they began, which takes no time."""
    daemon.wait(daemon.submit(name="Done", messages=10, warmup_seconds=0))
    ids = [daemon.submit(name=f"{n} in the list", **ENDLESS) for n in range(24)]
    for identity in reversed(ids):
        assert daemon.request("POST", f"/experiments/{identity}/cancel")[0] == 200
    daemon.wait(ids[0])


@pytest.mark.parametrize("screen", [(1280, 900), (1920, 1080)], ids=lambda screen: f"{screen[0]} px")
def test_first_visit_is_six_requests_and_ninety_kilobytes(network, daemon, listed, screen):
    network.execute_cdp_cmd("Network.clearBrowserCache", {})
    loaded = [(request["target"], request["bytes"]) for request in load(network, daemon, screen)]
    print(*loaded, sum(size for _, size in loaded), sep="\n")
    targets = [target for target, _ in loaded]
    # where the event stream takes more than a second to open, the list is requested without it, and again
    repeated = max(0, sum(target.startswith("/experiments?") for target in targets) - 1)
    assert len(targets) - repeated <= REQUESTS_MAX, loaded
    assert sum(size for _, size in loaded) <= BYTES_MAX, loaded
    assert "/events" in targets, "the event stream is one of them"


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
