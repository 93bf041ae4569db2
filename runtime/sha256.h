// SPDX-License-Identifier: Apache-2.0
#pragma once
// SHA-256 (FIPS 180-4), for the hashes of artifact sections.
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace lathe {

class Sha256 {
 public:
  Sha256();
  void update(std::span<const std::byte> bytes);
  /// The digest of everything passed to update(); call once.
  std::array<std::byte, 32> finish();

 private:
  void compress(const std::byte* block);
  std::array<uint32_t, 8> state_;
  std::array<std::byte, 64> buffer_;
  size_t buffered_ = 0;
  uint64_t length_ = 0;
};

std::array<std::byte, 32> sha256(std::span<const std::byte> bytes);
/// 64 lower-case hexadecimal digits.
std::string sha256Hex(std::span<const std::byte> bytes);

}  // namespace lathe
