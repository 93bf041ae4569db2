// SPDX-License-Identifier: Apache-2.0
#include "lathe/runtime/session.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "python/src/arrays.h"
#include "python/src/dtypes.h"
#include "python/src/programs.h"

namespace lathe::python {
namespace {

Arrays arraysFrom(nb::handle named, const char* what) {
  Arrays arrays;
  for (nb::handle item : nb::list(named.attr("items")())) {
    if (!nb::isinstance<nb::str>(item[0]))
      throw Error(ErrorCode::InvalidArgument, std::string("expected the name of each ") + what +
                                                  ", got " + nb::repr(item[0]).c_str());
    std::string key = nb::cast<std::string>(item[0]);
    arrays[key] = arrayFrom(item[1], std::string(what) + " '" + key + "'");
  }
  return arrays;
}

void bindWeights(Session& session, nb::handle weights, const std::vector<std::string>& mayStay) {
  if (nb::hasattr(weights, "items")) {
    Arrays arrays = arraysFrom(weights, "weight");
    nb::gil_scoped_release released;
    session.bindWeights(arrays);
    return;
  }
  const std::string path = pathFrom(weights, "weights as a path or as arrays by name");
  nb::gil_scoped_release released;
  session.bindWeights(Checkpoint::open(path), mayStay);
}

nb::dict run(Session& session, const std::string& entry, const nb::kwargs& inputs) {
  Arrays given = arraysFrom(inputs, "input"), results;
  {
    nb::gil_scoped_release released;
    results = session.run(entry, given);
  }
  nb::dict named;
  for (const auto& [name, array] : results) named[name.c_str()] = array;
  return named;
}

std::vector<Array> call(Session& session, size_t entry, nb::handle inputs) {
  std::vector<Array> given, results;
  for (nb::handle input : inputs)
    given.push_back(arrayFrom(input, "input " + std::to_string(given.size())));
  nb::gil_scoped_release released;
  session.run(entry, given, results);
  return results;
}

const std::vector<Port>& inputsOf(const Session& session) {
  return session.program().entries.at(0).inputs;
}

}  // namespace

void bindSession(nb::module_& m) {
  nb::class_<Session>(m, "Session",
                      "A program with weights bound, states and memory of its own. One thread at a "
                      "time; other threads of Python go on while it runs.")
      .def(
          "__init__",
          [](Session* self, std::shared_ptr<Program> program, nb::handle weights, int threads,
             bool profile, const std::string& device) {
            new (self) Session(std::shared_ptr<const Program>(std::move(program)),
                               {.threads = threads, .profile = profile, .device = device});
            if (weights.is_none()) return;
            try {
              bindWeights(*self, weights, {});
            } catch (...) {
              self->~Session();
              throw;
            }
          },
          nb::arg("program"), nb::arg("weights") = nb::none(), nb::arg("threads") = 0,
          nb::arg("profile") = false, nb::arg("device") = "",
          nb::sig("def __init__(self, program: Program, weights: str | os.PathLike | "
                  "Mapping[str, ArrayLike] | None = None, threads: int = 0, profile: bool = False, "
                  "device: str = '') -> None"),
          "`weights`: a checkpoint's file or folder, or arrays by name; bind_weights() takes them "
          "later. `threads`: 0 for LATHE_NUM_THREADS or every CPU. `device`: \"gpu\" or \"host\" "
          "for programs of the cuda backend.")
      .def("bind_weights", bindWeights, nb::arg("weights"), nb::arg("may_stay") = nb::list(),
           nb::sig("def bind_weights(self, weights: str | os.PathLike | Mapping[str, ArrayLike], "
                   "may_stay: Sequence[str] = []) -> None"),
           "Checks names, dtypes and shapes of all weights, reporting every mistake at once, then "
           "runs the program's load function. Arrays that the program reads as they are stay "
           "referenced, not copied. Names of a checkpoint that `may_stay` names or ends may be "
           "left over.")
      .def(
          "bind_random_weights",
          [](Session& s, uint64_t seed) {
            nb::gil_scoped_release released;
            s.bindRandomWeights(seed);
          },
          nb::arg("seed") = 0, "Uniform in +-1/sqrt(last dim), the same everywhere for a seed.")
      .def(
          "run", run, nb::arg("entry") = "forward", nb::arg("inputs"),
          nb::sig("def run(self, entry: str = 'forward', **inputs: ArrayLike) -> dict[str, Array]"),
          "Runs an entry point on inputs by name: any DLPack producer. The results by name; their "
          "memory is not used again while they live. Raises Error for missing, extra or misshaped "
          "inputs, before anything has run.")
      .def(
          "__call__",
          [](Session& s, const nb::args& inputs) -> nb::object {
            if (inputs.size() != inputsOf(s).size())
              throw Error(ErrorCode::InvalidArgument,
                          "entry point '" + s.program().entries.at(0).name + "' takes " +
                              std::to_string(inputsOf(s).size()) + " inputs, got " +
                              std::to_string(inputs.size()));
            std::vector<Array> results = call(s, 0, inputs);
            if (results.size() == 1) return nb::cast(results[0]);
            return nb::tuple(nb::cast(results));
          },
          nb::sig("def __call__(self, *inputs: ArrayLike) -> Array | tuple[Array, ...]"),
          "Runs the first entry point on inputs in order; its result, or a tuple of them.")
      .def(
          "_run_torch",
          [](Session& s, nb::handle inputs) {
            nb::list results;
            for (Array& a : call(s, 0, inputs)) results.append(viewOf<nb::pytorch>(std::move(a)));
            return results;
          },
          "The first entry point on a list of tensors; tensors of PyTorch.")
      .def("set_symbol", &Session::setSymbol, nb::arg("name"), nb::arg("value"),
           "Fixes a symbol that only states have (the cache's capacity). Clears those states.")
      .def("reset_states", &Session::resetStates, "Sets every state back to zero.")
      .def(
          "state",
          [](const Session& s, const std::string& name) -> nb::object {
            Array value = s.state(name);
            return value.defined() ? nb::cast(value) : nb::none();
          },
          nb::arg("name"), nb::sig("def state(self, name: str) -> Array | None"),
          "A copy of a state's present value; None before the first run.")
      .def_prop_ro(
          "memory",
          [](const Session& s) {
            Session::Memory memory = s.memory();
            nb::dict bytes;
            bytes["arena"] = memory.arena;
            bytes["states"] = memory.states;
            bytes["scratch"] = memory.scratch;
            bytes["derived"] = memory.derived;
            return bytes;
          },
          nb::sig("def memory(self) -> dict[str, int]"),
          "Bytes of arena, states, scratch and derived weights.")
      .def(
          "profile",
          [](const Session& s, const std::string& entry) {
            nb::list rows;
            for (const CallProfile& row : s.profile(entry))
              rows.append(nb::make_tuple(row.kind, row.origin, row.seconds, row.runs));
            return rows;
          },
          nb::arg("entry") = "forward",
          nb::sig("def profile(self, entry: str = 'forward') -> "
                  "list[tuple[str, str, float, int]]"),
          "Kind, origin, seconds and runs of every call; needs `profile=True`.")
      .def("__repr__", [](const Session& s) {
        return "lathe.Session(" + s.program().backend + ", " +
               std::to_string(s.program().entries.size()) + " entry points)";
      });
}

}  // namespace lathe::python
