# SPDX-License-Identifier: Apache-2.0
"""Reads the machine code of kernels: the text that nvdisasm makes of a cubin.

The compiler that makes machine code of PTX moves loads over branches and multiplications; what a
kernel's text says about their order holds only if the machine code still says it.
"""

import bisect
import os
import re
import shutil
import struct
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

_INSTRUCTION = re.compile(r"\s+/\*([0-9a-f]{4,})\*/\s+(@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)\s*([^;]*);")
_WITHOUT_RESULT = ("STG", "ST", "STS", "STL", "RED", "BRA", "BAR", "EXIT", "BSSY", "BSYNC", "WARPSYNC")
# Of 8 bytes: the kernel's symbol and the number.
_REGISTER_COUNT = re.compile(rb"\x04\x2f\x08\x00.{4}(.{4})", re.S)


def nvdisasm():
    """The disassembler: $LATHE_NVDISASM, on PATH, of a toolkit, or that of scripts/setup; or None."""
    places = [os.environ.get("LATHE_NVDISASM"), shutil.which("nvdisasm"),
              "/usr/local/cuda/bin/nvdisasm", ROOT / ".deps/nvdisasm/bin/nvdisasm"]
    return next((str(p) for p in places if p and os.access(p, os.X_OK)), None)


@dataclass
class Instruction:
    address: int
    opcode: str  # "LDG.E.128.CONSTANT"
    operands: str
    guarded: bool = False  # by a predicate

    @property
    def target(self):
        """The label that it jumps to, or None."""
        to = re.search(r"`\((\.L_\w+)\)", self.operands)
        return to[1] if self.is_a("BRA") and to else None

    @property
    def always_leaves(self):
        """What stands behind it is reached by jumps alone."""
        return (self.is_a("EXIT") or self.is_a("BRA") and self.operands.startswith("`")) and not self.guarded

    def is_a(self, *names):
        return self.opcode.split(".")[0] in names

    @property
    def is_load(self):
        """Of global memory into registers."""
        return self.is_a("LDG", "LD")

    @property
    def is_constant_load(self):
        return self.is_a("LDG") and ".CONSTANT" in self.opcode

    @property
    def is_stream(self):
        """A chunk of weights, for which nobody waits here."""
        return self.is_constant_load and self.bytes == 16

    @property
    def carries(self):
        """The upper half of arithmetic of 64 bits: of addresses, where there are no wide integers."""
        return ".X" in self.opcode or ".WIDE" in self.opcode

    @property
    def bytes(self):
        """That one thread moves."""
        width = re.search(r"\.(64|128|U8|S8|U16|S16)(?:\.|$)", self.opcode)
        return {"64": 8, "128": 16, "U8": 1, "S8": 1, "U16": 2, "S16": 2}[width[1]] if width else 4


@dataclass
class MachineCode:
    name: str
    registers: int
    code: list = field(default_factory=list)
    labels: dict = field(default_factory=dict)  # to the number of the instruction behind it

    def before_wait(self):
        """What stands in front of griddepcontrol.wait, or None where there is none."""
        at = next((i for i, x in enumerate(self.code) if x.is_a("ACQBULK")), None)
        return None if at is None else self.code[:at]

    def loops(self):
        """The bodies of all loops: from a label to a branch back to it."""
        bodies = []
        for end, x in enumerate(self.code):
            begin = self.labels.get(x.target)
            if begin is not None and begin < end:
                bodies.append(self.code[begin:end])
        return bodies

    def issued(self, until=None):
        """Behind griddepcontrol.wait, in front of instruction number `until`: each instruction with
        the number of loads that, one after another, have arrived before it is issued. Each body of
        a loop is taken once; instructions issue in order, and one whose operand is on its way waits
        for it. Of two branches the longer one counts."""
        now, ready = 0, {}  # ready: the round after which a register holds its value
        begin, arriving = len(self.before_wait() or []), {}  # at labels, by jumps
        for number, x in enumerate(self.code[begin:until], begin):
            for at, there in arriving.pop(number, []):
                now = max(now or 0, at)
                ready = {r: max(ready.get(r, 0), there.get(r, 0)) for r in ready.keys() | there.keys()}
            if now is None:
                continue
            operands = x.operands.split(",")
            wide = x.bytes // 4 or 1
            writes = None if x.is_a(*_WITHOUT_RESULT) else re.match(r"\s*R(\d+)\b", operands[0])
            read = set()
            for part in operands[1 if writes else 0:]:
                for register, pair in re.findall(r"\bR(\d+)\b(\.64)?", part):
                    count = 2 if pair else wide if x.is_a("STG", "STS") else 1
                    read |= {int(register) + i for i in range(count)}
            now = max([now] + [ready.get(r, 0) for r in read])
            if writes:
                for i in range(wide if x.is_load else 1):
                    ready[int(writes[1]) + i] = now + (x.is_load and not x.is_stream)
            yield x, now
            if self.labels.get(x.target, 0) > number:
                arriving.setdefault(self.labels[x.target], []).append((now, dict(ready)))
            if x.always_leaves:
                now, ready = None, {}

    def rounds_behind_wait(self):
        """How many loads follow one another behind griddepcontrol.wait."""
        return max((now for _, now in self.issued()), default=0)

    def late_loads(self):
        """Loads in front of the loop over the weights that others have to arrive before."""
        begin = len(self.before_wait() or [])
        loops = [(self.labels[x.target], end) for end, x in enumerate(self.code)
                 if begin <= self.labels.get(x.target, -1) < end]
        streaming = [head for head, end in loops if any(x.is_stream for x in self.code[head:end])]
        return [x for x, now in self.issued(min(streaming, default=None)) if now and x.is_load and not x.is_stream]

    def local_accesses(self):
        return sum(x.is_a("LDL", "STL") for x in self.code)


