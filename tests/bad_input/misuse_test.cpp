// SPDX-License-Identifier: Apache-2.0
// Misuse of the API never crashes, hangs, throws another type or passes silently. Every row of the
// tables runs in a forked process with little time and memory, so that one cannot hide another.
#include <csignal>
#include <cstdio>
#include <map>

#include <gtest/gtest.h>
#include <lathe/lathe.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bad_input/misuse/misuse.h"

namespace lathe::misuse {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif
#else
constexpr bool kSanitized = false;
#endif

// A row takes milliseconds; these stop one that does not end or eats memory.
constexpr rlim_t kSeconds = kSanitized ? 60 : 10;
constexpr rlim_t kBytes = rlim_t(6) << 30;

enum class End { Refused, Accepted, Foreign, Crashed, Hung };
constexpr const char* kEnds[] = {"refused", "accepted", "foreign exception", "crashed", "hung"};

struct Outcome {
  End end = End::Crashed;
  int code = -1;
  std::string file, text;
};

void limit(int resource, rlim_t value) {
  rlimit l{value, value};
  ::setrlimit(__rlimit_resource_t(resource), &l);
}

// What the child says: one letter, the code, the file and the message.
[[noreturn]] void runRow(const Misuse& row, int pipe) {
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_CPU, kSeconds);
  if (!kSanitized) limit(RLIMIT_AS, kBytes);
  std::string said;
  try {
    row.action();
    said = "A";
  } catch (const Error& e) {
    said = "E" + std::to_string(int(e.code())) + "\n" + e.file() + "\n" + e.what();
  } catch (const std::exception& e) {
    said = std::string("F") + e.what();
  } catch (...) {
    said = "Fsomething that is no std::exception";
  }
  for (size_t done = 0; done < said.size();) {
    const ssize_t n = ::write(pipe, said.data() + done, said.size() - done);
    if (n <= 0) break;
    done += size_t(n);
  }
  ::_exit(0);
}

Outcome run(const Misuse& row) {
  int ends[2];
  if (::pipe(ends) != 0) return {.text = "no pipe"};
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) runRow(row, ends[1]);
  ::close(ends[1]);
  std::string said;
  bool late = false;
  for (char buffer[4096];;) {
    pollfd wait{ends[0], POLLIN, 0};
    late = ::poll(&wait, 1, int(kSeconds) * 3000) == 0;
    const ssize_t n = late ? 0 : ::read(ends[0], buffer, sizeof buffer);
    if (n <= 0) break;
    said.append(buffer, size_t(n));
  }
  ::close(ends[0]);
  if (late) ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (late || (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)) return {.end = End::Hung};
  if (WIFSIGNALED(status)) return {.text = ::strsignal(WTERMSIG(status))};
  if (WEXITSTATUS(status) != 0 || said.empty())
    return {.text = "exit status " + std::to_string(WEXITSTATUS(status))};
  if (said[0] == 'A') return {.end = End::Accepted};
  if (said[0] == 'F') return {.end = End::Foreign, .text = said.substr(1)};
  const size_t code = said.find('\n'), file = said.find('\n', code + 1);
  return {.end = End::Refused,
          .code = std::stoi(said.substr(1, code - 1)),
          .file = said.substr(code + 1, file - code - 1),
          .text = said.substr(file + 1)};
}

class MisuseTest : public ::testing::TestWithParam<Misuse> {};

// How the rows ended, told at the end of the whole run.
class Tally : public ::testing::Environment {
 public:
  void TearDown() override {
    for (auto [end, count] : counts) std::printf("misuse: %d %s\n", count, kEnds[int(end)]);
  }
  static inline std::map<End, int> counts;
};
[[maybe_unused]] const ::testing::Environment* const kTally =
    ::testing::AddGlobalTestEnvironment(new Tally);

TEST_P(MisuseTest, IsRefused) {
  const Misuse& row = GetParam();
  const Outcome outcome = run(row);
  ++Tally::counts[outcome.end];
  ASSERT_EQ(outcome.end, End::Refused) << kEnds[int(outcome.end)] << " " << outcome.text;
  EXPECT_EQ(outcome.code, int(row.code)) << outcome.text;
  EXPECT_FALSE(row.words.empty());
  for (const std::string& piece : row.words)
    EXPECT_NE(outcome.text.find(piece), std::string::npos)
        << "expected \"" << piece << "\" in: " << outcome.text;
  if (row.blames == Blames::Caller)
    EXPECT_NE(outcome.file.find("bad_input/misuse/"), std::string::npos)
        << "blames '" << outcome.file << "': " << outcome.text;
}

std::string nameOf(const ::testing::TestParamInfo<Misuse>& info) { return info.param.name; }

#define LATHE_SUITE(table) \
  INSTANTIATE_TEST_SUITE_P(table, MisuseTest, ::testing::ValuesIn(table()), nameOf);
LATHE_MISUSE_TABLES(LATHE_SUITE)
#undef LATHE_SUITE

}  // namespace
}  // namespace lathe::misuse
