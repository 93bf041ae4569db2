// SPDX-License-Identifier: Apache-2.0
#include "ir/composing.h"

namespace lathe {
namespace {

thread_local const char* outermost = nullptr;

}  // namespace

Composing::Composing(const char* function) : isOutermost_(!outermost) {
  if (isOutermost_) outermost = function;
}
Composing::~Composing() {
  if (isOutermost_) outermost = nullptr;
}

const char* Composing::function() { return outermost; }

std::string Composing::named(const std::string& text) {
  return outermost ? std::string(outermost) + ": " + text : text;
}

}  // namespace lathe