def read_all(cubins):
    """The machine code of files with one kernel each, in their order. nvdisasm takes half a second to start
    and one file at a time, so it gets the instructions of all as one."""
    files = [(Path(cubin).stem, dict(_sections(Path(cubin).read_bytes()))) for cubin in cubins]
    kernels, begins, code = [], [], b""
    for name, sections in files:
        registers = _REGISTER_COUNT.search(sections.get(".nv.info", b""))
        kernels.append(MachineCode(name, struct.unpack("<I", registers[1])[0] if registers else 0))
        begins.append(len(code))
        code += sections[f".text.{name}"]
    with tempfile.NamedTemporaryFile(suffix=".bin") as file:
        file.write(code)
        file.flush()
        done = subprocess.run([nvdisasm(), "-b", "SM90a", file.name], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise RuntimeError(f"nvdisasm of {len(cubins)} kernels: {done.stderr.strip()}")
    return parse(kernels, begins, done.stdout)


def parse(kernels, begins, text):
    """The same kernels with what nvdisasm says of them: of the code of all, one behind the other, of which
    each begins at an address."""
    for found in filter(None, map(_INSTRUCTION.match, text.splitlines())):
        address = int(found[1], 16)
        of = bisect.bisect_right(begins, address) - 1
        operands = found[4].strip()
        if found[3].split(".")[0] == "BRA":  # places are places in the file, and have no names
            operands = re.sub(r"0x([0-9a-f]+)$", lambda to: f"`(.L_{int(to[1], 16) - begins[of]:x})", operands)
        kernels[of].code.append(Instruction(address - begins[of], found[3], operands, bool(found[2])))
    for kernel in kernels:
        if not kernel.code:
            raise RuntimeError(f"{kernel.name}: no instruction in what nvdisasm says")
        at = {x.address: number for number, x in enumerate(kernel.code)}
        targets = [x.target for x in kernel.code if x.target]
        kernel.labels = {to: at[int(to[3:], 16)] for to in targets}
    return kernels


def _sections(cubin):
    """Name and bytes of each section of an ELF file of 64 bits that has bytes there."""
    table, = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names = struct.unpack_from("<HHH", cubin, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", cubin, table + i * size) for i in range(count)]
    for name, kind, _, _, begin, length in headers:
        at = headers[names][4] + name
        if kind != 8:  # SHT_NOBITS
            yield cubin[at:cubin.index(b"\0", at)].decode(), cubin[begin:begin + length]


def runs(code, *kinds):
    """Lengths of the runs of instructions of each kind, in order: [("load", 4), ("product", 32)].
    `kinds`: pairs of a name and a predicate; other instructions are left out."""
    found = []
    for x in code:
        name = next((name for name, holds in kinds if holds(x)), None)
        if name is None:
            continue
        if found and found[-1][0] == name:
            found[-1] = (name, found[-1][1] + 1)
        else:
            found.append((name, 1))
    return found
