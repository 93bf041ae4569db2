#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Talks through the chat page of `lathe serve` as a person does, in headless Chromium: the answer is
what `lathe generate` writes, Stop ends it, New forgets, a mistake is told, markup stays text.

Usage: chat_page_test.py LATHE MODEL [SCREENSHOT]; exit status 77 where there is no Chromium.
"""
import pathlib
import signal
import subprocess
import sys

import chromium

LATHE, MODEL = sys.argv[1:3]
TOKENS = 24
ARTICLES = "[...document.querySelectorAll('article')].map(a => [a.className, a.textContent])"
IDLE = "!document.getElementById('send').hidden"


def serve(*flags):
    process = subprocess.Popen([LATHE, "serve", MODEL, "--port", "0", *flags], stdout=subprocess.PIPE, text=True)
    line = process.stdout.readline()
    assert "http://127.0.0.1:" in line, line
    return process, "http://127.0.0.1:%d/" % int(line.rsplit(":", 1)[1])


def stop(process):
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0


def setting(page, element, value):
    page.value("document.getElementById('%s').value = '%s'" % (element, value))


def say(page, text):
    page.value("document.getElementById('text').focus()")
    page.type(text)
    page.press_enter()


def talk(page, screenshot):
    page.until("document.documentElement?.dataset.ready === 'yes'")
    setting(page, "temperature", 0)
    setting(page, "tokens", TOKENS)
    prompt = "Once upon a time"
    say(page, prompt)
    page.until("document.querySelectorAll('article').length == 2 && " + IDLE)
    generated = subprocess.run([LATHE, "generate", MODEL, "-p", prompt, "-n", str(TOKENS), "--temperature", "0"],
                               check=True, capture_output=True, text=True).stdout
    assert page.value(ARTICLES) == [["user", prompt], ["assistant", generated.removeprefix(prompt).rstrip("\n")]], \
        (page.value(ARTICLES), generated)
    status = page.value("document.getElementById('status').textContent")
    assert "+ %d tokens" % TOKENS in status and "tokens/s" in status, status
    if screenshot:
        page.screenshot(screenshot)

    # Markup that somebody writes is shown, not obeyed.
    setting(page, "tokens", 1)
    say(page, "<img src=x onerror='document.title=1'><b>bold</b>")
    page.until("document.querySelectorAll('article').length == 4 && " + IDLE)
    assert page.value("document.querySelectorAll('article img, article b').length") == 0
    assert page.value("document.title") == page.value("document.getElementById('model').textContent")

    # Stop ends the wait for a server that does not answer, and the page can be used at once.
    page.value("window.kept = fetch; fetch = (path, {signal}) => new Promise((_, fail) => signal.addEventListener("
               "'abort', () => fail(new DOMException('stopped', 'AbortError')))); 0")
    say(page, "Tell me more")
    page.until("!document.getElementById('stop').hidden")
    page.click("stop")
    page.until(IDLE)
    assert page.value(ARTICLES)[-2:] == [["user", "Tell me more"], ["assistant", ""]], page.value(ARTICLES)
    page.value("fetch = kept; 0")

    # New forgets, and what the server refuses is told in the page.
    page.click("clear")
    assert page.value(ARTICLES) == []
    say(page, "word " * 2000)
    page.until("document.querySelectorAll('article.error').length == 1 && " + IDLE)
    assert "positions" in page.value(ARTICLES)[-1][1] or "tokens" in page.value(ARTICLES)[-1][1]


def main():
    if not chromium.program():
        print("SKIP: no chromium; scripts/setup --report-check installs it")
        return 77
    screenshot = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else None
    process, url = serve()
    try:
        with chromium.Page(url) as page:
            talk(page, screenshot)
            # The browser notes by itself what was refused and what it recommends; nothing else may come.
            own = ("network", "recommendation")
            strange = [c for c in page.complaints if c.get("entry", {}).get("source") not in own]
            assert not strange, strange
    finally:
        stop(process)
    print("chat page: answer, markup, stop, new and refusal are right")
    return 0


if __name__ == "__main__":
    sys.exit(main())
