#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looks at a report in headless Chromium: no console messages, every view draws, and deep links
light up the source line, the ops of each step, the kernel and the calls of one thing.

Usage: report_check.py LATHE MODEL [SCREENSHOTS]; exit status 77 where there is no Chromium.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

VIEWS = ["overview", "ir", "graph", "calls", "memory", "kernels", "layouts", "rewrites", "misses"]
SIZES = [(1280, 800), (900, 800)]
failures = []


def check(condition, what):
    if not condition:
        failures.append(what)
        print("FAILED", what)


class Browser:
    def __init__(self, program, page, folder):
        self.program, self.page, self.folder = program, page, folder

    def run(self, fragment, *arguments, size=SIZES[0]):
        command = [self.program, "--headless=new", "--no-sandbox", "--disable-gpu",
                   "--hide-scrollbars", "--enable-logging=stderr", "--v=0",
                   "--user-data-dir=" + str(self.folder / "profile"),
                   "--window-size=%d,%d" % size, "--virtual-time-budget=6000", *arguments,
                   "file://%s%s" % (self.page, fragment)]
        done = subprocess.run(command, capture_output=True, timeout=180)
        messages = [line for line in done.stderr.decode(errors="replace").splitlines()
                    if "CONSOLE" in line or "Uncaught" in line]
        check(done.returncode == 0, "chromium %s: exit status %d" % (fragment, done.returncode))
        check(not messages, "console is silent at %s: %s" % (fragment, messages[:3]))
        return done.stdout.decode(errors="replace")

    def dom(self, fragment):
        # Without the data and the script, which hold every word.
        text = re.sub(r"<script.*?</script>", "", self.run(fragment, "--dump-dom"), flags=re.S)
        check('data-ready="yes"' in text, "the page is ready at " + fragment)
        return text

    def shot(self, fragment, file, size, dark):
        theme = ["--blink-settings=preferredColorScheme=%d" % (0 if dark else 1)]
        self.run(fragment, "--screenshot=" + str(file), *theme, size=size)
        check(file.exists() and file.stat().st_size > 10000, "a screenshot of " + fragment)


def classes_of(dom, attribute, value):
    """Class texts of the elements that carry attribute="value"."""
    return [m.group(0) for m in re.finditer(r"<[a-z]+ [^>]*>", dom)
            if '%s="%s"' % (attribute, value) in m.group(0)]


def lit(dom, attribute, value):
    return any(re.search(r'class="[^"]*\b(lit|exact|here)\b', tag)
               for tag in classes_of(dom, attribute, value))


def shown(dom):
    """The text that a reader sees."""
    return re.sub(r"<[^>]*>", " ", dom)


def check_ports_and_types(browser):
    """What goes in and out of an entry point is drawn, and every value says its type."""
    dom = browser.dom("#view=graph&entry=decode&step=fuse")
    ports = re.findall(r'data-port="([^"]+)"', dom)
    for name in ("input_ids", "positions", "logits"):
        check(ports.count(name) == 1, "%s is one node: %s" % (name, ports))
    check(sum(p.startswith("k_cache") for p in ports) == 2,
          "the states of all layers are two nodes, before and after: %s" % ports)
    types = re.findall(r'class="type">([^<]*)<', dom)
    check("i64[batch, 1]" in types, "the type of input_ids stands below it: %s" % types[:5])
    nodes = len(re.findall(r'class="node ', dom))
    check(len(types) >= nodes - len(ports) and all(re.match(r"\w+\[", t) for t in types),
          "%d types below %d nodes: %s" % (len(types), nodes, types))


def check_rewrites(browser):
    numbers = [int(n) for n in re.findall(r'data-rewrite="(\d+)"', browser.dom("#view=rewrites"))]
    check(len(numbers) > 100 and numbers == sorted(numbers),
          "rewrites stand in the order in which they were made: %s" % numbers[:20])


def check_buffers(browser):
    rows = browser.dom("#view=memory").split("Largest buffers")[1]
    modules = [m for m in re.findall(r"layers\.[^<]*", rows)]
    check(modules and all(m.startswith("layers.*") for m in modules),
          "buffers of all layers are one row: %s" % modules[:5])


def check_layers(lathe, chromium, folder):
    """Layers that are alike are one row, which says how many it stands for."""
    model, page, ops = folder / "layers.mlir", folder / "layers.html", []
    for i in range(5):
        for op in ("exp", "tanh", "neg"):
            ops.append('  %%%d = lathe.%s %s : tensor<4xf32> loc("layers.%d.part"("a.py":1:1))\n'
                       % (len(ops), op, "%%%d" % (len(ops) - 1) if ops else "%x", i))
    model.write_text('func.func @forward(%x: tensor<4xf32> {lathe.name = "x"}) -> '
                     '(tensor<4xf32> {lathe.name = "y"}) {\n' + "".join(ops) +
                     "  return %%%d : tensor<4xf32>\n}\n" % (len(ops) - 1))
    subprocess.run([lathe, "compile", str(model), "--report", str(page)], check=True)
    rows = shown(Browser(chromium, page, folder).dom("#view=ir&step=recorded"))
    # The first reads the argument, which is written otherwise than what an op made.
    told = re.findall(r"layers\.2 … 4: the same as layers\.1, \d+ times", rows)
    check(told == ["layers.2 … 4: the same as layers.1, 3 times"], "the row of equal layers: %s" % told)


TWO_ENTRIES = """
func.func @first(%x: tensor<4x4xf32> {lathe.name = "x"}) -> (tensor<4x4xf32> {lathe.name = "y"}) {
  %0 = lathe.exp %x : tensor<4x4xf32> loc("early.part"("a.py":1:1))
  return %0 : tensor<4x4xf32>
}
func.func @second(%x: tensor<4x4xf32> {lathe.name = "x"}) -> (tensor<4x4xf32> {lathe.name = "y"}) {
  %0 = lathe.exp %x : tensor<4x4xf32> loc("late.part"("a.py":2:1))
  return %0 : tensor<4x4xf32>
}
"""


