"""A page as Chromium shows it, to those who see it in light or dark, in narrow or wide windows, with
or without scripts. Not a test: tests that serve pages ask see().

Chromium is driven by its DevTools protocol over a pipe: nothing listens."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

WIDTHS = (390, 1280)
SCHEMES = ("light", "dark")
WAIT_MAX_S = 240
CONTRAST = 4.5  # of text, WCAG 2 AA
DRAWN = 3.0  # of what is drawn

# Every text against the ground that it stands on, every drawn stroke and fill likewise; what is wider
# than the window; what a keyboard cannot reach; what has no words for those who do not see it.
FAULTS = """(() => {
  const faults = [], luminance = c => {
    const [r, g, b] = c.map(v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
  }, colour = text => (text.match(/[\\d.]+/g) || []).map(Number);
  const ground = e => {
    for (; e; e = e.parentElement) {
      const c = colour(getComputedStyle(e).backgroundColor);
      if (c.length == 3 || c[3] > 0) return c.slice(0, 3);
    }
    return [255, 255, 255];
  };
  const hold = (e, text, least, what) => {
    const c = colour(text);
    if (c.length == 4 && c[3] == 0) return;
    const a = luminance(c.slice(0, 3)), b = luminance(ground(e));
    const contrast = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (contrast < least)
      faults.push(what + ' contrast ' + contrast.toFixed(2) + ': ' + e.outerHTML.slice(0, 80));
  };
  for (const e of document.querySelectorAll('body, body *')) {
    const style = getComputedStyle(e), own = [...e.childNodes].some(
      n => n.nodeType == 3 && n.textContent.trim() != '');
    if (['SCRIPT', 'TITLE', 'title'].includes(e.tagName)) continue;
    if (own) hold(e, style.color, TEXT, 'text');
    if (own && parseFloat(style.fontSize) < 12) faults.push('small text: ' + e.outerHTML.slice(0, 80));
    if (e.tagName == 'rect') hold(e, style.fill, DRAWN, 'bar');
    if (e.tagName == 'I') {
      const one = style.backgroundColor;
      hold(e.parentElement, colour(one)[3] === 0 ? style.borderTopColor : one, DRAWN, 'square');
    }
    if (e.tagName == 'path' && style.stroke != 'none' && e.getAttribute('class') != 'axis')
      hold(e, style.stroke, DRAWN, 'line');
    if (!e.closest('svg') && e.getBoundingClientRect().right > innerWidth + 1)
      faults.push('too wide: ' + e.outerHTML.slice(0, 80));
    if (e.tagName == 'svg' && !e.ariaLabel && e.getAttribute('aria-hidden') != 'true')
      faults.push('no words: ' + e.outerHTML.slice(0, 80));
    if (['INPUT', 'SELECT'].includes(e.tagName) && !e.labels.length)
      faults.push('no label: ' + e.outerHTML.slice(0, 80));
    if (['INPUT', 'SELECT', 'BUTTON', 'A'].includes(e.tagName) && e.tabIndex < 0)
      faults.push('no key reaches: ' + e.outerHTML.slice(0, 80));
  }
  if (document.documentElement.scrollWidth > innerWidth) faults.push('the page scrolls sideways');
  if (document.documentElement.lang == '') faults.push('no language');
  return faults;
})()""".replace("TEXT", str(CONTRAST)).replace("DRAWN", str(DRAWN))


def is_here():
    return shutil.which("chromium") is not None


class Browser:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="lockstep-test-browser-")
        to_it, self.write_end = os.pipe()
        self.read_end, from_it = os.pipe()
        self.rest, self.number, self.events = b"", 0, []

        def become():
            first, second = os.dup(to_it), os.dup(from_it)  # neither is 3 or 4 after this
            first, second = os.dup(first), os.dup(second)
            os.dup2(first, 3)
            os.dup2(second, 4)

        self.process = subprocess.Popen(
            ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--no-first-run", "--hide-scrollbars", "--user-data-dir=" + self.folder,
             "--remote-debugging-pipe", "about:blank"],
            preexec_fn=become, close_fds=False, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_it)
        os.close(from_it)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        os.close(self.write_end)
        os.close(self.read_end)
        shutil.rmtree(self.folder, ignore_errors=True)

    def hear(self, end):
        """The next message."""
        while b"\0" not in self.rest:
            assert select.select([self.read_end], [], [], max(0, end - time.monotonic()))[0], \
                "chromium does not answer"
            said = os.read(self.read_end, 1 << 20)
            assert said, "chromium ended"
            self.rest += said
        one, self.rest = self.rest.split(b"\0", 1)
        return json.loads(one)

    def ask(self, method, session=None, **words):
        self.number += 1
        message = {"id": self.number, "method": method, "params": words}
        if session is not None:
            message["sessionId"] = session
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + WAIT_MAX_S
        while True:
            said = self.hear(end)
            if said.get("id") == self.number:
                assert "error" not in said, said
                return said["result"]
            self.events.append(said)

    def wait_for(self, method):
        end = time.monotonic() + WAIT_MAX_S
        while not any(event["method"] == method for event in self.events):
            self.events.append(self.hear(end))

    def open(self, url, width, scheme, scripts=True):
        return Page(self, url, width, scheme, scripts)


class Page:
    """One window, as wide as told."""

    def __init__(self, browser, url, width, scheme, scripts):
        self.browser, self.width = browser, width
        self.target = browser.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.ask("Target.attachToTarget", targetId=self.target,
                                   flatten=True)["sessionId"]
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=900,
                 deviceScaleFactor=1, mobile=False)
        self.ask("Emulation.setEmulatedMedia",
                 features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.ask("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.ask("Page.enable")
        self.ask("Log.enable")
        self.ask("Runtime.enable")
        browser.events = []
        self.ask("Page.navigate", url=url)
        browser.wait_for("Page.loadEventFired")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.browser.ask("Target.closeTarget", targetId=self.target)

    def ask(self, method, **words):
        return self.browser.ask(method, self.session, **words)

    def value(self, expression):
        return self.ask("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get(
            "value")

    def said(self):
        """Errors of the page, its script and its policy would be lines of the console."""
        return [event["params"] for event in self.browser.events if event["method"] in
                ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")]

    def faults(self):
        return self.value(FAULTS) + self.said()

    def pass_time(self, seconds):
        """Of the page's clock: its timers run."""
        self.browser.events = []
        self.ask("Emulation.setVirtualTimePolicy", policy="pauseIfNetworkFetchesPending",
                 budget=1000 * seconds)
        self.browser.wait_for("Emulation.virtualTimeBudgetExpired")

    def picture(self, path):
        size = self.ask("Page.getLayoutMetrics")["cssContentSize"]
        shot = self.ask("Page.captureScreenshot", captureBeyondViewport=True,
                        clip={"x": 0, "y": 0, "width": self.width,
                              "height": min(size["height"], 6000), "scale": 1})
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot["data"]))


def see(url, refreshes=True):
    """Insists that everybody can read the page, and that its script fetches it again."""
    if not is_here():
        print("# chromium is not installed: %s was not looked at in a browser" % url)
        return
    with Browser() as browser:
        for scheme in SCHEMES:
            for width in WIDTHS:
                with browser.open(url, width, scheme) as page:
                    faults = page.faults()
                    assert faults == [], (scheme, width, faults[:8], len(faults))
        with browser.open(url, WIDTHS[0], "light", scripts=False) as page:
            assert page.faults() == [], page.faults()
        with browser.open(url, WIDTHS[1], "light") as page:
            page.value("document.querySelector('main').id = 'old'")
            page.pass_time(6)
            assert page.value("document.querySelector('main').id") == (
                "" if refreshes else "old"), "what the script did"
            assert page.said() == [], page.said()


def see_it_end(url, end):
    """The page says that nobody answers any more."""
    if not is_here():
        return
    with Browser() as browser, browser.open(url, WIDTHS[0], "dark") as page:
        end()
        page.pass_time(6)
        assert "No answer since" in page.value("document.querySelector('main').innerText")
        assert page.value(FAULTS) == [], page.value(FAULTS)
