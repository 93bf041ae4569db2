// SPDX-License-Identifier: Apache-2.0
// From a model to a server that stops when it is asked to.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <exception>
#include <thread>

#include "lathe/runtime/error.h"
#include "tools/serve/routes.h"

namespace lathe::serve {
namespace {

int signalPipe[2] = {-1, -1};

extern "C" void noteSignal(int) {
  const char byte = 0;
  [[maybe_unused]] const ssize_t written = ::write(signalPipe[1], &byte, 1);
}

// SIGINT and SIGTERM as bytes in a pipe, from its beginning to its end.
class Signals {
 public:
  Signals() {
    if (::pipe2(signalPipe, O_CLOEXEC | O_NONBLOCK) != 0)
      throw Error(ErrorCode::Io, "cannot make a pipe for signals");
    struct sigaction action{};
    action.sa_handler = noteSignal;
    action.sa_flags = SA_RESTART;
    for (size_t i = 0; i < 2; ++i) ::sigaction(kSignals[i], &action, &before_[i]);
  }
  ~Signals() {
    for (size_t i = 0; i < 2; ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
    for (int end : signalPipe) ::close(end);
  }
  /// True: one came.
  static bool wait(int milliseconds) {
    pollfd poll{signalPipe[0], POLLIN, 0};
    char byte;
    return ::poll(&poll, 1, milliseconds) > 0 && ::read(signalPipe[0], &byte, 1) == 1;
  }

 private:
  static constexpr int kSignals[2] = {SIGINT, SIGTERM};
  struct sigaction before_[2];
};

}  // namespace

extern "C" void lathe_serve_v1(Model& model, const Options& options) {
  HttpServer server(options.limits);
  Routes routes(server, model, options);
  int port = options.port;
  if (port == 0)
    port = server.bind_to_any_port(options.host);
  else if (!server.bind_to_port(options.host, port))
    port = -1;
  if (port < 0)
    throw Error(ErrorCode::Io, "cannot listen on " + options.host + ":" +
                                   std::to_string(options.port) +
                                   "; another program may have the port, see --port");
  server.deepenBacklog();
  Signals signals;
  std::atomic<bool> ended{false};
  std::exception_ptr failure;  // after which no text can be run
  std::thread engine([&] {
    if (!model.engine) return;
    try {
      model.engine->run();
    } catch (...) {
      failure = std::current_exception();
      model.engine->stop(0);
      model.engine->run();  // those who wait are told
    }
    server.stopAccepting();  // no text runs any more
  });
  // The first signal lets running texts end, and who asks meanwhile is told that the server stops;
  // the second cuts them.
  std::thread watcher([&] {
    for (int count = 0; !ended;) {
      if (!Signals::wait(100)) continue;
      if (model.engine) model.engine->stop(count == 0 ? options.limits.stopSeconds : 0);
      if (count++ > 0) continue;
      model.engine ? server.beginStopping() : server.stopAccepting();
    }
  });
  if (options.onListening) options.onListening(port);
  server.listen_after_bind();
  if (model.engine) model.engine->stop(0);  // nobody waits any more
  engine.join();
  ended = true;
  watcher.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace lathe::serve
