# SPDX-License-Identifier: MIT
"""The dashboard as a test handles it: find, wait, type, and read the page's errors."""

from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

PATIENCE_SECONDS = 120  # for what must come; what comes sooner is not waited for
# Each width and each scheme: what is where follows the one, and colours the other.
SCREENS = [(360, "light"), (1280, "dark"), (1920, "light")]


class Page:
    def __init__(self, driver, url):
        self.driver = driver
        self.url = url
        self.expected = []  # parts of console messages that the test provokes

    # coming and going

    def reset(self):
        self.clear()
        self.open()

    def clear(self):
        """As if nobody had been there yet, and before the dashboard is open."""
        self.size(1280, 900)
        self.media()
        self.driver.get(f"{self.url}/health")  # of the same origin, and without a script that reads what it keeps
        self.run("sessionStorage.clear()")
        self.driver.get_log("browser")

    def open(self, fragment=""):
        """Loads the dashboard, whatever was there before."""
        if self.driver.current_url.partition("#")[0] == f"{self.url}/":
            self.driver.get("about:blank")  # from there another fragment alone would load nothing
        self.driver.get(f"{self.url}/{fragment}")
        state = "return document.querySelector('#connection')?.textContent"  # not displayed on a telephone
        self.wait(lambda: self.run(state) == "Live", "the event stream")

    def sign(self, token):
        self.run("sessionStorage.setItem('ipclab.token', arguments[0])", token)

    def close(self):
        self.driver.get("about:blank")

    def complaints(self):
        """Errors of the page's script, its policy and the console, but for those that the test expects."""
        log = [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ("WARNING", "SEVERE")]
        # the form requests a plan for each edit, and shows the response also where that is a refusal
        log = [message for message in log if "/experiments?dry_run=true - Failed to load resource" not in message]
        # clear() opens what names no icon, for which Chromium then requests this one; the page's own stands in its HTML
        log = [message for message in log if "/favicon.ico - Failed to load resource" not in message]
        found = self.run("return window.complaints ?? []") + log
        return [message for message in found if not any(part in message for part in self.expected)]

    def expect_status(self, *statuses):
        """The console reports every refused request; these are part of the test."""
        self.expected += [f"the server responded with a status of {status}" for status in statuses]

    def go(self, fragment):
        self.run("location.hash = arguments[0]", fragment)

    def size(self, width, height):
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def media(self, scheme="light"):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    # looking

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def call(self, script, *arguments):
        """The value of a script that gives a promise."""
        wrapped = f"const done = arguments[arguments.length - 1]; (async (...args) => {{ {script} }})(...arguments)"
        return self.driver.execute_async_script(f"{wrapped}.then(done, (e) => done(`failed: ${{e}}`))", *arguments)

    def find(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector):
        try:
            return self.find(selector).text
        except (NoSuchElementException, StaleElementReferenceException):
            return None

    def wait(self, condition, what, seconds=PATIENCE_SECONDS):
        return WebDriverWait(self.driver, seconds, 0.05).until(lambda _: condition(), f"waited for {what}")

    def wait_for(self, selector, seconds=PATIENCE_SECONDS):
        return self.wait(lambda: next(iter(self.all(selector)), None), selector, seconds)

    def focused(self):
        return self.driver.switch_to.active_element

    def drawn(self, title="Throughput"):
        """How many points the chart of that title draws; 0 without one."""
        script = """return Number([...document.querySelectorAll('#live-title, .chart')].find((chart) =>
            chart.querySelector('h3')?.textContent.startsWith(arguments[0]))?.dataset.points ?? 0)"""
        return self.run(script, title)

    def saved(self, ending, selector):
        """The picture that the button below `selector` saves: the text of an SVG, the bytes of a PNG."""
        script = """const [ending, selector] = args;
            const real = URL.createObjectURL;
            const saved = new Promise((resolve) => {
                URL.createObjectURL = (blob) => { resolve(blob); return real(blob); };
            });
            document.querySelector(`${selector} [aria-label="Save the chart as ${ending}"]`).click();
            const blob = await saved;
            URL.createObjectURL = real;
            return ending === 'SVG' ? blob.text() : [...new Uint8Array(await blob.arrayBuffer())]"""
        picture = self.call(script, ending, selector)
        return picture if ending == "SVG" else bytes(picture)

    def drawn_in_series_colour(self):
        """How many pixels of the first chart have a colour that its series shall have now."""
        self.expected.append("Multiple readback operations")  # a hint for pages, not for tests
        script = """const css = getComputedStyle(document.documentElement);
            const colour = (n) => parseInt(css.getPropertyValue(`--series-${n}`).trim().slice(1), 16);
            const colours = new Set([1, 2, 3, 4, 5, 6, 7, 8].map(colour));
            const canvas = document.querySelector('.chart .canvas canvas');
            if (!canvas) return 0;
            const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
            let count = 0;
            for (let i = 0; i < data.length; i += 4)
                count += colours.has((data[i] << 16) + (data[i + 1] << 8) + data[i + 2]);
            return count"""
        return self.run(script)

    # doing

    def keys(self, *keys):
        ActionChains(self.driver).send_keys(*keys).perform()

    def tab_to(self, selector, limit=80):
        """Presses Tab until the element has the focus, as a person without a mouse would."""
        reached = "return document.activeElement === document.querySelector(arguments[0])"
        for _ in range(limit):
            if self.run(reached, selector):
                return self.focused()
            self.keys(Keys.TAB)
        raise AssertionError(f"{selector} is not reached within {limit} steps of Tab")

    def fill(self, selector, text):
        element = self.find(selector)
        element.clear()
        element.send_keys(text)

    def give_token(self, token):
        self.wait(lambda: self.find("#token-dialog").is_displayed(), "the token dialog")
        self.fill("#token-input", token)
        self.find("#token-dialog .primary").click()
