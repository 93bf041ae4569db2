// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "lathe/passes/dag_pattern.h"
#include "python/src/caller.h"
#include "python/src/dtypes.h"
#include "python/src/recording.h"

namespace lathe::python {
namespace {

// What Python holds of a pattern, which may be longer than the pattern lives.
struct GivenPattern {
  DagPattern* pattern = nullptr;
  DagPattern& operator*() const {
    if (pattern) return *pattern;
    throw Error(
        ErrorCode::InvalidArgument,
        "the pattern is recorded already: a Pattern can be used in the call that it was given to",
        here());
  }
  DagPattern* operator->() const { return &**this; }
};

template <class Result, class... Args>
auto calling(Result (DagPattern::*method)(Args...)) {
  return [method](GivenPattern& p, Args... args) -> Result { return ((*p).*method)(args...); };
}

}  // namespace

PatternsFor patternsFrom(nb::handle functions) {
  // The list outlives the compilation; the last reference may be dropped without the lock.
  auto kept = std::shared_ptr<nb::list>(new nb::list, [](nb::list* list) {
    nb::gil_scoped_acquire lock;
    delete list;
  });
  for (nb::handle function : functions) {
    if (!nb::hasattr(function, "__call__"))
      throw Error(ErrorCode::InvalidArgument,
                  std::string("patterns: expected functions of a Pattern, got ") +
                      nb::repr(function).c_str());
    kept->append(function);
  }
  return [kept](mlir::MLIRContext* context) {
    nb::gil_scoped_acquire lock;
    PatternLibrary library;
    for (nb::handle function : *kept) {
      // A functools.partial has no name.
      const std::string name = nb::cast<std::string>(
          nb::getattr(function, "__name__", nb::getattr(function.type(), "__name__")));
      addPattern(library, context, name, [&](DagPattern& pattern) {
        nb::object given = nb::cast(GivenPattern{&pattern});
        struct End {
          GivenPattern& given;
          ~End() { given.pattern = nullptr; }
        } end{nb::cast<GivenPattern&>(given)};
        function(given);
      });
    }
    return library;
  };
}

void bindPatterns(nb::module_& m) {
  nb::class_<GivenPattern>(
      m, "Pattern",
      "A fusion: what is recorded before root() is looked for, what is recorded after it takes its "
      "place. Constants, axes and permutations match exactly unless written as free; values inside "
      "must not have users outside the match unless allowed to.")
      .def(
          "any",
          [](GivenPattern& p, nb::handle dtype) {
            auto given = optionalDType(dtype);
            return given ? p->any(*given, here()) : p->any(here());
          },
          nb::arg("dtype") = nb::none(),
          nb::sig("def any(self, dtype: DTypeLike | None = None) -> Tensor"),
          "Any value, of the dtype if one is given; used twice it must be the same value twice.")
      .def(
          "constant",
          [](GivenPattern& p, double value, double tolerance) {
            return p->constant(value, tolerance, here());
          },
          nb::arg("value"), nb::arg("tolerance") = 1e-6,
          "A constant all of whose elements are `value`.")
      .def(
          "any_of",
          [](GivenPattern& p, const std::vector<Tensor>& alternatives) {
            return p->anyOf(alternatives, here());
          },
          nb::arg("alternatives"), "Any one of several spellings.")
      .def(
          "optional",
          [](GivenPattern& p, const Tensor& op, const Tensor& otherwise) {
            return p->optional(op, otherwise, here());
          },
          nb::arg("op"), nb::arg("otherwise"), "`op`, or `otherwise` in its place.")
      .def(
          "dtype",
          [](GivenPattern& p, const Tensor& t, nb::handle dtype) {
            return p->dtype(t, dtypeFrom(dtype));
          },
          nb::arg("tensor"), nb::arg("dtype"),
          nb::sig("def dtype(self, tensor: Tensor, dtype: DTypeLike) -> Tensor"),
          "Constrains the dtype.")
      .def("rank", calling(&DagPattern::rank), nb::arg("tensor"), nb::arg("rank"),
           "Constrains the rank.")
      .def("dim", calling(&DagPattern::dim), nb::arg("tensor"), nb::arg("axis"), nb::arg("size"),
           "The axis (negative: from the back) has this size.")
      .def("weight", calling(&DagPattern::weight), nb::arg("tensor"), "A checkpoint tensor.")
      .def("one_use", calling(&DagPattern::oneUse), nb::arg("tensor"), "No other user.")
      .def("may_escape", calling(&DagPattern::mayEscape), nb::arg("tensor"),
           "The value may have users outside the match: it stays, and is computed twice.")
      .def("same_dim", calling(&DagPattern::sameDim), nb::arg("a"), nb::arg("axis_a"), nb::arg("b"),
           nb::arg("axis_b"), "The two axes are provably equal.")
      .def(
          "any_attribute",
          [](GivenPattern& p, const Tensor& t, const std::string& name) {
            return p->anyAttribute(t, name);
          },
          nb::arg("tensor"), nb::arg("name"), "The op may have any value of the attribute.")
      .def(
          "root", [](GivenPattern& p, const Tensor& t) { p->root(t); }, nb::arg("tensor"),
          "What the pattern matches: an op. What is recorded afterwards is the replacement.")
      .def(
          "replace_with", [](GivenPattern& p, const Tensor& t) { p->replaceWith(t); },
          nb::arg("tensor"), "What takes the root's place.")
      .def("replace_too", calling(&DagPattern::replaceToo), nb::arg("matched"), nb::arg("by"),
           "A matched value other than the root's that `by` replaces as well.")
      .def("approximate", calling(&DagPattern::approximate),
           "The replacement computes other values on purpose: it is not compared with what it "
           "replaces.")
      .def(
          "phase", [](GivenPattern& p, int number) { p->phase(number); }, nb::arg("number"),
          "Tried when patterns of all earlier phases are done.");
}

}  // namespace lathe::python
