# SPDX-License-Identifier: MIT
"""A real Chromium in front of a real daemon. What the page complains about fails the test that provoked it."""

import base64
import contextlib
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from ipclabd import Daemon
from ipclabtest.daemon import started
from page import PATIENCE_SECONDS, Page
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

# A page that was left is not kept alive, which takes a process of its own, and none is started for one that may come.
FLAGS = """--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
    --disable-component-update --disable-sync --disable-dev-shm-usage --window-size=1280,900
    --disable-features=BackForwardCache,SpareRendererForSitePerProcess""".split()

# Runs before the page's own code, and records its errors for the test.
WATCH = """
window.complaints = [];
addEventListener('error', (e) => complaints.push(`error: ${e.message}`));
addEventListener('unhandledrejection', (e) => complaints.push(`unhandled: ${e.reason}`));
addEventListener('securitypolicyviolation', (e) => complaints.push(`policy: ${e.violatedDirective} ${e.blockedURI}`));
"""


def program(*names):
    found = next((path for path in map(shutil.which, names) if path), None)
    if not found:
        pytest.skip(f"needs {' or '.join(names)} (Debian: chromium, chromium-driver)")
    return found


# Those that take longest, in this order and before all others: two processes that take a file each then end together.
LONGEST = ("persons", "report", "heatmap", "dashboard", "home", "form", "figure", "access", "tables", "baselines")


def pytest_configure(config):
    config.option.loadscopereorder = False  # which would begin with the files that have the most tests


def pytest_collection_modifyitems(items):
    order = [f"test_{name}" for name in LONGEST]
    assert set(order) <= {path.stem for path in Path(__file__).parent.glob("test_*.py")}
    items.sort(key=lambda item: order.index(item.path.stem) if item.path.stem in order else len(order))


@pytest.fixture(scope="module")
def daemon():
    """One for each module: a search of its list finds nothing that another module's test has named."""
    with started(Daemon()) as d:
        yield d


@contextlib.contextmanager
def chromium(*logs):
    """A browser of its own, which keeps these logs of chromedriver's beside the console's."""
    options = webdriver.ChromeOptions()
    options.binary_location = program("chromium", "chromium-browser", "google-chrome")
    profile = tempfile.mkdtemp(prefix="ipclab-chromium-")
    for flag in [*FLAGS, f"--user-data-dir={profile}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", dict.fromkeys(("browser", *logs), "ALL"))
    driver = webdriver.Chrome(options=options, service=Service(program("chromedriver")))
    driver.set_script_timeout(PATIENCE_SECONDS)
    driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
    try:
        yield driver
    finally:
        driver.quit()
        shutil.rmtree(profile, ignore_errors=True)


@pytest.fixture(scope="session")
def own_chromium():
    """For a test that needs more of a browser than `driver` is."""
    return chromium


@pytest.fixture(scope="session")
def driver():
    with chromium() as driver:
        yield driver


@pytest.fixture
def unopened(driver, daemon):
    """For a test that changes something before it opens the dashboard; afterwards that has had nothing to complain
    about."""
    p = Page(driver, daemon.url)
    p.clear()
    yield p
    complaints = p.complaints()
    p.close()
    assert complaints == []


@pytest.fixture
def page(unopened):
    """The dashboard, freshly opened and without a token."""
    unopened.open()
    return unopened


@pytest.fixture
def modules(driver, daemon):
    """The dashboard for calls of its modules, which leave nothing behind in it: opened where it is not open already."""
    p = Page(driver, daemon.url)
    if not driver.current_url.startswith(daemon.url):
        p.reset()
    return p


@pytest.fixture(scope="session")
def pictures():
    """Where screenshots go: IPCLAB_SCREENSHOTS, or a directory that goes away again."""
    wanted = os.environ.get("IPCLAB_SCREENSHOTS")
    directory = Path(wanted or tempfile.mkdtemp(prefix="ipclab-pictures-"))
    directory.mkdir(exist_ok=True)
    yield directory
    if not wanted:
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def picture(driver, pictures):
    def take(name):
        path = pictures / f"{name}.png"
        path.write_bytes(base64.b64decode(driver.execute_cdp_cmd("Page.captureScreenshot", {})["data"]))
        return path

    return take
