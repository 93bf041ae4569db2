# SPDX-License-Identifier: Apache-2.0
"""One page in headless Chromium, driven over its DevTools protocol: messages of JSON that end with a
zero byte, on file descriptors 3 and 4 (--remote-debugging-pipe)."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


def program():
    """Chromium's path, or None."""
    return next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)


class Page:
    """`with Page(url) as page`; console messages and exceptions gather in `page.complaints`."""

    def __init__(self, url, seconds=120):
        self.url, self.deadline = url, time.monotonic() + seconds
        self.complaints, self.number, self.rest, self.session = [], 0, b"", None

    def __enter__(self):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_browser, self.out = os.pipe()
        self.into, from_browser = os.pipe()

        def descriptors():
            # Moved out of the way first: one of them may be 3 or 4 itself.
            a, b = os.dup2(to_browser, 1003), os.dup2(from_browser, 1004)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.browser = subprocess.Popen(
            [program(), "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
             "--user-data-dir=" + self.profile.name, "--window-size=1000,700", "about:blank"],
            preexec_fn=descriptors, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(domain + ".enable")
        self.call("Page.navigate", url=self.url)
        return self

    def __exit__(self, *exception):
        self.browser.kill()
        self.browser.wait()
        os.close(self.out)
        os.close(self.into)
        self.profile.cleanup()

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError("%s: %s" % (method, answer["error"]))
                return answer["result"]
            if answer.get("method") in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
                self.complaints.append(answer["params"])

    def message(self):
        while b"\0" not in self.rest:
            left = self.deadline - time.monotonic()
            if left <= 0 or not select.select([self.into], [], [], left)[0]:
                raise TimeoutError("the browser did not answer in time")
            data = os.read(self.into, 1 << 20)
            if not data:
                raise EOFError("the browser ended")
            self.rest += data
        text, _, self.rest = self.rest.partition(b"\0")
        return json.loads(text)

    def value(self, expression):
        """Of a JavaScript expression in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def until(self, expression):
        """Waits for it to be true."""
        while not self.value(expression):
            if time.monotonic() > self.deadline:
                raise TimeoutError("never became true: " + expression)
            time.sleep(0.05)

    def type(self, text):
        """As a keyboard writes into what has the focus."""
        self.call("Input.insertText", text=text)

    def press_enter(self):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", text="\r",
                      windowsVirtualKeyCode=13)

    def click(self, element):
        """In the middle of the element of this id."""
        x, y = self.value("(r => [r.x + r.width / 2, r.y + r.height / 2])"
                          "(document.getElementById('%s').getBoundingClientRect())" % element)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def screenshot(self, file):
        data = self.call("Page.captureScreenshot", format="png")["data"]
        file.write_bytes(base64.b64decode(data))
