// SPDX-License-Identifier: Apache-2.0
#include "tools/serve/chat_page.h"

namespace lathe::serve {

const char* const kChatPage =
#include "chat_page.inc"
    ;

const char* const kChatPagePolicy =
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src "
    "'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

}  // namespace lathe::serve
