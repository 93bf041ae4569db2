# SPDX-License-Identifier: Apache-2.0
"""CUDA threads of host execution in gdb: gdb -x lathe_gdb.py --args PROGRAM

Run the program with LATHE_CUDA_HOST=debug and stop in a kernel text. `lathe` lists where every
thread of the cluster is; `lathe N` shows the backtrace of thread N while it waits.
"""
import gdb

STATES = ("not started", "ready", "running", "waiting", "returned")


def fibers():
    me = gdb.parse_and_eval("lt_self")
    if not int(me):
        raise gdb.GdbError("no CUDA thread runs here: stop inside a kernel text")
    count = int(me["bdim"]["x"]) * int(me["clusterSize"])
    first = me - int(me["linear"])
    return [first[i] for i in range(count)]


def state(fiber):
    return STATES[int(fiber["state"])]


def place(fiber):
    name = state(fiber)
    if name in ("waiting", "ready") and int(fiber["file"]):
        return "%s at %s:%d" % (name, fiber["file"].string().split("/")[-1], int(fiber["line"]))
    return name


def backtrace(fiber):
    if state(fiber) == "running":
        gdb.execute("bt")
        return
    stack = int(fiber["sp"])
    if not stack or state(fiber) in ("not started", "returned"):
        print("the thread has " + state(fiber) if stack else "the thread has not started")
        return

    # r15 r14 r13 r12 rbx rbp and the return address, as the context switch leaves them.
    def word(i):
        return int(gdb.parse_and_eval("*(unsigned long*)%d" % (stack + 8 * i)))

    registers = {"rsp": stack + 56, "rbp": word(5), "rbx": word(4), "rip": word(6)}
    before = {r: int(gdb.parse_and_eval("(unsigned long)$" + r)) for r in registers}
    try:
        for r, value in registers.items():
            gdb.execute("set $%s = %d" % (r, value))
        gdb.execute("bt")
    finally:
        for r, value in before.items():
            gdb.execute("set $%s = %d" % (r, value))


class Lathe(gdb.Command):
    """lathe [N]: the CUDA threads of the running cluster; with N, the backtrace of thread N."""

    def __init__(self):
        super().__init__("lathe", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        threads = fibers()
        if argument:
            backtrace(threads[int(argument)])
            return
        start = 0
        for i in range(1, len(threads) + 1):
            if i == len(threads) or place(threads[i]) != place(threads[start]):
                print("threads %d-%d: %s" % (start, i - 1, place(threads[start])))
                start = i


Lathe()
