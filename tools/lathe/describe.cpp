// SPDX-License-Identifier: Apache-2.0
#include "tools/lathe/describe.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "lathe/runtime/error.h"
#include "tools/lathe/arguments.h"

namespace lathe::cli {
namespace {

struct Flag {
  std::string names, value, description;  // "-n,--new-tokens"; empty value for a switch
  std::vector<std::string> words;         // each name by itself
  /// The values of a choice of words, with spaces between; empty for others.
  std::string choices() const {
    const size_t begin = value.find('{'), end = value.find('}');
    if (begin == value.npos || end == value.npos) return "";
    std::string list = value.substr(begin + 1, end - begin - 1);
    std::ranges::replace(list, ',', ' ');
    return list;
  }
};
struct Page {
  std::string name, summary, description, example;
  std::vector<Flag> positionals, flags;
};

Page pageOf(const Verb& verb) {
  Page page{.name = verb.name, .summary = verb.summary};
  describeOnly([&](const CLI::App& parser) {
    page.description = parser.get_description();
    page.example = parser.get_footer();
    for (const CLI::Option* option : parser.get_options()) {
      Flag flag{.names = option->get_name(/*positional=*/false, /*all_options=*/true),
                .description = option->get_description()};
      if (option->get_items_expected_max() > 0 && option->get_type_size() > 0)
        flag.value = option->get_type_name().empty() ? "VALUE" : option->get_type_name();
      if (flag.value.starts_with(':')) flag.value.erase(0, 1);  // a choice of words
      for (const std::string& name : option->get_snames()) flag.words.push_back("-" + name);
      for (const std::string& name : option->get_lnames()) flag.words.push_back("--" + name);
      if (option->get_positional()) flag.names = option->get_name(/*positional=*/true);
      (option->get_positional() ? page.positionals : page.flags).push_back(std::move(flag));
    }
  });
  try {
    verb.run({});
  } catch (const DescribedOnly&) {
  }
  describeOnly(nullptr);
  return page;
}

// Text of a page for troff: a line must not begin with a request, and hyphens are minus signs.
std::string troff(const std::string& text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if ((i == 0 || text[i - 1] == '\n') && (text[i] == '.' || text[i] == '\'')) result += "\\&";
    if (text[i] == '\\')
      result += "\\e";
    else if (text[i] == '-')
      result += "\\-";
    else
      result += text[i];
  }
  return result;
}

void printMan(const std::vector<Page>& pages) {
  fmt::print(
      ".TH LATHE 1 \"\" \"lathe {}\" \"User Commands\"\n.SH NAME\n"
      "lathe \\- compiles transformers and runs them\n.SH SYNOPSIS\n"
      ".B lathe\n.I VERB\n[\\fIARGUMENTS\\fR]\n.SH DESCRIPTION\n"
      "MODEL is a Hugging Face folder, a .gguf, .onnx or .mlir file or a .lathe program. Data "
      "goes\n"
      "to standard output, all else to standard error. With \\fB\\-\\-json\\fR there is one JSON "
      "document on\n"
      "standard output, errors included.\n",
      LATHE_VERSION);
  for (const Page& page : pages) {
    std::string usage = "lathe " + page.name;
    for (const Flag& flag : page.positionals) usage += " " + flag.names;
    fmt::print(".SH {}\n.B {} [FLAGS]\n.PP\n{}\n", troff("lathe " + page.name), troff(usage),
               troff(page.description));
    for (const Flag& flag : page.flags)
      fmt::print(".TP\n\\fB{}\\fR{}\n{}\n", troff(flag.names),
                 flag.value.empty() ? "" : " \\fI" + troff(flag.value) + "\\fR",
                 troff(flag.description));
    fmt::print(".PP\n.nf\n{}\n.fi\n", troff(page.example));
  }
  fmt::print(
      ".SH EXIT STATUS\n0 done, 1 failed, 2 usage, 3 bad input file, 4 unsupported, 5 numeric\n"
      "mismatch, 6 out of memory, 70 internal error.\n");
}

void printBash(const std::vector<Page>& pages) {
  std::string verbs, cases, values;
  for (const Page& page : pages) {
    verbs += (verbs.empty() ? "" : " ") + page.name;
    std::string words;
    for (const Flag& flag : page.flags)
      for (const std::string& word : flag.words)
        if (word.starts_with("--")) words += (words.empty() ? "" : " ") + word;
    cases += fmt::format("    {}) flags='{}' ;;\n", page.name, words);
    for (const Flag& flag : page.flags) {
      if (flag.choices().empty()) continue;
      std::string pattern;
      for (const std::string& word : flag.words)
        pattern += fmt::format("{}'{} {}'", pattern.empty() ? "" : "|", page.name, word);
      values += fmt::format("    {}) values='{}' ;;\n", pattern, flag.choices());
    }
  }
  fmt::print(R"(# Completion of `lathe` for bash, printed by `lathe describe bash`.
_lathe() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} verb='' flags='' values='' i
  for ((i = 1; i < COMP_CWORD; ++i)); do
    [[ ${{COMP_WORDS[i]}} == -* ]] || {{ verb=${{COMP_WORDS[i]}}; break; }}
  done
  case $verb in
    '') mapfile -t COMPREPLY < <(compgen -W 'help {verbs} --help --version' -- "$word"); return ;;
    help) mapfile -t COMPREPLY < <(compgen -W '{verbs}' -- "$word"); return ;;
{cases}  esac
  case "$verb ${{COMP_WORDS[COMP_CWORD - 1]}}" in
{values}  esac
  if [[ -n $values ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$values" -- "$word")
  elif [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$flags" -- "$word")
  else
    compopt -o filenames
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
  fi
}}
complete -F _lathe lathe
)",
             fmt::arg("verbs", verbs), fmt::arg("cases", cases), fmt::arg("values", values));
}

}  // namespace

int describeCommand(const std::vector<Verb>& verbs, const ArgumentList& arguments, size_t at) {
  const std::string kind = at < arguments.size() ? arguments[at] : "";
  if (kind != "man" && kind != "bash")
    throw Error(ErrorCode::InvalidArgument,
                "expected `lathe describe man` or `lathe describe bash`");
  std::vector<Page> pages;
  for (const Verb& verb : verbs) pages.push_back(pageOf(verb));
  if (kind == "man")
    printMan(pages);
  else
    printBash(pages);
  return kOk;
}

}  // namespace lathe::cli
