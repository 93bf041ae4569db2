// SPDX-License-Identifier: Apache-2.0
#pragma once
// A client's connection under limits: what httplib reads from and writes to.
#include <chrono>
#include <string>

#include <httplib.h>

#include "tools/serve/serve_api.h"

namespace lathe::serve {

/// One thread serves a connection from its beginning to its end.
class Connection final : public httplib::Stream {
 public:
  using Clock = std::chrono::steady_clock;
  Connection(int socket, const Limits& limits);
  ~Connection() override;

  /// That of the calling thread.
  static Connection& current();

  /// Waits for a request's first byte; false where none comes in time, or `stopping` becomes true.
  bool awaitRequest(const std::atomic<bool>& stopping);
  /// The headers are there: from now on the limits of the request as a whole hold.
  void headersRead();
  /// Whether the client has gone. Waits no longer than it takes to ask.
  bool isGone() const;
  /// When the answer must have been given.
  Clock::time_point deadline() const { return deadline_; }
  /// No further request: what is left of this one was not read.
  void closeAfterAnswer() { closes_ = true; }
  bool closes() const { return closes_; }

  bool is_readable() const override;
  bool is_writable() const override;
  ssize_t read(char* to, size_t size) override;
  ssize_t write(const char* from, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  socket_t socket() const override { return socket_; }

 private:
  bool wait(short events, Clock::time_point until) const;

  int socket_;
  const Limits& limits_;
  std::string buffer_;
  size_t at_ = 0;            // in the buffer
  int64_t headerBytes_ = 0;  // of this request so far
  bool inHeaders_ = true, closes_ = false;
  Clock::time_point deadline_;
};

}  // namespace lathe::serve
