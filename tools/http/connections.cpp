#include "tools/http/connections.h"

#include <netinet/in.h>
#include <poll.h>
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
#include "tools/http/connection.h"
#include "tools/http/listener.h"
#include "tools/http/loopback.h"

namespace crema {

namespace connections {

// How much is done for one client, or for new ones, before the others' turn.
constexpr int kTurns = 16;

// What one thread passes to others and gets back, by the connection's number.
struct Job {
  uint64_t of;
  std::string text;
  bool stays = false, late = false;
};

}  // namespace connections

using namespace connections;

struct Connections::State : std::enable_shared_from_this<Connections::State> {
  State(const std::string& host, int port, Handler handles, const ConnectionLimits& most)
      : limits(most),
        handler(std::move(handles)),
        socket(listener(host, port)),
        wake(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    require(wake.number() >= 0, "cannot make an event: ", std::strerror(errno));
  }

  void compute();
  void awake() const {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(wake.number(), &one, sizeof one);
  }
  bool accept_some();
  void take_answers();
  void begin_end(Clock::time_point now);
  void make_room();
  bool proceed(Connection& one, Clock::time_point now);
  bool read_request(Connection& one, Clock::time_point now);
  void hand_over(Connection& one);
  bool send_answer(Connection& one, Clock::time_point now);
  bool close_oldest();
  int wait_for_events();

  const ConnectionLimits limits;
  const Handler handler;
  Descriptor socket, wake;
  std::atomic<bool> over = false, ends = false;
  std::list<Connection> clients;  // the oldest first; of the serving thread only
  std::vector<pollfd> events;
  Clock::time_point accepts_again{};  // after the process had no descriptor left
  uint64_t accepted = 0;
  size_t reading = 0;  // bytes of requests that are incomplete
  bool closed = false;

  std::mutex mutex;  // guards the jobs
  std::condition_variable asked;
  std::deque<Job> jobs;
  size_t waiting = 0;  // their bytes
  std::vector<Job> done;
};

void Connections::Reply::operator()(std::string response, bool stays) {
  const std::shared_ptr<State> state = std::exchange(state_, nullptr);
  if (!state) return;
  const std::lock_guard<std::mutex> lock(state->mutex);
  if (state->done.empty()) state->awake();
  state->done.push_back({to_, std::move(response), stays});
}

Connections::Reply& Connections::Reply::operator=(Reply&& other) noexcept {
  std::swap(state_, other.state_);
  std::swap(to_, other.to_);
  std::swap(late_, other.late_);
  return *this;
}

Connections::Reply::~Reply() {
  if (state_) (*this)("");
}

void Connections::State::compute() {
  std::unique_lock<std::mutex> lock(mutex);
  while (true) {
    asked.wait(lock, [this] { return over || !jobs.empty(); });
    if (over) return;
    Job job = std::move(jobs.front());
    jobs.pop_front();
    waiting -= job.text.size();
    lock.unlock();
    try {
      handler(std::move(job.text), Reply(shared_from_this(), job.of, job.late));
    } catch (const std::exception&) {  // memory, most likely: the client sees a closed connection
    }
    lock.lock();
  }
}

// False: none can be closed, as all are being answered. While more than half have asked nothing yet, the oldest
// of these is closed, so that a flood of such connections does not end those of clients at work.
bool Connections::State::close_oldest() {
  using Phase = Connection::Phase;
  const auto is_new = [](const Connection& one) {
    return one.phase == Phase::asks && !one.answered;
  };
  const bool flood =
      2 * std::count_if(clients.begin(), clients.end(), is_new) > std::ssize(clients);
  const auto oldest = std::find_if(clients.begin(), clients.end(), [&](const Connection& one) {
    return flood ? is_new(one) : one.phase != Phase::waits;
  });
  if (oldest == clients.end()) return false;
  clients.erase(oldest);
  return true;
}

// False: no more connections wait.
bool Connections::State::accept_some() {
  for (int turn = 0; turn < kTurns; ++turn) {
    Descriptor client(accept4(socket.number(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (client.number() < 0) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
        accepts_again = Clock::now() + std::chrono::milliseconds(100);
      if (errno != ECONNABORTED && errno != EINTR) return false;
      continue;
    }
    if (clients.size() >= limits.connections && !close_oldest()) continue;
    clients.push_back({std::move(client), ++accepted, Clock::now() + limits.to_ask});
  }
  return true;
}

void Connections::State::take_answers() {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = read(wake.number(), &count, sizeof count);
  std::vector<Job> ready;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    ready.swap(done);
  }
  if (ready.empty()) return;
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
                                  [&](const Connection& other) { return other.number == job.of; });
    if (one == clients.end()) continue;
    bytes += job.text.size();
    one->text = std::move(job.text);
    one->stays = job.stays;
    one->sent = 0;
    one->phase = Connection::Phase::listens;
    one->answered = true;
    one->deadline = Clock::now() + limits.to_listen;
  }
}

