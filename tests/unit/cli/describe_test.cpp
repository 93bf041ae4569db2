// SPDX-License-Identifier: Apache-2.0
// The manual page and the completion of bash that are made of the verbs' parsers.
#include <gtest/gtest.h>

#include "tests/unit/cli/printed.h"
#include "tests/unit/test_files.h"
#include "tools/lathe/describe.h"

namespace lathe::cli {
namespace {

int firstVerb(const ArgumentList& arguments) {
  auto parser = makeParser("first", "Does this.\n.It does 'so'.", "lathe first a\\b");
  std::string path, kind;
  int64_t count = 0;
  bool all = false;
  parser->add_option("MODEL", path, "a file")->required();
  parser->add_option("-n,--count", count, "how many")->check(WholeNumber{1});
  parser->add_option("-k,--kind", kind, "'which'")->check(CLI::IsMember({"one", "two-b"}));
  parser->add_flag("--all", all, "everything");
  if (!parseArguments(*parser, arguments)) return kOk;
  ADD_FAILURE() << "a verb that is described does nothing";
  return kOk;
}
int secondVerb(const ArgumentList& arguments) {
  auto parser = makeParser("second", "Does that.", "lathe second");
  return parseArguments(*parser, arguments) ? kOk : kFailed;
}
const std::vector<Verb> kVerbs{{"first", "does this", firstVerb},
                               {"second", "does that", secondVerb}};

const std::string kCommonFlags =
    ".TP\n\\fB\\-h,\\-\\-help\\fR\nprint this help\n"
    ".TP\n\\fB\\-\\-color\\fR \\fI{auto,always,never}\\fR\n"
    "colour of messages: auto, always or never\n"
    ".TP\n\\fB\\-q,\\-\\-quiet\\fR\nerrors alone on standard error\n"
    ".TP\n\\fB\\-v,\\-\\-verbose\\fR\nmore on standard error\n";

TEST(Describe, ThePageForMan) {
  const std::string page = test::printed([] { describeCommand(kVerbs, {"describe", "man"}, 1); });
  const std::string wanted =
      ".SH lathe first\n.B lathe first MODEL [FLAGS]\n.PP\nDoes this.\n\\&.It does 'so'.\n" +
      kCommonFlags +
      ".TP\n\\fB\\-n,\\-\\-count\\fR \\fIINT\\fR\nhow many\n"
      ".TP\n\\fB\\-k,\\-\\-kind\\fR \\fITEXT:{one,two\\-b}\\fR\n\\&'which'\n"
      ".TP\n\\fB\\-\\-all\\fR\neverything\n"
      ".PP\n.nf\nExample:\n  lathe first a\\eb\n.fi\n"
      ".SH lathe second\n.B lathe second [FLAGS]\n.PP\nDoes that.\n" +
      kCommonFlags +
      ".PP\n.nf\nExample:\n  lathe second\n.fi\n"
      ".SH EXIT STATUS\n0 done, 1 failed, 2 usage, 3 bad input file, 4 unsupported, 5 numeric\n"
      "mismatch, 6 out of memory, 70 internal error.\n";
  ASSERT_NE(page.find(".SH lathe first"), page.npos) << page;
  EXPECT_EQ(page.substr(page.find(".SH lathe first")), wanted);
  EXPECT_TRUE(page.starts_with(".TH LATHE 1 \"\" \"lathe ")) << page;
}

TEST(Describe, TheCompletionForBash) {
  const std::string script = test::printed([] { describeCommand(kVerbs, {"bash"}, 0); });
  for (const char* part :
       {"compgen -W 'help first second --help --version'",
        "help) mapfile -t COMPREPLY < <(compgen "
        "-W 'first second' -- ",
        "    first) flags='--help --color --quiet --verbose --count --kind --all' ;;\n"
        "    second) flags='--help --color --quiet --verbose' ;;\n  esac\n",
        "    'first --color') values='auto always never' ;;\n"
        "    'first -k'|'first --kind') values='one two-b' ;;\n"
        "    'second --color') values='auto always never' ;;\n  esac\n"})
    EXPECT_NE(script.find(part), script.npos) << part << "\nin " << script;
}

TEST(Describe, NothingElseIsDescribed) {
  for (const ArgumentList& words : {ArgumentList{}, {"html"}})
    test::expectError(ErrorCode::InvalidArgument,
                      "expected `lathe describe man` or `lathe describe bash`",
                      [&] { describeCommand(kVerbs, words, 0); });
  EXPECT_EQ(secondVerb({}), kOk) << "verbs run again behind a description";
}

}  // namespace
}  // namespace lathe::cli
