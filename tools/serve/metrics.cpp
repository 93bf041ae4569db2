// SPDX-License-Identifier: Apache-2.0
#include "tools/serve/metrics.h"

#include <fmt/format.h>

namespace lathe::serve {

std::string metricsText(const HttpCounts& http, const std::optional<BatchEngineCounts>& engine) {
  std::string out;
  auto family = [&](const char* name, const char* type, const char* help) {
    out += fmt::format("# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, help);
  };
  auto one = [&](const char* name, const char* type, const char* help, int64_t value) {
    family(name, type, help);
    out += fmt::format("{} {}\n", name, value);
  };
  family("lathe_http_responses_total", "counter", "Answers by the first digit of their status.");
  for (size_t digit = 2; digit < http.answered.size(); ++digit)
    out += fmt::format("lathe_http_responses_total{{status=\"{}xx\"}} {}\n", digit,
                       http.answered[digit]);
  one("lathe_http_connections", "gauge", "Connections that are open.", http.connections);
  one("lathe_http_connections_refused_total", "counter", "Connections beyond the limit.",
      http.turnedAway);
  one("lathe_http_clients_gone_total", "counter", "Clients that left before their answer.",
      http.gone);
  if (!engine) return out;
  one("lathe_texts_taken_total", "counter", "Texts that were queued.", engine->taken);
  one("lathe_texts_refused_total", "counter", "Texts that the full queue refused.",
      engine->refused);
  family("lathe_texts_ended_total", "counter", "Texts by how they ended.");
  for (auto [how, count] : {std::pair("finished", engine->finished),
                            {"cancelled", engine->cancelled},
                            {"failed", engine->failed}})
    out += fmt::format("lathe_texts_ended_total{{how=\"{}\"}} {}\n", how, count);
  one("lathe_texts_waiting", "gauge", "Texts that wait for a slot.", engine->waiting);
  one("lathe_texts_running", "gauge", "Texts that have a slot.", engine->running);
  one("lathe_slots", "gauge", "Texts that may run at once.", engine->slots);
  if (engine->blocks.all > 0) {
    one("lathe_cache_blocks", "gauge", "Blocks of the cache.", engine->blocks.all);
    one("lathe_cache_blocks_used", "gauge", "Blocks that hold tokens, which texts may share.",
        engine->blocks.used);
    one("lathe_cache_blocks_reserved", "gauge", "Blocks set aside for running texts.",
        engine->blocks.set);
  }
  one("lathe_prompt_tokens_total", "counter", "Tokens of prompts.", engine->promptTokens);
  one("lathe_prompt_tokens_reused_total", "counter", "Tokens of prompts that a cache held.",
      engine->reusedTokens);
  one("lathe_generated_tokens_total", "counter", "Tokens of texts that have ended.",
      engine->generatedTokens);
  one("lathe_decode_steps_total", "counter", "Steps of the batch.", engine->steps);
  one("lathe_decode_step_texts_total", "counter", "Texts that these advanced.", engine->stepTexts);
  return out;
}

}  // namespace lathe::serve
