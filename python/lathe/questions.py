# SPDX-License-Identifier: Apache-2.0
"""Questions about a graph: texts and tables that show themselves in a terminal and in a notebook."""
import html

from . import _compiler


class Text(str):
    """A text that a notebook shows as it is laid out."""

    def _repr_html_(self):
        return f"<pre style='line-height:1.25'>{html.escape(self)}</pre>"

    def _repr_pretty_(self, printer, cycle):
        printer.text(str(self))


class Table(list):
    """Rows (dicts of one set of keys) with a title, and what to say where there are none."""

    def __init__(self, rows, title, columns, empty):
        super().__init__(rows)
        self.title, self.columns, self.empty = title, columns, empty

    def _cells(self):
        return [[_cell(row[c]) for c in self.columns] for row in self]

    def __repr__(self):
        if not self:
            return f"{self.title}: {self.empty}"
        lines = [list(self.columns)] + self._cells()
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.columns))]
        text = "\n".join("  ".join(c.ljust(w) for c, w in zip(line, widths)).rstrip() for line in lines)
        return f"{self.title}\n{text}"

    __str__ = __repr__

    def _repr_html_(self):
        if not self:
            return f"<p><b>{html.escape(self.title)}</b>: {html.escape(self.empty)}</p>"
        head = "".join(f"<th>{html.escape(c)}</th>" for c in self.columns)
        body = "".join("<tr>" + "".join(f"<td style='text-align:left'>{html.escape(c)}</td>" for c in line) + "</tr>"
                       for line in self._cells())
        return f"<table><caption>{html.escape(self.title)}</caption><tr>{head}</tr>{body}</table>"


def _cell(value):
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    return str(value)


class Report:
    """The page of docs/report.md, and the program that was compiled for it."""

    def __init__(self, program, page):
        self.program, self.page = program, page

    def save(self, path):
        """Writes the page: one offline file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.page)

    def __repr__(self):
        return f"lathe.Report({len(self.page)} bytes of HTML; save() writes them)"

    def _repr_html_(self):
        return f'<iframe srcdoc="{html.escape(self.page)}" width="100%" height="700" frameborder="0"></iframe>'


def ir(graph, stage="recorded", locations=False, **options):
    """The graph's text at a stage: recorded, canonical, fused, sharded, laid-out, lowered or program."""
    return Text(_compiler.ir_at(graph, stage, locations, **options))


def why_not(graph, op="", at="", **options):
    """Why ops were not fused, or not kept fused: the nearest pattern of each and what stopped it. `op` is a
    glob of names of ops or patterns, `at` a line such as "model.py:40"; the options are compile()'s."""
    rows = _compiler._why_not(graph, op, at, **options)
    return Table(rows, "not fused", ("op", "at", "pattern", "matched", "of", "reason"), "nothing came near")


def rewrites(graph, **options):
    """Every rewrite by number, with the contracts that it weakened."""
    return Table(_compiler._rewrites(graph, **options), "rewrites",
                 ("number", "step", "what", "at", "path", "weakened"), "none")


def check_numerics(graph, seed=0, **options):
    """The largest error after each step of the pipeline on one random input, and the first op that differs."""
    return Table(_compiler._check_numerics(graph, seed, **options), "numerics",
                 ("stage", "step", "rewrites", "absolute", "relative", "within", "op", "at"), "no steps")


def diff(a, b, stage="canonical", weights_by_name=True):
    """Whether two graphs compute the same, entry by entry, and where they first part."""
    return Table(_compiler._diff(a, b, stage, weights_by_name), "differences",
                 ("entry", "equal", "why", "a", "b"), "no entry points in common")


def report(graph, title="graph", **options):
    """Compiles the graph and keeps what happened: source lines, the IR after each step, kernels, memory."""
    return Report(*_compiler._report(graph, title, **options))
