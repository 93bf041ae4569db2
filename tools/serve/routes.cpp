// SPDX-License-Identifier: Apache-2.0
#include "tools/serve/routes.h"

#include <arpa/inet.h>

#include <ctime>
#include <optional>

#include <fmt/format.h>

#include "runtime/base64.h"
#include "tools/serve/answer.h"
#include "tools/serve/api_error.h"
#include "tools/serve/chat_page.h"
#include "tools/serve/completion_format.h"
#include "tools/serve/completion_request.h"
#include "tools/serve/metrics.h"

namespace lathe::serve {
namespace {

using Clock = Connection::Clock;
// How often a thread that waits for the engine looks whether its client is still there.
constexpr double kLookEvery = 0.1;

// A name such as 127.example may be anybody's.
bool isLoopback(const std::string& host) {
  in_addr four;
  const bool isFour = ::inet_pton(AF_INET, host.c_str(), &four) == 1;
  return host == "localhost" || host == "::1" || (isFour && ntohl(four.s_addr) >> 24 == 127);
}

// "[::1]:8080" and "localhost:8080" without the port, in small letters.
std::string hostOf(std::string header) {
  for (char& c : header)
    if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
  if (!header.starts_with('[')) return header.substr(0, header.find(':'));
  const size_t end = header.find(']');
  const bool isWhole = end + 1 == header.size() || (end != header.npos && header[end + 1] == ':');
  return isWhole ? header.substr(1, end - 1) : header;
}

// What became of a text that has no text to show for it.
std::optional<ApiError> failureOf(const TextEnd& end, bool timedOut) {
  if (end.error) return asApiError(std::make_exception_ptr(*end.error));
  if (end.text.stopped != StopReason::Cancelled) return std::nullopt;
  if (timedOut)
    return ApiError(504, "the request took longer than the server allows", "", "timeout");
  return ApiError(503, "the server is stopping", "", "stopping");
}

// A request's texts on their way out.
struct Completion {
  Completion(CompletionRequest made, const Model& model)
      : request(std::move(made)), format(request, model) {}
  size_t choices() const { return request.prompts.size() * size_t(request.choices); }

  CompletionRequest request;
  CompletionFormat format;
  std::shared_ptr<Answer> answer;
  std::vector<TextEnd> ends;
  size_t ended = 0;
  bool timedOut = false;

