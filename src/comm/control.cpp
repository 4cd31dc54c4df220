#include "comm/control.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>

#include "base/error.h"
#include "comm/control_connections.h"

namespace crema {
namespace {

// Keeps all answers together within the size limit of a frame.
size_t max_text(int ranks) { return kMaxFrame / 2 / static_cast<size_t>(ranks); }

// Signals are for one thread of the program (tools/signals.h): a new thread inherits this mask.
class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

Control::Connections::Connections(const ControlOptions& options)
    : rank_(options.rank),
      ranks_(options.ranks),
      timeout_(options.timeout),
      interval_(seconds(std::min(1.0, options.timeout / 4))),
      wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  require(options.timeout > 0, "the ranks' timeout is ", options.timeout,
          " s; expected more than 0");
  if (!wake_) crema::fail("the control connection gets no file descriptor: ", std::strerror(errno));
  Rendezvous met = connect_ranks(options);
  token_ = std::move(met.token);
  hosts_ = std::move(met.hosts);
  standby_ = std::move(met.standby);
  standby_address_ = std::move(met.standby_address);
  const Moment now = ControlClock::now();
  peers_.resize(ranks_);
  for (int rank = 0; rank < ranks_; ++rank) {
    peers_[rank].connection = std::move(met.connections[rank]);
    peers_[rank].heard = now;
    if (peers_[rank].connection) peers_[rank].connection->allow(kMaxFrame);
  }
  excused_.assign(ranks_, now);
  collection_.texts.resize(ranks_);
  last_round_ = next_beat_ = now;
  for (Frame& frame : met.early) handle(0, std::move(frame));
  const NoSignals blocked;
  thread_ = std::thread([this] { run(); });
}

Control::Connections::~Connections() { end(false); }

std::vector<std::string> Control::Connections::gather(std::string_view text) {
  step();
  require(text.size() <= max_text(ranks_), "a text of ", size_text(text.size()),
          " is too long for ", ranks_, " ranks to exchange; at most ", size_text(max_text(ranks_)));
  std::unique_lock<std::mutex> lock(mutex_);
  if (loss_) throw_loss(lock);
  ++number_;
  offered_ = std::string(text);
  wake();
  changed_.wait(lock, [this] { return answer_ || loss_; });
  if (!answer_) throw_loss(lock);
  std::vector<std::string> all = std::move(*answer_);
  answer_.reset();
  return all;
}

void Control::Connections::change_pauses(int by) {
  pauses_ += by;
  wake();
}

void Control::Connections::check() {
  if (!lost()) return;
  std::unique_lock<std::mutex> lock(mutex_);
  throw_loss(lock);
}

void Control::Connections::when_lost(std::function<void()> work) {
  const std::lock_guard<std::mutex> lock(mutex_);
  callbacks_.push_back(std::move(work));
  wake();
}

void Control::Connections::fail() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (end_ == End::none) end_ = End::failed;
  wake();
}

void Control::Connections::end(bool failed) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (end_ == End::none) end_ = failed ? End::failed : End::done;
    wake();
  }
  if (thread_.joinable()) thread_.join();
}

void Control::Connections::throw_loss(std::unique_lock<std::mutex>& lock) {
  changed_.wait_until(lock, loss_->tell_at, [this] { return loss_->told; });
  throw RankLost(loss_->what, loss_->told);
}

void Control::Connections::wake() {
  const uint64_t one = 1;
  // It fails only when the thread has not been awake since many calls; then it will be.
  [[maybe_unused]] const ssize_t ignored = write(wake_.get(), &one, sizeof one);
}

Control::Control(const ControlOptions& options)
    : exceptions_(std::uncaught_exceptions()),
      connections_(std::make_unique<Connections>(options)) {}

Control::~Control() { connections_->end(std::uncaught_exceptions() > exceptions_); }

std::vector<std::string> Control::gather(std::string_view text) {
  return connections_->gather(text);
}

void Control::at_iteration(int64_t iteration) { connections_->at_iteration(iteration); }
void Control::begin_pause() { connections_->change_pauses(1); }
void Control::end_pause() { connections_->change_pauses(-1); }
void Control::begin_wait() { connections_->set_waiting(true); }
void Control::end_wait() { connections_->set_waiting(false); }
void Control::check() const { connections_->check(); }
bool Control::lost() const { return connections_->lost(); }
void Control::when_lost(std::function<void()> work) { connections_->when_lost(std::move(work)); }
void Control::fail() { connections_->fail(); }

}  // namespace crema
