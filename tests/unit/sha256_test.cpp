// SPDX-License-Identifier: Apache-2.0
#include "runtime/sha256.h"

#include <gtest/gtest.h>

#include "runtime/mapped_file.h"

namespace lathe {
namespace {

// The example messages of FIPS 180-4.
TEST(Sha256, GivesThePublishedDigests) {
  EXPECT_EQ(sha256Hex(asBytes("")),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256Hex(asBytes("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256Hex(asBytes("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256Hex(asBytes(std::string(1'000'000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, IsTheSameInPieces) {
  const std::string text(300, 'q');
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    Sha256 hash;
    hash.update(asBytes(std::string_view(text).substr(0, cut)));
    hash.update(asBytes(std::string_view(text).substr(cut)));
    EXPECT_EQ(hash.finish(), sha256(asBytes(text))) << cut;
  }
}

}  // namespace
}  // namespace lathe
