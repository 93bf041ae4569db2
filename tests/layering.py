#!/usr/bin/env python3
"""The architecture as includes: who may include whom, no circle between folders, every source listed.

Usage: layering.py SOURCE_DIR
"""
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])
INCLUDE = re.compile(r'^ *#include ([<"])([^">]+)[">]', re.M)
LIBRARIES = {"mlir", "llvm", "lld", "clang"}
LONGEST = 1000

# The rooms from the ground up, and the libraries that a room may see. A room's public headers lie in
# include/lathe/ROOM, its others beside its sources.
ROOMS = {
    "runtime": set(),
    "ir": {"mlir", "llvm"},
    "passes": {"mlir", "llvm"},
    "backends": {"mlir", "llvm", "lld"},
    "frontend": {"mlir", "llvm"},
    "inspect": {"mlir", "llvm"},
}
ORDER = list(ROOMS)

failures = []


def sources(*folders):
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".h", ".cpp", ".inc") and path.is_file():
                yield path


def includes(path):
    """(folders and file of each quoted or angle include)"""
    return [name for _, name in INCLUDE.findall(path.read_text())]


def refuse(path, name, why):
    failures.append(f"{path.relative_to(ROOT)} includes {name}: {why}")


def check_rooms():
    for room, libraries in ROOMS.items():
        below = ORDER[: ORDER.index(room) + 1]
        for path in sources(room, f"include/lathe/{room}"):
            public = "include" in path.relative_to(ROOT).parts[:1]
            for name in includes(path):
                parts = name.split("/")
                if parts[0] in LIBRARIES and parts[0] not in libraries:
                    refuse(path, name, f"{room} sees no {parts[0]}")
                if parts[0] == "lathe" and len(parts) > 2 and parts[1] not in below:
                    refuse(path, name, f"{parts[1]} stands above {room}")
                if parts[0] not in ROOMS:
                    continue
                if public:
                    refuse(path, name, "a public header includes public headers alone")
                elif parts[0] not in below:
                    refuse(path, name, f"{parts[0]} stands above {room}")
                elif parts[0] == "backends" and room != "backends":
                    refuse(path, name, "what backends show is in include/lathe/backends")


def check_backends():
    """A backend stands on common, not on another one; run sides see the runtime alone."""
    for path in sources("backends"):
        folder = path.relative_to(ROOT).parts[1:-1]
        run_side = "device" in folder or "hostexec" in folder
        for name in includes(path):
            parts = name.split("/")
            if run_side and (
                parts[0] in LIBRARIES | set(ORDER[1:]) - {"backends"}
                or parts[0] == "lathe" and parts[1] != "runtime"
                or parts[0] == "backends" and not {"device", "hostexec", "include"} & set(parts)
            ):
                refuse(path, name, "a run side sees the runtime alone")
            if folder and parts[0] == "backends" and parts[1] not in (folder[0], "common"):
                refuse(path, name, "a backend stands on backends/common and no other backend")


def check_vendors():
    for path in sources(*ROOMS, "include", "tools"):
        name = path.relative_to(ROOT).as_posix()
        for include in includes(path):
            if re.match(r"(dnnl|oneapi/dnnl)", include) and not name.startswith("backends/cpu/"):
                refuse(path, include, "oneDNN is seen by backends/cpu alone")
            if name.startswith("tools/lathe/") and include.split("/")[0] in LIBRARIES:
                refuse(path, include, "the command loads the compiler when a verb needs it")


def check_circles():
    """No circle between folders; a room's public headers are a folder of their own."""
    known = {p.relative_to(ROOT).as_posix() for p in sources(*ROOMS, "include")}
    edges = collections.defaultdict(dict)
    for file in sorted(known):
        for name in includes(ROOT / file):
            target = name if name in known else f"include/{name}"
            here, there = file.rpartition("/")[0], target.rpartition("/")[0]
            if target in known and here != there:
                edges[here].setdefault(there, f"{file} includes {name}")
    state = {}

    def visit(folder, path):
        state[folder] = "open"
        for there, why in edges[folder].items():
            if state.get(there) == "open":
                steps = [step for step in path + [(folder, why)]]
                start = [f for f, _ in steps].index(there)
                failures.append("a circle of folders:\n  " + "\n  ".join(w for _, w in steps[start:]))
            elif there not in state:
                visit(there, path + [(folder, why)])
        state[folder] = "done"

    for folder in list(edges):
        if folder not in state:
            visit(folder, [])


def check_lists():
    """Every source is in the list of its layer's CMakeLists.txt."""
    for path in sources(*ROOMS):
        if path.suffix != ".cpp":
            continue
        folder = path.parent
        while not (folder / "CMakeLists.txt").exists():
            folder = folder.parent
        text = (folder / "CMakeLists.txt").read_text()
        listed = path.relative_to(folder).as_posix()
        if not re.search(rf"(?<![\w/]){re.escape(listed)}(?!\w)", text):
            failures.append(f"{path.relative_to(ROOT)} is not listed in "
                            f"{folder.relative_to(ROOT)}/CMakeLists.txt")


def check_length():
    for path in sources(*ROOMS, "include", "tools", "tests", "examples", "bench"):
        lines = path.read_text(errors="replace").count("\n")
        if lines > LONGEST:
            failures.append(f"{path.relative_to(ROOT)} has {lines} lines, more than {LONGEST}")


def check_names():
    """One type of a name: of two, the linker takes the inline functions of either for both."""
    opened = re.compile(r"^namespace ?([\w:]*) ?{")
    defined = re.compile(r"^(?:template <.*> ?)?(?:struct|class|union|enum(?: class)?) (\w+)"
                         r"(?: final)?(?: ?:(?!:)[^;]*)? ?{")
    homes = collections.defaultdict(set)
    for path in sources(*ROOMS, "include", "tools"):
        if path.suffix == ".inc":  # parts of others, each in a namespace of its own
            continue
        spaces = []
        for line in path.read_text().splitlines():
            if found := opened.match(line):
                spaces.append(found[1])
            elif spaces and line.startswith("}  // namespace"):
                spaces.pop()
            elif (found := defined.match(line)) and all(spaces):
                homes["::".join(spaces + [found[1]])].add(path.relative_to(ROOT).as_posix())
    for name, files in homes.items():
        if len(files) > 1:
            failures.append(f"{name} is another type in each of {', '.join(sorted(files))}")


for check in (check_rooms, check_backends, check_vendors, check_circles, check_lists, check_length,
              check_names):
    check()
print("\n".join(failures) or "layering: clean")
sys.exit(bool(failures))
