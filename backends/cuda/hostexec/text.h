// SPDX-License-Identifier: Apache-2.0
#pragma once
// Text of fixed size for reports: made on fibers that are given up afterwards, so nothing that the
// heap owns may live there.
#include <cstdarg>
#include <cstdio>

namespace lathe::cuda::host {

struct Text {
  char chars[768];
  operator const char*() const { return chars; }
};

[[gnu::format(printf, 1, 2)]] inline Text text(const char* format, ...) {
  Text t;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(t.chars, sizeof t.chars, format, arguments);
  va_end(arguments);
  return t;
}

}  // namespace lathe::cuda::host
