#include "tools/pages/watch/connections.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <list>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "tools/pages/watch/loopback.h"

namespace crema {

namespace connections {

using Clock = std::chrono::steady_clock;

// How much is done for one client, or for new ones, before the others' turn.
constexpr int kTurns = 16;

class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  int number() const { return number_; }

 private:
  int number_;
};

struct Connection {
  // asks: its request is read; waits: it is computed; listens: the answer is sent; leaves: further
  // input is dropped, because closing immediately could destroy the answer on its way.
  enum class Phase { asks, waits, listens, leaves };
  Descriptor socket;
  Clock::time_point deadline;
  Phase phase = Phase::asks;
  std::string text{};  // the request, then the answer
  size_t whole = 0;    // bytes of the request; 0: not known yet
  size_t sent = 0;

  // Reads the next part of the request. True when it is complete.
  bool add(const char* part, size_t count);
};

// A body in chunks has no length that is known here: the request ends with its headers.
bool Connection::add(const char* part, size_t count) {
  const std::string ends = "\r\n\r\n";
  const size_t from = text.size() - std::min(text.size(), ends.size() - 1);
  text.append(part, count);
  if (const size_t end = text.find(ends, from); whole == 0 && end != std::string::npos) {
    const unsigned long long body =
        std::strtoull(header_in(text, "Content-Length").c_str(), nullptr, 10);
    whole = end + ends.size() + static_cast<size_t>(std::min(body, 1ULL << 40));
  }
  return whole > 0 && text.size() >= whole;
}

// What one thread passes to others and gets back, by the connection's address.
struct Job {
  const Connection* of;
  std::string text;
};

Descriptor listener(const std::string& host, int port) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  int code = 0;
  if (getaddrinfo(host.c_str(), cat(port).c_str(), &hints, &found) == 0) {
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
    for (const addrinfo* at = found; at; at = at->ai_next) {
      Descriptor socket(::socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
      const int yes = 1;
      setsockopt(socket.number(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
      if (bind(socket.number(), at->ai_addr, at->ai_addrlen) == 0 &&
          listen(socket.number(), SOMAXCONN) == 0)
        return socket;
      code = errno;
    }
  }
  const bool port_is_at_fault = code == EADDRINUSE || code == EACCES;
  fail("cannot serve pages at ", host, ", port ", port,
       code != 0 ? cat(": ", std::strerror(code)) : "",
       port_is_at_fault ? "; another port: -port N, or a free one: -port 0"
                        : "; -host is an address of this machine, such as 127.0.0.1, or 0.0.0.0 "
                          "for all of them");
}

sockaddr_storage address_of(const Descriptor& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  require(getsockname(socket.number(), reinterpret_cast<sockaddr*>(&address), &size) == 0,
          "cannot find the address of the server: ", std::strerror(errno));
  return address;
}

int port_of(const sockaddr_storage& address) {
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                   : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

}  // namespace connections

using namespace connections;

std::string header_in(const std::string& request, const std::string& name) {
  const size_t end = std::min(request.find("\r\n\r\n"), request.size());
  for (size_t at = request.find("\r\n"); at < end; at = request.find("\r\n", at + 2)) {
    const std::string_view line =
        std::string_view(request).substr(at + 2, request.find("\r\n", at + 2) - at - 2);
    if (line.size() > name.size() && line[name.size()] == ':' &&
        strncasecmp(line.data(), name.data(), name.size()) == 0)
      return std::string(trim(line.substr(name.size() + 1)));
  }
  return "";
}

struct Connections::State {
  State(const std::string& host, int port, Answer answers, const ConnectionLimits& most)
      : limits(most),
        answer(std::move(answers)),
        socket(listener(host, port)),
        wake(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    require(wake.number() >= 0, "cannot make an event: ", std::strerror(errno));
  }

  void compute();
  void awake() const {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(wake.number(), &one, sizeof one);
  }
  void accept_some();
  void take_answers();
  bool proceed(Connection& one, Clock::time_point now);
  bool read_request(Connection& one);
  bool send_answer(Connection& one, Clock::time_point now);
  bool close_oldest();
  int wait_for_events();

  const ConnectionLimits limits;
  const Answer answer;
  Descriptor socket, wake;
  std::atomic<bool> over = false;
  std::list<Connection> clients;  // the oldest first; of the serving thread only
  std::vector<pollfd> events;
  Clock::time_point accepts_again{};  // after the process had no descriptor left

  std::mutex mutex;  // of the jobs
  std::condition_variable asked;
  std::deque<Job> jobs;
  std::vector<Job> done;
};

void Connections::State::compute() {
  std::unique_lock<std::mutex> lock(mutex);
  while (true) {
    asked.wait(lock, [this] { return over || !jobs.empty(); });
    if (over) return;
    Job job = std::move(jobs.front());
    jobs.pop_front();
    lock.unlock();
    try {
      job.text = answer(job.text);
    } catch (const std::exception&) {  // memory, most likely: the client sees a closed connection
      job.text.clear();
    }
    lock.lock();
    done.push_back(std::move(job));
    awake();
  }
}

// False: none can be closed, as all are being answered.
bool Connections::State::close_oldest() {
  const auto oldest = std::find_if(clients.begin(), clients.end(), [](const Connection& one) {
    return one.phase != Connection::Phase::waits;
  });
  if (oldest == clients.end()) return false;
  clients.erase(oldest);
  return true;
}

void Connections::State::accept_some() {
  for (int turn = 0; turn < kTurns; ++turn) {
    Descriptor client(accept4(socket.number(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (client.number() < 0) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
        accepts_again = Clock::now() + std::chrono::milliseconds(100);
      if (errno != ECONNABORTED && errno != EINTR) return;
      continue;
    }
    if (clients.size() >= limits.connections && !close_oldest()) continue;
    clients.push_back({std::move(client), Clock::now() + limits.to_ask});
  }
}

void Connections::State::take_answers() {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = read(wake.number(), &count, sizeof count);
  std::vector<Job> ready;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    ready.swap(done);
  }
  size_t bytes = 0;
  for (const Connection& one : clients) {
    if (one.phase == Connection::Phase::listens) bytes += one.text.size();
  }
  for (Job& job : ready) {
    while (bytes > 0 && bytes + job.text.size() > limits.answers) {
      const auto slow = std::find_if(clients.begin(), clients.end(), [](const Connection& one) {
        return one.phase == Connection::Phase::listens;
      });
      bytes -= slow->text.size();
      clients.erase(slow);
    }
    const auto one = std::find_if(clients.begin(), clients.end(),
                                  [&](const Connection& other) { return &other == job.of; });
    bytes += job.text.size();
    one->text = std::move(job.text);
    one->phase = Connection::Phase::listens;
    one->deadline = Clock::now() + limits.to_listen;
  }
}

// False when it is over.
bool Connections::State::read_request(Connection& one) {
  char buffer[1 << 14];
  for (int turn = 0; turn < kTurns; ++turn) {
    const ssize_t got = recv(one.socket.number(), buffer, sizeof buffer, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    if (got == 0) return false;
    if (one.phase != Connection::Phase::asks)
      continue;  // a second request, or too long a first one
    if (!one.add(buffer, static_cast<size_t>(got)) && one.text.size() < limits.request) continue;
    one.phase = Connection::Phase::waits;
    const std::lock_guard<std::mutex> lock(mutex);
    jobs.push_back({&one, std::exchange(one.text, "")});
    asked.notify_one();
    return true;
  }
  return true;
}

bool Connections::State::send_answer(Connection& one, Clock::time_point now) {
  while (one.sent < one.text.size()) {
    const ssize_t put = send(one.socket.number(), one.text.data() + one.sent,
                             one.text.size() - one.sent, MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    one.sent += static_cast<size_t>(put);
  }
  constexpr auto kToLeave = std::chrono::seconds(1);
  shutdown(one.socket.number(), SHUT_WR);
  one.phase = Connection::Phase::leaves;
  one.text = {};
  one.deadline = now + kToLeave;
  return true;
}

bool Connections::State::proceed(Connection& one, Clock::time_point now) {
  using Phase = Connection::Phase;
  if (one.phase == Phase::waits) return true;
  if (now >= one.deadline) return false;
  if (one.phase == Phase::listens) return send_answer(one, now);
  return read_request(one);
}

// Milliseconds until the next deadline; -1: there is none.
int Connections::State::wait_for_events() {
  using Phase = Connection::Phase;
  const Clock::time_point now = Clock::now();
  Clock::time_point next = Clock::time_point::max();
  const bool full_of_files = now < accepts_again;
  if (full_of_files) next = accepts_again;
  events = {{wake.number(), POLLIN, 0}, {full_of_files ? -1 : socket.number(), POLLIN, 0}};
  for (const Connection& one : clients) {
    if (one.phase == Phase::waits) continue;
    next = std::min(next, one.deadline);
    events.push_back({one.socket.number(),
                      static_cast<short>(one.phase == Phase::listens ? POLLOUT : POLLIN), 0});
  }
  if (next == Clock::time_point::max()) return poll(events.data(), events.size(), -1);
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(next - now).count() + 1;
  return poll(events.data(), events.size(), static_cast<int>(std::max<int64_t>(left, 0)));
}

Connections::Connections(const std::string& host, int port, Answer answer,
                         const ConnectionLimits& limits)
    : state_(std::make_unique<State>(host, port, std::move(answer), limits)) {}

Connections::~Connections() = default;

int Connections::port() const { return port_of(address_of(state_->socket)); }

bool Connections::is_local() const {
  const sockaddr_storage address = address_of(state_->socket);
  return is_loopback(reinterpret_cast<const sockaddr&>(address));
}

void Connections::serve() {
  State& state = *state_;
  std::vector<std::jthread> threads;
  const std::unique_ptr<State, void (*)(State*)> end(&state, [](State* ended) {
    ended->clients.clear();
    const std::lock_guard<std::mutex> lock(ended->mutex);
    ended->over = true;
    ended->asked.notify_all();
  });
  for (size_t i = 0; i < state.limits.threads; ++i) threads.emplace_back([&] { state.compute(); });
  while (!state.over) {
    state.wait_for_events();
    state.take_answers();
    const Clock::time_point now = Clock::now();
    if (now >= state.accepts_again) state.accept_some();
    std::erase_if(state.clients, [&](Connection& one) { return !state.proceed(one, now); });
  }
}

void Connections::stop() {
  state_->over = true;
  state_->awake();
}

}  // namespace crema
