// SPDX-License-Identifier: Apache-2.0
#pragma once
// httplib's server with a thread for each connection, as many as may be, and our limits.
#include <atomic>

#include "tools/serve/connection.h"

namespace lathe::serve {

class HttpServer final : public httplib::Server {
 public:
  explicit HttpServer(const Limits& limits);

  /// Once bound: as many clients as the system lets may wait to be accepted, where httplib has 5
  /// and the others' connections are reset.
  void deepenBacklog() { ::listen(svr_sock_, SOMAXCONN); }
  /// From now on a connection ends with its next answer. Others are still accepted, to be told.
  void beginStopping() { stopping_ = true; }
  /// Accepts nobody from now on; connections end with the answer that they wait for.
  void stopAccepting();
  bool isStopping() const { return stopping_; }
  int64_t connections() const { return connections_; }
  int64_t turnedAway() const { return turnedAway_; }

 private:
  class Threads;
  bool process_and_close_socket(socket_t socket) override;
  static void turnAway(int socket);

  const Limits& limits_;
  std::atomic<bool> stopping_{false}, closed_{false};
  std::atomic<int64_t> connections_{0}, turnedAway_{0};
};

}  // namespace lathe::serve