// Connections that the system has accepted may have sent their request.
void Connections::State::begin_end(Clock::time_point now) {
  closed = true;
  while (accept_some()) {
  }
  socket = Descriptor();
  for (Connection& one : clients) {
    if (one.phase == Connection::Phase::asks && one.text.empty())
      one.deadline = std::min(one.deadline, now + kToEnd);
  }
}

void Connections::State::hand_over(Connection& one) {
  const size_t size =
      limits.to_ask_again.count() > 0 && one.whole > 0 ? one.whole : one.text.size();
  if (one.text.size() > size) {
    one.later = one.text.substr(size);
    one.text.resize(size);
  }
  one.phase = Connection::Phase::waits;
  one.whole = one.searched = 0;
  const std::lock_guard<std::mutex> lock(mutex);
  waiting += one.text.size();
  jobs.push_back({one.number, std::exchange(one.text, ""), false, closed});
  asked.notify_one();
}

// Ends the request that has been incomplete for longest if all of them take too much.
void Connections::State::make_room() {
  size_t bytes = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    bytes = waiting;
  }
  if (bytes + reading <= limits.requests) return;
  for (Connection& one : clients) {
    if (one.phase != Connection::Phase::asks || one.text.empty()) continue;
    one.deadline = {};
    reading -= std::min(reading, one.text.size());
    return;
  }
}

// False when it is over.
bool Connections::State::read_request(Connection& one, Clock::time_point now) {
  char buffer[1 << 14];
  for (int turn = 0; turn < kTurns; ++turn) {
    const ssize_t got = recv(one.socket.number(), buffer, sizeof buffer, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    if (got == 0) return false;
    if (one.phase != Connection::Phase::asks)
      continue;  // a second request, or too long a first one
    if (one.text.empty()) one.deadline = now + limits.to_ask;
    const bool had_headers = one.whole > 0;
    one.text.append(buffer, static_cast<size_t>(got));
    if (one.is_complete(limits)) {
      hand_over(one);
      return true;
    }
    reading += static_cast<size_t>(got);
    make_room();
    if (!had_headers && one.waits_for_continue()) {
      constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
      [[maybe_unused]] const ssize_t put =
          send(one.socket.number(), kContinue.data(), kContinue.size(), MSG_NOSIGNAL);
    }
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
  if (one.stays && limits.to_ask_again.count() > 0) {
    one.phase = Connection::Phase::asks;
    one.text = std::exchange(one.later, {});
    const auto rest = one.text.empty() ? limits.to_ask_again : limits.to_ask;
    one.deadline = now + (closed && one.text.empty() ? std::min(rest, kToEnd) : rest);
    if (one.is_complete(limits)) hand_over(one);
    return true;
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
  // New connections have no event yet; their request may have come with them.
  return (one.event > 0 && events[one.event].revents == 0) || read_request(one, now);
}

// Waits until the next deadline at most.
int Connections::State::wait_for_events() {
  using Phase = Connection::Phase;
  const Clock::time_point now = Clock::now();
  Clock::time_point next = Clock::time_point::max();
  const bool full_of_files = now < accepts_again;
  if (full_of_files) next = accepts_again;
  events = {{wake.number(), POLLIN, 0}, {full_of_files ? -1 : socket.number(), POLLIN, 0}};
  reading = 0;
  for (Connection& one : clients) {
    one.event = 0;
    if (one.phase == Phase::waits) continue;
    if (one.phase == Phase::asks) reading += one.text.size();
    next = std::min(next, one.deadline);
    one.event = events.size();
    events.push_back({one.socket.number(),
                      static_cast<short>(one.phase == Phase::listens ? POLLOUT : POLLIN), 0});
  }
  if (next == Clock::time_point::max()) return poll(events.data(), events.size(), -1);
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(next - now).count() + 1;
  return poll(events.data(), events.size(), static_cast<int>(std::max<int64_t>(left, 0)));
}

Connections::Connections(const std::string& host, int port, Handler handler,
                         const ConnectionLimits& limits)
    : state_(std::make_shared<State>(host, port, std::move(handler), limits)) {}

Connections::Connections(const std::string& host, int port, const Answer& answer,
                         const ConnectionLimits& limits)
    : Connections(host, port, Handler([answer](const std::string& request, Reply reply) {
                    reply(answer(request));
                  }),
                  limits) {}

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
  while (!state.over && !(state.closed && state.clients.empty())) {
    state.wait_for_events();
    state.take_answers();
    const Clock::time_point now = Clock::now();
    if (state.ends && !state.closed) state.begin_end(now);
    if (now >= state.accepts_again && !state.closed) state.accept_some();
    std::erase_if(state.clients, [&](Connection& one) { return !state.proceed(one, now); });
  }
}

void Connections::stop() {
  state_->over = true;
  state_->awake();
}

void Connections::finish() {
  state_->ends = true;
  state_->awake();
}

}  // namespace crema
