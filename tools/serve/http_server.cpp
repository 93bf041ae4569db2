// SPDX-License-Identifier: Apache-2.0
#include "tools/serve/http_server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <string_view>
#include <thread>

namespace lathe::serve {

static thread_local bool isFull = false;

/// A thread for each connection; one too many is served by the thread that accepts, which turns it
/// away.
class HttpServer::Threads final : public httplib::TaskQueue {
 public:
  explicit Threads(HttpServer& server) : server_(server) {}

  void enqueue(std::function<void()> serve) override {
    {
      std::lock_guard lock(mutex_);
      isFull = running_ >= server_.limits_.connections;
      if (!isFull) ++running_;
    }
    if (isFull) return serve();
    std::thread([this, serve = std::move(serve)] {
      serve();
      std::lock_guard lock(mutex_);
      --running_;
      ended_.notify_all();
    }).detach();
  }

  void shutdown() override {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [&] { return running_ == 0; });
  }

 private:
  HttpServer& server_;
  std::mutex mutex_;
  std::condition_variable ended_;
  int64_t running_ = 0;
};

HttpServer::HttpServer(const Limits& limits) : limits_(limits) {
  new_task_queue = [this] { return new Threads(*this); };
}

void HttpServer::stopAccepting() {
  stopping_ = closed_ = true;
  // Where it does not listen yet stop() does nothing; accepting will fail on such a socket.
  if (const socket_t listening = svr_sock_; listening != INVALID_SOCKET)
    ::shutdown(listening, SHUT_RDWR);
  stop();
}

void HttpServer::turnAway(int socket) {
  static constexpr std::string_view answer =
      "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n"
      "Content-Type: application/json\r\nContent-Length: 99\r\n\r\n"
      R"({"error":{"message":"too many connections","type":"server_error","param":null,"code":"overloaded"}})";
  [[maybe_unused]] const ssize_t sent =
      ::send(socket, answer.data(), answer.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  ::shutdown(socket, SHUT_WR);
  ::close(socket);
}

bool HttpServer::process_and_close_socket(socket_t socket) {
  if (isFull) {
    ++turnedAway_;
    turnAway(socket);
    return false;
  }
  constexpr int kMostRequests = 10'000;
  ++connections_;
  Connection connection(socket, limits_);
  for (int left = kMostRequests; left > 0; --left) {
    // Who comes while the server stops is told so; who has had an answer is waited for no more.
    if (!connection.awaitRequest(left == kMostRequests ? closed_ : stopping_)) break;
    bool closed = false;
    // Nothing is compressed: pieces of a stream are short, and the client is near.
    auto setUp = [](httplib::Request& request) { request.headers.erase("Accept-Encoding"); };
    const bool last = left == 1 || stopping_;
    if (!process_request(connection, last, closed, setUp) || closed || last || connection.closes())
      break;
  }
  --connections_;
  return true;
}

}  // namespace lathe::serve
