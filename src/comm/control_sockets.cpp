#include "comm/control_sockets.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/error.h"

namespace crema {
namespace {

constexpr int kKind = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;

struct Resolved {
  addrinfo* all = nullptr;
  int error = 0;
  Resolved(const std::string& host, int port, int flags) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = flags | AI_NUMERICSERV;
    error = getaddrinfo(host.empty() ? nullptr : host.c_str(), std::to_string(port).c_str(), &hints,
                        &all);
  }
  ~Resolved() {
    if (all) freeaddrinfo(all);
  }
  Resolved(const Resolved&) = delete;
  Resolved& operator=(const Resolved&) = delete;
};

// Sends small frames immediately: a gather would otherwise wait for acknowledgements.
void set_no_delay(int socket) {
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

int port_of(const sockaddr_storage& address) {
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                   : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

// Nothing, and errno, when it cannot.
Socket listen_at(const sockaddr* address, socklen_t size) {
  Socket made(socket(address->sa_family, kKind, 0));
  if (!made) return {};
  // The port of a run that has just ended may be taken again, one that is in use may not.
  const int on = 1, off = 0;
  setsockopt(made.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address->sa_family == AF_INET6)
    setsockopt(made.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  if (bind(made.get(), address, size) != 0 || listen(made.get(), 4096) != 0) return {};
  return made;
}

// Linux connects a socket with itself if its own port is the one that it connects to.
bool is_own_end(int socket) {
  sockaddr_storage here{}, there{};
  socklen_t size = sizeof here, other = sizeof there;
  return getsockname(socket, reinterpret_cast<sockaddr*>(&here), &size) == 0 &&
         getpeername(socket, reinterpret_cast<sockaddr*>(&there), &other) == 0 && size == other &&
         std::memcmp(&here, &there, size) == 0;
}

// 0 once it is connected, else the reason why not.
int wait_for_connection(int socket, Moment until) {
  pollfd waiting{socket, POLLOUT, 0};
  int found = 0;
  while ((found = poll(&waiting, 1, milliseconds_until(until))) < 0 && errno == EINTR) {
  }
  if (found <= 0) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size);
  return error == 0 && is_own_end(socket) ? ECONNREFUSED : error;
}

}  // namespace

ControlClock::duration seconds(double count) {
  return std::chrono::duration_cast<ControlClock::duration>(std::chrono::duration<double>(count));
}

int milliseconds_until(Moment moment) {
  const auto rest = std::chrono::ceil<std::chrono::milliseconds>(moment - ControlClock::now());
  return static_cast<int>(std::clamp<int64_t>(rest.count(), 0, 3600000));
}

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

Socket::~Socket() {
  if (descriptor_ >= 0) close(descriptor_);
}

std::vector<HostPort> parse_addresses(const std::string& addresses) {
  std::vector<HostPort> all;
  for (const std::string& text : split(addresses, ',')) {
    const size_t colon = text.rfind(':');  // the hosts of IPv6 have more
    int port = 0;
    const char* const end = text.data() + text.size();
    const bool right = colon != std::string::npos && colon > 0 &&
                       std::from_chars(text.data() + colon + 1, end, port).ptr == end && port > 0 &&
                       port < 65536;
    if (!right)
      fail("the address of rank 0 is \"", text, "\"; expected a host and a port: node01:29500");
    std::string host = text.substr(0, colon);
    if (host.size() > 2 && host.front() == '[' && host.back() == ']')
      host = host.substr(1, host.size() - 2);
    all.push_back({host, port});
  }
  require(!all.empty(), "the address of rank 0 is empty; expected a host and a port: node01:29500");
  return all;
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || starts_with(host, "127.");
}

Listening listen_on(const std::string& host, int port) {
  Socket made;
  if (host.empty()) {
    sockaddr_in6 all{};  // takes IPv4 too
    all.sin6_family = AF_INET6;
    all.sin6_port = htons(static_cast<uint16_t>(port));
    made = listen_at(reinterpret_cast<const sockaddr*>(&all), sizeof all);
  }
  int problem = errno;
  if (!made) {
    const Resolved found(host, port, AI_PASSIVE);
    for (const addrinfo* at = found.all; at && !made; at = at->ai_next) {
      made = listen_at(at->ai_addr, at->ai_addrlen);
      problem = errno;
    }
    if (!found.all) fail("no address of \"", host, "\": ", gai_strerror(found.error));
  }
  if (!made)
    fail("rank 0 cannot listen on port ", port, " of this machine: ", std::strerror(problem),
         problem == EADDRINUSE ? "; does another training run here?" : "");
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  getsockname(made.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return {made.release(), port_of(address)};
}

Listening listen_anywhere() { return listen_on("", 0); }

Socket connect_to(const HostPort& address, Moment until, std::string* reason) {
  const Resolved found(address.host, address.port, 0);
  if (!found.all) *reason = gai_strerror(found.error);
  for (const addrinfo* at = found.all; at; at = at->ai_next) {
    Socket made(socket(at->ai_family, kKind, 0));
    int problem = made ? 0 : errno;
    if (made && connect(made.get(), at->ai_addr, at->ai_addrlen) != 0) problem = errno;
    // A machine that is off does not answer; another address may.
    const Moment last = std::min(until, ControlClock::now() + seconds(2));
    if (made && (problem == 0 || problem == EINPROGRESS))
      problem = wait_for_connection(made.get(), last);
    if (problem == 0) {
      set_no_delay(made.get());
      return made;
    }
    *reason = std::strerror(problem);
  }
  return {};
}

Socket accept_next(const Socket& listening) {
  Socket made(accept4(listening.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (made) set_no_delay(made.get());
  return made;
}

std::string other_end(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  char host[NI_MAXHOST] = "";
  if (getpeername(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      getnameinfo(reinterpret_cast<sockaddr*>(&address), size, host, sizeof host, nullptr, 0,
                  NI_NUMERICHOST) != 0)
    return "an unknown address";
  const std::string text = starts_with(host, "::ffff:") ? host + 7 : host;
  return cat(text, ":", port_of(address));
}

Connection::Connection(Socket socket, size_t max_payload)
    : socket_(std::move(socket)), reader_(max_payload) {}

short Connection::events() const {
  return static_cast<short>((ended_ ? 0 : POLLIN) | (queue_.empty() ? 0 : POLLOUT));
}

void Connection::send(const Bytes& frame) {
  if (!finishing_) queue_.push_back({frame, keys_.send.code_of(frame->digest)});
}

void Connection::flush() {
  while (!queue_.empty()) {
    const std::string &text = queue_.front().frame->text, &code = queue_.front().code;
    const size_t of_text = std::min(sent_, text.size()), of_code = sent_ - of_text;
    iovec parts[2] = {{const_cast<char*>(text.data() + of_text), text.size() - of_text},
                      {const_cast<char*>(code.data() + of_code), code.size() - of_code}};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    const ssize_t count = sendmsg(socket_.get(), &message, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (count < 0) {
      // The other side no longer reads. What it sent before gives the reason: receive() gets to the
      // end of it.
      queue_.clear();
      sent_ = 0;
      finishing_ = true;
      break;
    }
    sent_ += static_cast<size_t>(count);
    if (sent_ < text.size() + code.size()) continue;
    sent_ = 0;
    queue_.pop_front();
  }
  if (finishing_ && !finished_) {
    shutdown(socket_.get(), SHUT_WR);
    finished_ = true;
  }
}

void Connection::finish() {
  finishing_ = true;
  flush();
}

bool Connection::receive(const std::function<void(Frame&&)>& handle) {
  constexpr size_t kAtOnce = size_t{16} << 20;  // then the others have their turn
  size_t all = 0;
  while (!ended_ && all < kAtOnce) {
    size_t size = 0;
    char* const space = reader_.space(&size);
    const ssize_t count = recv(socket_.get(), space, size, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (count <= 0) {
      ended_ = true;
      break;
    }
    all += static_cast<size_t>(count);
    if (!reader_.added(static_cast<size_t>(count))) continue;
    Frame frame = reader_.take();
    keys_.receive.check(frame);
    handle(std::move(frame));
  }
  return all > 0;
}

}  // namespace crema