def check_shared_kernels(lathe, chromium, folder):
    """A kernel of two entry points stands in the list with its place in the chosen one."""
    model, page = folder / "two.mlir", folder / "two.html"
    model.write_text(TWO_ENTRIES)
    subprocess.run([lathe, "compile", str(model), "--report", str(page)], check=True)
    browser = Browser(chromium, page, folder)
    for entry, path in (("first", "early.part"), ("second", "late.part")):
        dom = browser.dom("#view=kernels&entry=" + entry)
        paths = re.findall(r'class="path"[^>]*>([^<]*)<', dom)
        check(paths == [path], "the kernel of %s is that of %s: %s" % (entry, path, paths))


def check_shares(lathe, model, chromium, folder):
    """Times are held to both roofs, unless the machine was busy when these were measured."""
    page = folder / "run.html"
    subprocess.run([lathe, "bench", model, "-p", "4", "-n", "2", "-r", "1", "-t", "2", "--report",
                    str(page)], check=True, capture_output=True)
    text = page.read_text()
    check(len(re.findall(r'"busy":(?:true|false)', text)) == 1, "the page says if it was busy")
    for busy in ("false", "true"):
        page.write_text(re.sub(r'"busy":(?:true|false)', '"busy":' + busy, text))
        dom = shown(Browser(chromium, page, folder).dom("#view=calls"))
        check(re.search(r"16 bit: [\d.]+ ?\w*FLOP/s", dom) and re.search(r"f32: [\d.]+ ?\w*FLOP/s", dom)
              or "16 bit, f32:" in dom, "both roofs are named")
        check(("of roof" in dom) == (busy == "false"), "shares of the roof, busy " + busy)
        check(("Other programs ran" in dom) == (busy == "true"), "busy is told: " + busy)


def main():
    lathe, model = sys.argv[1], sys.argv[2]
    chromium = next(filter(None, map(shutil.which, ["chromium", "chromium-browser",
                                                    "google-chrome"])), None)
    if not chromium:
        print("SKIP: no chromium; scripts/setup --report-check installs it")
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        page = folder / "out.html"
        subprocess.run([lathe, "compile", model, "--report", str(page), "--report-device", "epyc:2"],
                       check=True)
        check(page.stat().st_size < 5 << 20, "the page is below 5 MB")
        browser = Browser(chromium, page, folder)
        for view in VIEWS:
            dom = browser.dom("#view=" + view)
            check('class="view-%s"' % view in dom, "view " + view)
            if view != "kernels":  # LLVM IR has its null
                strays = re.findall(r"\b(?:null|undefined|NaN|Infinity|\[object \w+\])", shown(dom))
                check(not strays, "view %s shows what is not there: %s" % (view, strays))
        dom = browser.dom("#view=overview")
        check("ops recorded in" in dom, "the overview counts ops")
        header = re.search(r"<header.*?</header>", dom, flags=re.S)
        check(header and not re.search(r">[^<]*\bnull\b[^<]*<", header.group(0)),
              "the header says nothing of what is not there")

        check_ports_and_types(browser)
        check_rewrites(browser)
        check_buffers(browser)
        check_layers(lathe, chromium, folder)
        check_shared_kernels(lathe, chromium, folder)
        stories = pathlib.Path(__file__).parent.parent / "examples/models/stories"
        check_shares(lathe, str(stories), chromium, folder)

        # An op's link lights it up, and the way of what it came from.
        steps = browser.dom("#view=ir&step=fuse")
        op = re.search(r'class="row add[^"]*" data-op="([^"]+)"', steps)
        check(op is not None, "the fuse step adds an op")
        if op:
            dom = browser.dom("#view=ir&step=fuse&op=" + op.group(1))
            check(lit(dom, "data-op", op.group(1)), "op %s is lit" % op.group(1))
            check('data-step="recorded"' in dom and 'data-step="fuse"' in dom,
                  "the trail of an op starts where it was recorded")

        # From a kernel back to lines and calls, and from a line to kernels.
        dom = browser.dom("#view=kernels")
        kernel = re.search(r'data-kernel="(region[^"]*)"', dom)
        check(kernel is not None, "there is a generated kernel")
        if kernel:
            dom = browser.dom("#view=calls&kernel=" + kernel.group(1))
            check(re.search(r'class="[^"]*\blit\b[^"]*" data-call=', dom), "its calls are lit")
            check("Recorded at" in dom, "its lines are named")
        source = re.search(r'data-line="([^"]+)"', browser.dom("#view=overview&line=x"))
        path = re.search(r'data-path="([^"]+)"', dom)
        where = ("line", source.group(1)) if source else ("path", path.group(1))
        dom = browser.dom("#view=kernels&%s=%s" % where)
        check(re.search(r'class="[^"]*\blit\b[^"]*"[^>]*>|data-kernel="[^"]*" class="[^"]*\blit',
                        dom), "kernels of a %s are lit" % where[0])
        check("Runs as" in dom, "a %s has calls" % where[0])

        shots = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else folder / "shots"
        shots.mkdir(parents=True, exist_ok=True)
        for width, height in SIZES:
            for dark in (False, True):
                for view in ("overview", "ir", "graph"):
                    file = "%s-%d-%s.png" % (view, width, "dark" if dark else "light")
                    browser.shot("#view=" + view, shots / file, (width, height), dark)
    print("report: %d failures" % len(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    os.environ.setdefault("LC_ALL", "C.UTF-8")
    sys.exit(main())
