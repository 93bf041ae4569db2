// SPDX-License-Identifier: Apache-2.0
#include "tools/serve/connection.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace lathe::serve {
namespace {

thread_local Connection* currentConnection = nullptr;

Connection::Clock::duration seconds(double count) {
  return std::chrono::duration_cast<Connection::Clock::duration>(
      std::chrono::duration<double>(count));
}

void describe(const sockaddr_storage& address, std::string& ip, int& port) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) {
    auto& four = reinterpret_cast<const sockaddr_in&>(address);
    ::inet_ntop(AF_INET, &four.sin_addr, text, sizeof text);
    port = ntohs(four.sin_port);
  } else if (address.ss_family == AF_INET6) {
    auto& six = reinterpret_cast<const sockaddr_in6&>(address);
    ::inet_ntop(AF_INET6, &six.sin6_addr, text, sizeof text);
    port = ntohs(six.sin6_port);
  }
  ip = text;
}

}  // namespace

Connection::Connection(int socket, const Limits& limits) : socket_(socket), limits_(limits) {
  const int on = 1;
  ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  currentConnection = this;
}

Connection::~Connection() {
  currentConnection = nullptr;
  // What the client still sends is read for a moment: a close with bytes unread becomes a reset,
  // which may overtake the answer.
  ::shutdown(socket_, SHUT_WR);
  const auto until = Clock::now() + seconds(0.2);
  char dropped[4096];
  while (closes_ && wait(POLLIN, until) &&
         ::recv(socket_, dropped, sizeof dropped, MSG_DONTWAIT) > 0) {
  }
  ::close(socket_);
}

Connection& Connection::current() { return *currentConnection; }

bool Connection::wait(short events, Clock::time_point until) const {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0) return false;
    pollfd poll{socket_, events, 0};
    const int ready = ::poll(&poll, 1, int(std::min<int64_t>(left, 1000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

bool Connection::awaitRequest(const std::atomic<bool>& stopping) {
  const auto until = Clock::now() + seconds(limits_.idleSeconds);
  while (at_ == buffer_.size()) {
    if (stopping || Clock::now() >= until) return false;
    if (!wait(POLLIN, std::min(until, Clock::now() + seconds(0.1)))) continue;
    char byte;
    if (::recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0) break;
    return false;
  }
  inHeaders_ = true;
  headerBytes_ = 0;
  deadline_ = Clock::now() + seconds(limits_.headerSeconds);
  return true;
}

void Connection::headersRead() {
  inHeaders_ = false;
  deadline_ = Clock::now() + seconds(limits_.requestSeconds);
}

bool Connection::isGone() const {
  char byte;
  const ssize_t got = ::recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

bool Connection::is_readable() const { return at_ < buffer_.size() || wait(POLLIN, deadline_); }
bool Connection::is_writable() const {
  return wait(POLLOUT, Clock::now() + seconds(limits_.writeSeconds));
}

ssize_t Connection::read(char* to, size_t size) {
  if (inHeaders_ && headerBytes_ >= limits_.headerBytes) return -1;
  if (at_ == buffer_.size()) {
    if (!wait(POLLIN, deadline_)) return -1;
    buffer_.resize(16 << 10);
    at_ = 0;
    const ssize_t got = ::recv(socket_, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
    buffer_.resize(size_t(std::max<ssize_t>(got, 0)));
    if (got <= 0) return got;
  }
  size = std::min(size, buffer_.size() - at_);
  std::memcpy(to, buffer_.data() + at_, size);
  at_ += size;
  if (inHeaders_) headerBytes_ += int64_t(size);
  return ssize_t(size);
}

ssize_t Connection::write(const char* from, size_t size) {
  if (!is_writable()) return -1;
  return ::send(socket_, from, size, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void Connection::get_remote_ip_and_port(std::string& ip, int& port) const {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getpeername(socket_, reinterpret_cast<sockaddr*>(&address), &length) == 0)
    describe(address, ip, port);
}
void Connection::get_local_ip_and_port(std::string& ip, int& port) const {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &length) == 0)
    describe(address, ip, port);
}

}  // namespace lathe::serve
