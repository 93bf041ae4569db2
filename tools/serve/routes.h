// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the server answers.
#include <atomic>
#include <mutex>

#include "tools/serve/http_server.h"

namespace lathe::serve {

class Routes {
 public:
  Routes(HttpServer& server, Model& model, const Options& options);

 private:
  using Request = httplib::Request;
  using Response = httplib::Response;

  /// Refuses before a body is read; true: the request is answered.
  bool refuses(const Request& request, Response& response);
  void complete(const std::string& body, const Request& request, Response& response, bool isChat);
  void embed(const std::string& body, Response& response);
  void models(Response& response) const;
  void health(Response& response) const;
  void metrics(Response& response) const;

  HttpServer& server_;
  Model& model_;
  const Options& options_;
  std::mutex embedding_;
  const int64_t started_;
  std::atomic<int64_t> answered_[6] = {};  // by the status's first digit
  std::atomic<int64_t> gone_{0};           // clients that left before their answer
};

/// Whether two texts are the same, in a time that tells nothing about where they differ.
bool equalInConstantTime(const std::string& a, const std::string& b);

}  // namespace lathe::serve
