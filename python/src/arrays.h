// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arrays of Python as Lathe's and back, by DLPack and without copies.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <string>

#include "lathe/runtime/array.h"

namespace lathe::python {

namespace nb = nanobind;

/// A view of the memory of any DLPack producer (NumPy, PyTorch, JAX, ...) or of an Array, which it
/// keeps alive. One that is not row-major is copied. `what` says in errors what it is for. Throws
/// Error (InvalidArgument) for what is no array and for one that lies on a device, (Unsupported)
/// for a dtype that there is not.
Array arrayFrom(nb::handle object, const std::string& what);

nb::dlpack::dtype dlpackOf(DType dtype);

/// The class `Array`.
void bindArray(nb::module_& m);

/// The memory as numbers of `dtype` under another framework's name; the storage lives as long as
/// the view.
template <class Framework>
nb::ndarray<Framework, nb::device::cpu> viewOf(Array array, nb::dlpack::dtype dtype) {
  auto* kept = new Array(std::move(array));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<Array*>(p); });
  std::vector<size_t> shape(kept->shape().begin(), kept->shape().end());
  return nb::ndarray<Framework, nb::device::cpu>(kept->data(), shape.size(), shape.data(), owner,
                                                 nullptr, dtype);
}
template <class Framework>
nb::ndarray<Framework, nb::device::cpu> viewOf(const Array& array) {
  return viewOf<Framework>(array, dlpackOf(array.dtype()));
}

/// What os.fspath gives; an Error that says what was `expected` for anything else.
std::string pathFrom(nb::handle value, const char* expected);

}  // namespace lathe::python
