// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target without libFuzzer: its seeds, the files and folders of the command line, and
// mutants of each. An input that crashes, or takes longer than ten seconds, is written to a file;
// so is the first one after which the process holds more memory than any input of this size may
// take.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "lathe/runtime/sampler.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using lathe::RandomGenerator;

constexpr unsigned kSeconds = 10;
constexpr long kMaxResidentKiB = 1 << 20;
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LATHE_ADDRESS_SANITIZER
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define LATHE_ADDRESS_SANITIZER
#endif
#ifdef LATHE_ADDRESS_SANITIZER
constexpr bool kMeasuresMemory = false;  // the sanitizer's own is most of it
#else
constexpr bool kMeasuresMemory = true;
#endif

const std::string* running = nullptr;
std::string crashFile;

void keepInput() {
  const int file = open(crashFile.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return;
  if (running && write(file, running->data(), running->size()) < 0) return;
  close(file);
  constexpr std::string_view words = "the input is in ";
  (void)!write(2, words.data(), words.size());
  (void)!write(2, crashFile.data(), crashFile.size());
  (void)!write(2, "\n", 1);
}

void onSignal(int number) {
  keepInput();
  signal(number, SIG_DFL);
  raise(number);
}

void catchCrashes() {
  crashFile = "/tmp/lathe-fuzz-" + std::to_string(getpid());
  // An overflow of the stack leaves no room on it.
  constexpr size_t size = 1 << 16;
  stack_t own{};
  own.ss_sp = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  own.ss_size = size;
  sigaltstack(&own, nullptr);
  struct sigaction action{};
  action.sa_handler = onSignal;
  action.sa_flags = SA_ONSTACK | int(SA_NODEFER);
  for (int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGALRM})
    sigaction(number, &action, nullptr);
}

void runOne(const std::string& bytes) {
  running = &bytes;
  alarm(kSeconds);
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  alarm(0);
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  if (kMeasuresMemory && usage.ru_maxrss > kMaxResidentKiB) {
    std::fprintf(stderr, "%ld KiB of memory\n", usage.ru_maxrss);
    keepInput();
    std::_Exit(1);
  }
}

constexpr std::array kNumbers{"0",          "-1",         "1",       "2147483648",
                              "1000000000", "4294967296", "1e308",   "9223372036854775807",
                              "0.5",        "-0",         "1e-320",  "18446744073709551616",
                              "null",       "true",       "\"\"",    "[]",
                              "{}",         "65536",      "16777216"};

// A whole number of the text becomes another one, or something else.
void replaceNumber(std::string& bytes, size_t from, RandomGenerator& random) {
  const size_t begin = bytes.find_first_of("0123456789", from);
  if (begin == bytes.npos) return;
  const size_t end = std::min(bytes.find_first_not_of("0123456789.eE+-", begin), bytes.size());
  bytes.replace(begin, end - begin, kNumbers[random.next() % kNumbers.size()]);
}

constexpr std::string_view kTelling = "0123456789[]{}()<>\"\\:,-.*?+x";

// Bytes replaced, removed, repeated, moved and swapped for others: enough to leave the well-trodden
// paths.
std::string mutate(std::string bytes, RandomGenerator& random) {
  for (uint64_t n = 1 + random.next() % 4; n > 0 && !bytes.empty(); --n) {
    const size_t at = random.next() % bytes.size(), from = random.next() % bytes.size();
    const size_t length = 1 + random.next() % (random.next() % 4 ? 8 : 200);
    switch (random.next() % 10) {
      case 0:
        bytes[at] = char(random.next());
        break;
      case 1:
        bytes.erase(at, length);
        break;
      case 2:
        bytes.insert(at, bytes.substr(from, length));
        break;
      case 3:
        bytes[at] = kTelling[random.next() % kTelling.size()];
        break;
      case 4:
      case 7:
      case 8:
      case 9:
        replaceNumber(bytes, at, random);
        break;
      case 5:
        bytes.resize(at);
        break;
      case 6: {
        const std::string piece = bytes.substr(from, length);
        for (uint64_t k = random.next() % 50; k > 0; --k) bytes.insert(at, piece);
        break;
      }
    }
  }
  return bytes;
}

int usage(const char* name) {
  std::fprintf(stderr, "usage: %s [--mutants N] [--seed N] [--write FOLDER] [FILE_OR_FOLDER...]\n",
               name);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  namespace fs = std::filesystem;
  long mutants = 1000, seed = 1;
  std::string folder;
  std::vector<fs::path> files;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word.starts_with("--") && i + 1 == argc) return usage(argv[0]);
    if (word == "--mutants")
      mutants = std::atol(argv[++i]);
    else if (word == "--seed")
      seed = std::atol(argv[++i]);
    else if (word == "--write")
      folder = argv[++i];
    else if (!fs::is_directory(word))
      files.emplace_back(word);
    else
      for (auto& entry : fs::directory_iterator(word)) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<std::string> inputs = lathe::fuzz::seeds();
  for (const fs::path& path : files) {
    std::ifstream in(path, std::ios::binary);
    if (!in) return usage(argv[0]);
    inputs.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  if (inputs.empty()) return usage(argv[0]);
  if (!folder.empty()) {  // a corpus for libFuzzer
    fs::create_directories(folder);
    for (size_t i = 0; i < inputs.size(); ++i)
      std::ofstream(fs::path(folder) / std::to_string(i), std::ios::binary) << inputs[i];
    return 0;
  }
  catchCrashes();
  RandomGenerator random{uint64_t(seed)};
  for (const std::string& input : inputs) {
    runOne(input);
    for (long i = 0; i < mutants; ++i) runOne(mutate(input, random));
  }
  std::printf("%zu inputs and %ld mutants of each: no crash\n", inputs.size(), mutants);
  return 0;
}
