// SPDX-License-Identifier: Apache-2.0
#pragma once
// The page at `/`.

namespace lathe::serve {

extern const char* const kChatPage;
/// Nothing is loaded from anywhere, and only this server is asked.
extern const char* const kChatPagePolicy;

}  // namespace lathe::serve
