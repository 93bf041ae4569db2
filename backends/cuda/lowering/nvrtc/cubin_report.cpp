// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/nvrtc/cubin_report.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "lathe/runtime/error.h"

namespace lathe::cuda {
namespace {

// Attributes in sections .nv.info (of all functions) and .nv.info.KERNEL.
enum Attribute : uint8_t {
  kMaxThreads = 0x05,
  kFrameSize = 0x11,
  kRegisterCount = 0x2f,
  kClusterDims = 0x3d,
};
constexpr uint8_t kWithSize = 4;  // the format whose value has a size of its own

class Cubin {
 public:
  explicit Cubin(std::string_view bytes) : bytes_(bytes) {
    const auto header = at<Elf64_Ehdr>(0);
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) bad("it is no ELF file");
    if (header.e_shentsize != sizeof(Elf64_Shdr)) bad("its section headers have another size");
    for (size_t i = 0; i < header.e_shnum; ++i)
      sections_.push_back(at<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr)));
    if (header.e_shstrndx >= sections_.size()) bad("it has no section names");
    names_ = contents(sections_[header.e_shstrndx]);
    for (const Elf64_Shdr& s : sections_) {
      if (s.sh_type != SHT_SYMTAB) continue;
      if (s.sh_link >= sections_.size()) bad("its symbols have no names");
      symbols_ = contents(s);
      symbolNames_ = contents(sections_[s.sh_link]);
    }
  }

  [[noreturn]] static void bad(const std::string& why) {
    throw Error(ErrorCode::InvalidFile, "the cubin cannot be read: " + why);
  }

  /// visit(name, section, contents)
  template <class Visit>
  void eachSection(Visit visit) const {
    for (const Elf64_Shdr& s : sections_)
      visit(text(names_, s.sh_name), s, s.sh_type == SHT_NOBITS ? std::string_view() : contents(s));
  }
  std::string symbol(uint32_t index) const {
    return text(symbolNames_, read<Elf64_Sym>(symbols_, index * sizeof(Elf64_Sym)).st_name);
  }
  template <class T>
  static T read(std::string_view bytes, size_t offset) {
    if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) bad("it ends too early");
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof(T));
    return value;
  }

 private:
  template <class T>
  T at(size_t offset) const {
    return read<T>(bytes_, offset);
  }
  std::string_view contents(const Elf64_Shdr& s) const {
    if (s.sh_offset > bytes_.size() || bytes_.size() - s.sh_offset < s.sh_size)
      bad("a section reaches past its end");
    return bytes_.substr(s.sh_offset, s.sh_size);
  }
  static std::string text(std::string_view table, size_t offset) {
    if (offset >= table.size()) bad("a name is missing");
    table.remove_prefix(offset);
    return std::string(table.substr(0, table.find('\0')));
  }

  std::string_view bytes_, names_, symbols_, symbolNames_;
  std::vector<Elf64_Shdr> sections_;
};

// visit(attribute, value) for the attributes whose value has a size.
template <class Visit>
void eachAttribute(std::string_view section, Visit visit) {
  while (section.size() >= 4) {
    const auto format = uint8_t(section[0]), attribute = uint8_t(section[1]);
    const auto size = Cubin::read<uint16_t>(section, 2);
    section.remove_prefix(4);
    if (format != kWithSize) continue;
    if (size > section.size()) Cubin::bad("an attribute reaches past its section");
    visit(attribute, section.substr(0, size));
    section.remove_prefix(size);
  }
}

uint32_t word(std::string_view value, size_t index) {
  return Cubin::read<uint32_t>(value, index * sizeof(uint32_t));
}

// The number before `unit` in ptxas's line about the function.
int64_t bytesBefore(std::string_view line, std::string_view unit) {
  size_t end = line.find(unit), begin = end;
  if (end == line.npos) return 0;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
  return begin == end ? 0 : std::stoll(std::string(line.substr(begin, end - begin)));
}

void readSpills(std::string_view log, const std::string& name, KernelResources& kernel) {
  const std::string head = "Function properties for " + name + "\n";
  size_t at = log.find(head);
  if (at == log.npos) return;
  std::string_view line = log.substr(at + head.size());
  line = line.substr(0, line.find('\n'));
  kernel.spillStores = bytesBefore(line, " bytes spill stores");
  kernel.spillLoads = bytesBefore(line, " bytes spill loads");
}

}  // namespace

std::map<std::string, KernelResources> readCubin(std::string_view bytes, std::string_view log) {
  const Cubin cubin(bytes);
  std::map<std::string, KernelResources> functions, kernels;
  const std::string info = ".nv.info", shared = ".nv.shared.";
  cubin.eachSection(
      [&](const std::string& name, const Elf64_Shdr& section, std::string_view contents) {
        if (name == info)
          eachAttribute(contents, [&](uint8_t attribute, std::string_view value) {
            if (attribute == kRegisterCount)
              functions[cubin.symbol(word(value, 0))].registers = int(word(value, 1));
            if (attribute == kFrameSize)
              functions[cubin.symbol(word(value, 0))].stackBytes = word(value, 1);
          });
        else if (name.starts_with(info + "."))
          eachAttribute(contents, [&](uint8_t attribute, std::string_view value) {
            KernelResources& kernel = functions[name.substr(info.size() + 1)];
            if (attribute == kMaxThreads)
              kernel.maxThreads = int(word(value, 0) * word(value, 1) * word(value, 2));
            if (attribute == kClusterDims)
              for (size_t i = 0; i < 3; ++i) kernel.cluster[i] = int(word(value, i));
          });
        else if (name.starts_with(shared) && !name.starts_with(shared + "reserved"))
          functions[name.substr(shared.size())].sharedBytes =
              std::max<int64_t>(0, int64_t(section.sh_size) - Hopper::reservedShared);
      });
  for (auto& [name, kernel] : functions) {
    if (name.starts_with("$")) continue;  // the compiler's own out-of-line functions
    readSpills(log, name, kernel);
    kernels.insert({name, kernel});
  }
  return kernels;
}

Occupancy occupancy(const KernelResources& kernel, int threads, int64_t dynamicShared) {
  // Registers are given to warps in pieces of 256 from four files; shared memory in pieces of 128.
  constexpr int kFiles = 4;
  auto roundUp = [](int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; };
  const int warps = (threads + 31) / 32;
  Occupancy result;
  result.blocks = Hopper::blocks;
  result.limit = "blocks";
  auto atMost = [&](int64_t blocks, const char* limit) {
    if (blocks >= result.blocks) return;
    result.blocks = int(blocks);
    result.limit = limit;
  };
  atMost(warps > 32 ? 0 : Hopper::warps / warps, "warps");
  if (kernel.registers) {
    const int64_t perWarp = roundUp(int64_t(kernel.registers) * 32, 256);
    atMost(Hopper::registers / kFiles / perWarp * kFiles / warps, "registers");
  }
  const int64_t shared = kernel.sharedBytes + dynamicShared;
  if (shared > Hopper::blockShared)
    atMost(0, "shared memory");
  else
    atMost(Hopper::sharedBytes / roundUp(shared + Hopper::reservedShared, 128), "shared memory");
  result.warps = result.blocks * warps;
  return result;
}

}  // namespace lathe::cuda