  void noteEnd(Piece& piece) {
    ++ended;
    ends[piece.choice] = std::move(*piece.end);
  }
  // Cancels what takes too long and what nobody waits for. False: the client has gone.
  bool goesOn(const Connection& connection) {
    if (Clock::now() >= connection.deadline() && !timedOut) {
      timedOut = true;
      answer->cancel();
    }
    if (!connection.isGone()) return true;
    answer->cancel();
    return false;
  }
};

ApiError refusalOf(Refusal why, const std::string& address) {
  const char* most = "as many texts waiting as the queue has free places; ask again";
  switch (why) {
    case Refusal::Stopping:
      return ApiError(503, "the server is stopping", "", "stopping");
    case Refusal::QueueFull:
      return ApiError(429, "too many texts wait; ask again", "", "queue_full");
    case Refusal::ClientFull:
      return ApiError(429, fmt::format("{} has {}", address, most), "", "client_queue_full");
    case Refusal::UserFull:
      return ApiError(429, fmt::format("the user has {}", most), "", "user_queue_full");
  }
  return ApiError(500, "a refusal of no known kind");
}

ApiError bodyTooLong(int64_t most) {
  return ApiError(413, fmt::format("expected a body of at most {} bytes", most));
}

// How long a body is must be beyond doubt: what stands in front of this server may have taken
// another of several lengths (RFC 9112, 6.3).
std::optional<ApiError> lengthError(const httplib::Request& request, int64_t most) {
  const size_t lengths = request.get_header_value_count("Content-Length");
  if (lengths == 0) return std::nullopt;
  if (lengths > 1)
    return ApiError(400, fmt::format("expected one Content-Length, got {}", lengths));
  if (request.has_header("Transfer-Encoding"))
    return ApiError(400, "expected Content-Length or Transfer-Encoding, got both");
  const std::string text = request.get_header_value("Content-Length");
  if (text.empty() || text.find_first_not_of("0123456789") != std::string::npos)
    return ApiError(400, "expected Content-Length to be a number of bytes, got '" + text + "'");
  if (text.size() > 18) return bodyTooLong(most);
  return std::nullopt;
}

// One Host, else what stands in front of this server may have read another (RFC 9112, 3.2).
std::optional<ApiError> hostError(const httplib::Request& request) {
  const size_t hosts = request.get_header_value_count("Host");
  if (hosts == 1 || (hosts == 0 && request.version == "HTTP/1.0")) return std::nullopt;
  return ApiError(400, fmt::format("expected one Host, got {}", hosts));
}

}  // namespace

bool equalInConstantTime(const std::string& a, const std::string& b) {
  unsigned differs = unsigned(a.size() ^ b.size());
  for (size_t i = 0; i < b.size(); ++i)
    differs |= unsigned(uint8_t(b[i]) ^ uint8_t(a.empty() ? 0 : a[i % a.size()]));
  return differs == 0;
}

bool Routes::refuses(const Request& request, Response& response) {
  Connection& connection = Connection::current();
  connection.headersRead();
  auto refuse = [&](const ApiError& error) {
    connection.closeAfterAnswer();  // its body stays unread
    response.set_header("Connection", "close");
    answerError(response, error);
    return true;
  };
  if (auto error = hostError(request)) return refuse(*error);
  // A page of another site that a browser shows must not reach a server on this machine, under
  // whatever name. Every browser sends one; a client that sends none, as HTTP/1.0 allows, is none.
  if (isLoopback(options_.host) && request.has_header("Host") &&
      !isLoopback(hostOf(request.get_header_value("Host"))))
    return refuse(ApiError(
        403, "this server is reached as localhost, not as " + request.get_header_value("Host")));
  if (const std::string origin = request.get_header_value("Origin");
      !origin.empty() && origin != "http://" + request.get_header_value("Host"))
    return refuse(ApiError(403, "pages of " + origin + " may not ask this server"));
  const bool open = request.path == "/" || request.path == "/health";
  if (!options_.apiKey.empty() && !open &&
      !equalInConstantTime(request.get_header_value("Authorization"), "Bearer " + options_.apiKey))
    return refuse(ApiError(401, "expected the server's key: Authorization: Bearer KEY", "",
                           "invalid_api_key"));
  if (auto error = lengthError(request, options_.limits.bodyBytes)) return refuse(*error);
  if (request.method != "POST") {
    if (request.has_header("Content-Length") && request.get_header_value("Content-Length") != "0")
      return refuse(ApiError(400, request.method + " takes no body"));
    return false;
  }
  if (!request.get_header_value("Content-Type").starts_with("application/json"))
    return refuse(ApiError(415, "expected Content-Type: application/json, got '" +
                                    request.get_header_value("Content-Type") + "'"));
  if (request.has_header("Content-Encoding"))
    return refuse(ApiError(415, "bodies are not compressed; leave out Content-Encoding"));
  return false;
}

Routes::Routes(HttpServer& server, Model& model, const Options& options)
    : server_(server), model_(model), options_(options), started_(std::time(nullptr)) {
  server.set_payload_max_length(size_t(options.limits.bodyBytes));
  server.set_pre_routing_handler([this](const Request& request, Response& response) {
    return refuses(request, response) ? httplib::Server::HandlerResponse::Handled
                                      : httplib::Server::HandlerResponse::Unhandled;
  });
  server.set_exception_handler([](const Request&, Response& response, std::exception_ptr error) {
    answerError(response, asApiError(error));
  });
  const httplib::Server::HandlerWithResponse onError = [this](const Request& request,
                                                              Response& response) {
    if (!response.body.empty()) return httplib::Server::HandlerResponse::Unhandled;
    const int status = response.status;
    if (status == 413) {
      Connection::current().closeAfterAnswer();
      response.set_header("Connection", "close");
      answerError(response, bodyTooLong(options_.limits.bodyBytes));
    } else {
      answerError(response, ApiError(status, status == 404 ? "there is no " + request.method + " " +
                                                                 request.path
                                                           : "the request could not be read"));
    }
    return httplib::Server::HandlerResponse::Handled;
  };
  server.set_error_handler(onError);
  server.set_logger([this](const Request&, const Response& response) {
    if (response.status >= 100 && response.status < 600) ++answered_[response.status / 100];
  });

  server.Get("/", [](const Request&, Response& response) {
    response.set_header("Content-Security-Policy", kChatPagePolicy);
    response.set_content(kChatPage, "text/html; charset=utf-8");
  });
  server.Get("/health", [this](const Request&, Response& response) { health(response); });
  server.Get("/metrics", [this](const Request&, Response& response) { metrics(response); });
  server.Get("/v1/models", [this](const Request&, Response& response) { models(response); });
  // A body is a text of so many bytes, never a form.
  auto post = [&](const char* path, auto answer) {
    server.Post(path, [this, answer](const Request& request, Response& response,
                                     const httplib::ContentReader& read) {
      std::string body;
      bool fits = true;
      const bool whole = read([&](const char* data, size_t size) {
        fits = body.size() + size <= size_t(options_.limits.bodyBytes);
        if (fits) body.append(data, size);
        return fits;
      });
      if (!whole) {
        Connection::current().closeAfterAnswer();
        if (!fits) response.status = 413;  // of a body in chunks, which told no length
        if (response.status < 400) response.status = 400;
        return;
      }
      answer(body, request, response);
    });
  };
  post("/v1/completions", [this](const std::string& body, const Request& request,
                                 Response& response) { complete(body, request, response, false); });
  post("/v1/chat/completions",
       [this](const std::string& body, const Request& request, Response& response) {
         complete(body, request, response, true);
       });
  post("/v1/embeddings", [this](const std::string& body, const Request&, Response& response) {
    embed(body, response);
  });
}

void Routes::complete(const std::string& body, const Request& request, Response& response,
                      bool isChat) {
  if (!model_.engine) throw ApiError(400, "the model continues no text; it has /v1/embeddings");
  auto completion = std::make_shared<Completion>(
      readCompletionRequest(parseBody(body), isChat, model_, options_.limits), model_);
  Completion& c = *completion;
  std::vector<TextRequest> texts;
  for (const std::vector<int>& prompt : c.request.prompts)
    for (int64_t n = 0; n < c.request.choices; ++n) {
      TextRequest text{.prompt = prompt, .options = c.request.options};
      text.options.sampling.seed += uint64_t(n);
      text.client = request.remote_addr;
      text.user = c.request.user;
      texts.push_back(std::move(text));
    }
  c.ends.resize(texts.size());
  Refusal why{};
  c.answer = Answer::ask(*model_.engine, std::move(texts), why);
  if (!c.answer) throw refusalOf(why, request.remote_addr);

  Connection& connection = Connection::current();
  if (!c.request.streams) {
    while (c.ended < c.choices()) {
      for (Piece& piece : c.answer->take(kLookEvery))
        if (piece.end) c.noteEnd(piece);
      if (!c.goesOn(connection)) {
        ++gone_;
        connection.closeAfterAnswer();
        // Who closed its own direction alone still reads: no text is no success.
        throw ApiError(400, "the client closed the connection before its text was ready");
      }
    }
    for (const TextEnd& end : c.ends)
      if (const auto failure = failureOf(end, c.timedOut)) throw *failure;
    return response.set_content(dump(c.format.whole(c.ends)), "application/json");
  }

  response.set_header("Cache-Control", "no-cache");
  // The whole stream is written by one call: httplib makes no second one once the server stops.
  auto write = [this, completion, &connection](size_t, httplib::DataSink& sink) {
    Completion& c = *completion;
    auto send = [&](const std::string& data) {
      const std::string event = "data: " + data + "\n\n";
      return sink.write(event.data(), event.size());
    };
    bool sent = true;
    for (size_t i = 0; c.request.isChat && sent && i < c.choices(); ++i)
      sent = send(dump(c.format.begin(i)));
    while (sent && c.ended < c.choices()) {
      for (Piece& piece : c.answer->take(kLookEvery)) {
        const auto failure = piece.end ? failureOf(*piece.end, c.timedOut) : std::nullopt;
        if (failure)
          sent = sent && send(dump(errorJson(*failure)));
        else if (piece.end || !piece.text.empty() ||
                 (piece.token && c.request.options.logProbabilities))
          sent = sent && send(dump(c.format.chunk(piece)));
        if (piece.end) c.noteEnd(piece);
      }
      sent = sent && c.goesOn(connection);
    }
    if (sent && c.request.includesUsage) sent = send(dump(c.format.usage(c.ends)));
    if (sent && send("[DONE]")) {
      sink.done();
      return true;
    }
    c.answer->cancel();
    ++gone_;
    return false;
  };
  response.set_chunked_content_provider("text/event-stream", write);
}

void Routes::embed(const std::string& text, Response& response) {
  if (!model_.embedder)
    throw ApiError(400, "the model gives no embeddings; it has /v1/completions");
  const JsonValue body = parseBody(text);
  checkModel(body, model_);
  bool asBase64 = false;
  for (size_t i = 0; i < body.size(); ++i) {
    const auto [key, value] = body.member(i);
    if (key == "encoding_format") {
      if (value.asString() != "float" && value.asString() != "base64")
        throw ApiError(400, "encoding_format: expected float or base64, got " + value.show(), key);
      asBase64 = value.asString() == "base64";
    } else if (key == "dimensions") {
      if (value.asInt() != model_.embedder->hidden())
        throw ApiError(400,
                       fmt::format("dimensions: the model has {}, got {}",
                                   model_.embedder->hidden(), value.show()),
                       key);
    } else if (key != "model" && key != "input" && key != "user") {
      throw ApiError(400, "the field '" + key + "' is not supported", key, "unsupported_parameter");
    }
  }
  std::vector<std::vector<int>> inputs;
  const JsonValue input = body.at("input");
  if (input.isString()) {
    inputs.push_back(model_.embedder->encode(input.asString()));
  } else {
    if (!input.isArray() || input.size() == 0 ||
        int64_t(input.size()) > 16 * options_.limits.choices)
      throw ApiError(
          400,
          fmt::format("input: expected a text or from 1 to {} texts", 16 * options_.limits.choices),
          "input");
    for (size_t i = 0; i < input.size(); ++i)
      inputs.push_back(model_.embedder->encode(input.at(i).asString()));
  }
  Array vectors;
  {
    std::lock_guard lock(embedding_);
    vectors = model_.embedder->embed(inputs);
  }
  Json data = Json::array();
  int64_t tokens = 0;
  const size_t hidden = size_t(model_.embedder->hidden());
  for (size_t i = 0; i < inputs.size(); ++i) {
    tokens += int64_t(inputs[i].size());
    const std::span<const float> vector = vectors.as<float>().subspan(i * hidden, hidden);
    Json embedding;
    if (asBase64)
      embedding = encodeBase64(std::as_bytes(vector));
    else
      embedding = std::vector<float>(vector.begin(), vector.end());
    data.push_back({{"object", "embedding"}, {"index", i}, {"embedding", embedding}});
  }
  const Json out = {{"object", "list"},
                    {"data", data},
                    {"model", model_.name},
                    {"usage", {{"prompt_tokens", tokens}, {"total_tokens", tokens}}}};
  response.set_content(dump(out), "application/json");
}

void Routes::models(Response& response) const {
  const Json model = {
      {"id", model_.name}, {"object", "model"}, {"created", started_}, {"owned_by", "lathe"}};
  response.set_content(dump(Json{{"object", "list"}, {"data", Json::array({model})}}),
                       "application/json");
}

void Routes::health(Response& response) const {
  const bool stopping = server_.isStopping();
  if (stopping) response.status = 503;
  response.set_content(dump(Json{{"status", stopping ? "stopping" : "ok"}}), "application/json");
}

void Routes::metrics(Response& response) const {
  HttpCounts http{
      .connections = server_.connections(), .turnedAway = server_.turnedAway(), .gone = gone_};
  for (size_t i = 0; i < 6; ++i) http.answered[i] = answered_[i];
  response.set_content(
      metricsText(http, model_.engine ? std::optional(model_.engine->counts()) : std::nullopt),
      "text/plain; version=0.0.4; charset=utf-8");
}

}  // namespace lathe::serve
