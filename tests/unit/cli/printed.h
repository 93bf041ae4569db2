// SPDX-License-Identifier: Apache-2.0
#pragma once
// What functions of the `lathe` command print, without a process for each.
#include <string>

#include <gtest/gtest.h>

namespace lathe::test {

/// Standard output of `action`.
template <class Action>
std::string printed(Action action) {
  testing::internal::CaptureStdout();
  action();
  return testing::internal::GetCapturedStdout();
}

}  // namespace lathe::test
