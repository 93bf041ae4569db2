// SPDX-License-Identifier: Apache-2.0
#include "inspect/report/page.h"

#include <string_view>

namespace lathe {
namespace {

// Made by cmake/EmbedText.cmake from the files in page/.
constexpr std::string_view kStyle =
#include "inspect/report/page.css.inc"
    ;
constexpr std::string_view kScript =
#include "inspect/report/page.js.inc"
    ;

std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace

std::string reportPage(const std::string& title, const std::string& json) {
  std::string page;
  page.reserve(json.size() + kStyle.size() + kScript.size() + 1024);
  page += "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  page += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  // The page may load nothing at all; what is inline is all there is.
  page +=
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n";
  page += "<link rel=\"icon\" href=\"data:,\">\n";
  page += "<title>" + escaped(title) + " - Lathe report</title>\n<style>\n";
  page += kStyle;
  page += "</style>\n</head>\n<body>\n<noscript>This page needs JavaScript.</noscript>\n";
  page += "<script type=\"application/json\" id=\"data\">";
  // `<` occurs within JSON strings only, so that the escape is always valid.
  for (char c : json) {
    if (c == '<')
      page += "\\u003c";
    else
      page += c;
  }
  page += "</script>\n<script>\n";
  page += kScript;
  page += "</script>\n</body>\n</html>\n";
  return page;
}

}  // namespace lathe
