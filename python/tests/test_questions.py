# SPDX-License-Identifier: Apache-2.0
"""What is asked of graphs, as text and as HTML."""
import numpy as np

import lathe


def near_miss():
    """A softmax whose maximum is of another axis: not the fused op."""
    g = lathe.Graph()
    x = g.input("x", "f32", [4, 4])
    e = lathe.exp(x - lathe.reduce_max(x, [0], True))
    g.output("y", e / lathe.reduce_sum(e, [1], True))
    return g


def test_why_not_names_the_pattern_and_the_line():
    rows = lathe.why_not(near_miss())
    assert any("softmax" in row["pattern"] and "test_questions.py" in row["at"] for row in rows)
    assert "softmax" in str(rows) and "<table>" in rows._repr_html_()


def test_rewrites_numerics_and_differences():
    g = lathe.Graph()
    x = g.input("x", "f32", [4, 8])
    g.output("y", lathe.nn.softmax(x))
    assert any(row["what"] == "softmax" for row in lathe.rewrites(g))
    assert all(row["within"] for row in lathe.check_numerics(g))
    assert all(row["equal"] for row in lathe.diff(g, g))
    assert not all(row["equal"] for row in lathe.diff(g, near_miss()))


def test_weights_are_told_apart_by_name_unless_told_otherwise():
    def scaled(name):
        g = lathe.Graph()
        g.output("y", g.input("x", "f32", [4]) * g.weight(name, "f32", [4]))
        return g

    a, b = scaled("a"), scaled("b")
    assert not all(row["equal"] for row in lathe.diff(a, b))
    assert all(row["equal"] for row in lathe.diff(a, b, weights_by_name=False))


def test_ir_shows_itself():
    text = lathe.ir(near_miss(), "canonical")
    assert isinstance(text, str) and "lathe.exp" in text
    assert text._repr_html_().startswith("<pre") and "&lt;" in text._repr_html_()


def test_a_report_is_a_page(tmp_path):
    report = lathe.report(near_miss(), title="softmax <by hand>")
    assert "&lt;" in report._repr_html_() and report._repr_html_().startswith("<iframe")
    report.save(tmp_path / "out.html")
    assert (tmp_path / "out.html").read_text().lstrip().lower().startswith("<!doctype html>")
    assert np.asarray(lathe.Session(report.program)(np.zeros((4, 4), "f4"))).shape == (4, 4)


def test_tables_show_small_numbers_and_lists():
    table = lathe.questions.Table([{"error": 1.5e-7, "of": [1, 2], "op": "add"}, {"error": 12345.678, "of": (), "op": "<b>"}],
                                  "numerics", ("op", "error", "of"), "no steps")
    assert str(table).splitlines() == ["numerics", "op   error     of", "add  1.5e-07   1, 2", "<b>  1.23e+04"]
    page = table._repr_html_()
    assert "<td style='text-align:left'>1.5e-07</td>" in page and "&lt;b&gt;" in page and "<b>" not in page
    assert str(lathe.questions.Table([], "numerics", ("op",), "no steps")) == "numerics: no steps"
