// The control connection's thread.
#include "comm/control_connections.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/error.h"

namespace crema {

namespace {

// Within which the other ranks read a goodbye and close their side.
constexpr double kCloseSeconds = 1.5;
// Time in which rank 1 announces that it tells the user of the loss of rank 0. It may learn of it a
// second later.
constexpr double kAskSeconds = 1.5;
// If it has not, rank 2 tells the user after this time, and each further rank a second later: a
// launcher mostly ends the others when the first has ended.
constexpr double kTellSeconds = 2, kMaxTellSeconds = 15;

}  // namespace

void Control::Connections::run() {
  try {
    while (true) {
      wait();
      const Moment now = ControlClock::now();
      if (now - last_round_ > 2 * interval_) {
        // This rank was suspended: messages that it missed meanwhile say nothing about the others.
        for (Peer& peer : peers_) peer.heard = peer.stepped = now;
        excused_.assign(ranks_, now);
      }
      last_round_ = now;
      receive(now);
      take_requests(now);
      if (!closing_) judge(now);
      send_beats(now);
      flush();
      call_back();
      if (standby_) serve_standby();
      if (asks_standby_) ask();
      if (closing_ && closed(now)) return;
    }
  } catch (const std::exception& error) {
    peers_.clear();  // the other ranks read the end
    note_loss(cat("the connection to the other ranks has failed: ", error.what()), false, 0);
    call_back();
  }
}

void Control::Connections::wait() {
  std::vector<pollfd> waiting = {{wake_.get(), POLLIN, 0}};
  std::vector<Peer*> of_peers;
  for (Peer& peer : peers_) {
    peer.readable = false;
    if (!peer.connection || peer.connection->events() == 0) continue;
    of_peers.push_back(&peer);
    waiting.push_back({peer.connection->descriptor(), peer.connection->events(), 0});
  }
  if (standby_) standby_->add_to(&waiting);
  Moment until = closing_ ? close_at_ : next_beat_;
  if (standby_) until = std::min(until, standby_->next());
  if (poll(waiting.data(), waiting.size(), milliseconds_until(until)) < 0) {
    require(errno == EINTR || errno == EAGAIN || errno == ENOMEM, "poll() fails with error ",
            errno);
    return;
  }
  for (size_t i = 0; i < of_peers.size(); ++i)
    of_peers[i]->readable = (waiting[1 + i].revents & ~POLLOUT) != 0;
  uint64_t calls = 0;
  [[maybe_unused]] const ssize_t ignored = read(wake_.get(), &calls, sizeof calls);
}

void Control::Connections::receive(Moment now) {
  for (int rank = 0; rank < ranks_; ++rank) {
    Peer& peer = peers_[rank];
    if (!peer.connection || !peer.readable) continue;
    try {
      if (peer.connection->receive([&](Frame&& frame) { handle(rank, std::move(frame)); }))
        peer.heard = now;
    } catch (const Error& error) {
      peer.done = true;
      lose({rank}, cat("sends what cannot be read", iteration_of(rank), ": ", error.what()));
      peer.connection->finish();
      peer.connection.reset();
      continue;
    }
    if (peer.connection->inside_frame()) excused_[rank] = now;  // a long text is on its way
    if (peer.connection->ended() && !peer.done) {
      peer.done = true;
      lose({rank}, cat("has ended", iteration_of(rank)));
    }
  }
}

void Control::Connections::handle(int rank, Frame&& frame) {
  Peer& peer = peers_[rank];
  FrameFields fields(frame.payload);
  switch (frame.type) {
    case FrameType::text: {
      require(rank_ == 0, "a text for rank 0");
      const int64_t number = fields.number();
      peer.iteration = fields.number();
      collect(rank, number, fields.text(), last_round_);
      return;
    }
    case FrameType::texts: {
      const int64_t number = fields.number();
      peer.iteration = fields.number();
      std::vector<std::string> all;
      for (int i = 0; i < ranks_; ++i) all.push_back(fields.text());
      const std::lock_guard<std::mutex> lock(mutex_);
      require(rank_ != 0 && waits_ && number == number_, "an answer without a question");
      waits_ = false;
      answer_ = std::move(all);
      changed_.notify_all();
      return;
    }
    case FrameType::beat: {
      peer.iteration = fields.number();
      const bool was_paused = peer.paused;
      peer.paused = fields.number() != 0;
      if (peer.paused || was_paused) excused_[rank] = last_round_;
      const int64_t steps = fields.number();
      note_steps(rank, steps, fields.number() != 0, last_round_);
      return;
    }
    case FrameType::lost: {
      const std::string what = fields.text();
      const int64_t teller = fields.number();
      peer.done = true;
      peer.connection->finish();
      if (lost() || closing_) return;
      // Another rank has given rank 0 up, and so must all.
      if (rank_ == 0) send_all(FrameWriter(FrameType::lost).text(what).number(teller).finish());
      note_loss(what, teller != rank_, 0);
      return;
    }
    case FrameType::failed:
      peer.done = true;
      peer.connection->finish();
      lose({rank}, cat("has failed", iteration_of(rank)), true);
      return;
    case FrameType::goodbye:
      peer.done = true;
      peer.connection->finish();
      return;
    default:
      crema::fail("a frame out of place");
  }
}

void Control::Connections::take_requests(Moment now) {
  std::optional<std::string> text;
  int64_t number = 0;
  End end = End::none;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::swap(text, offered_);
    number = number_;
    end = end_;
  }
  if (text && rank_ == 0) {
    collect(0, number, std::move(*text), now);
  } else if (text) {
    waits_ = true;
    send_all(FrameWriter(FrameType::text, text->size() + 24)
                 .number(number)
                 .number(iteration_)
                 .text(*text)
                 .finish());
  }
  const bool paused = pauses_ > 0;
  if (paused || sent_pause_) excused_[rank_] = now;
  if (paused != sent_pause_) next_beat_ = now;
  if (end == End::none || closing_) return;
  const bool failed = end == End::failed;
  if (!lost()) send_all(FrameWriter(failed ? FrameType::failed : FrameType::goodbye).finish());
  if (failed) note_loss("this rank has failed", true, 0);
  closing_ = true;
  close_at_ = now + seconds(kCloseSeconds);
}

void Control::Connections::collect(int rank, int64_t number, std::string&& text, Moment now) {
  if (number != collection_.number || collection_.texts[rank]) {
    lose({rank}, cat("is in its exchange ", number, iteration_of(rank), ", but the others are in ",
                     collection_.number, ": the ranks have not done the same"));
    return;
  }
  if (collection_.count++ == 0) collection_.since = now;
  collection_.texts[rank] = std::move(text);
  peers_[rank].stepped = now;
  if (collection_.count == ranks_) answer();
}

void Control::Connections::answer() {
  size_t size = 2 * sizeof(int64_t);
  for (const auto& text : collection_.texts) size += text->size() + sizeof(int64_t);
  FrameWriter writer(FrameType::texts, size);
  writer.number(collection_.number).number(iteration_);
  std::vector<std::string> all;
  for (auto& text : collection_.texts) {
    writer.text(*text);
    all.push_back(std::move(*text));
    text.reset();
  }
  send_all(writer.finish());
  flush();  // before this rank continues
  ++collection_.number;
  collection_.count = 0;
  // They may have waited long, and only now begin to keep others waiting.
  for (Peer& peer : peers_) peer.stepped = last_round_;
  const std::lock_guard<std::mutex> lock(mutex_);
  answer_ = std::move(all);
  changed_.notify_all();
}

void Control::Connections::send_beats(Moment now) {
  if (now < next_beat_) return;
  next_beat_ = now + interval_;
  sent_pause_ = pauses_ > 0;
  const int64_t steps = steps_;
  const bool waiting = waiting_;
  note_steps(rank_, steps, waiting, now);
  const Bytes beat = FrameWriter(FrameType::beat)
                         .number(iteration_)
                         .number(sent_pause_)
                         .number(steps)
                         .number(waiting)
                         .finish();
  for (Peer& peer : peers_) {
    // Anything that is being sent also shows that this rank is alive.
    if (peer.connection && !peer.connection->sends()) peer.connection->send(beat);
  }
}

void Control::Connections::call_back() {
  if (!lost()) return;
  std::vector<std::function<void()>> work;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::swap(work, callbacks_);
  }
  for (const auto& call : work) {
    try {
      call();
    } catch (...) {  // the user is told about the loss
    }
  }
}

void Control::Connections::serve_standby() {
  std::optional<int> teller;
  if (lost()) {
    const std::lock_guard<std::mutex> lock(mutex_);
    teller = loss_->told ? 0 : rank_;
  }
  standby_->serve(teller);
}

void Control::Connections::ask() {
  asks_standby_ = false;
  const std::optional<int> teller =
      ask_standby(standby_address_, token_, {ranks_, rank_, hosts_[rank_], ""},
                  ControlClock::now() + seconds(kAskSeconds));
  if (!teller) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  loss_->told = true;
  changed_.notify_all();
}

bool Control::Connections::closed(Moment now) {
  bool all = true;
  for (Peer& peer : peers_) {
    if (!peer.connection) continue;
    if (!peer.connection->sends()) peer.connection->finish();
    // Closing earlier could discard data that a rank has not read yet.
    all = all && (peer.lost || peer.done || peer.connection->ended());
  }
  if (tells_ && standby_->answers() < ranks_ - 2) all = false;  // the others may ask
  return all || now >= close_at_;
}

void Control::Connections::lose(const std::vector<int>& ranks, const std::string& what, bool told) {
  if (lost() || closing_) return;
  const std::string text = names_of(ranks, hosts_) + " " + what;
  int teller = -1;  // none
  for (int rank = 0; rank < ranks_ && teller < 0 && !told; ++rank) {
    const bool is_lost = std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
    if (!is_lost && !peers_[rank].done) teller = rank;
  }
  for (const int rank : ranks) peers_[rank].lost = true;
  if (rank_ == 0) {
    send_all(FrameWriter(FrameType::lost).text(text).number(teller).finish());
    note_loss(text, teller != 0, 0);
  } else {
    // Rank 0 may recover.
    send_all(FrameWriter(FrameType::lost).text(text).number(rank_).finish());
    asks_standby_ = !told && rank_ > 1;
    tells_ = !told && standby_;
    const double delay = std::min(kTellSeconds + rank_ - 2, kMaxTellSeconds);
    note_loss(text, told, asks_standby_ ? delay : 0);
  }
}

void Control::Connections::note_loss(const std::string& what, bool told, double delay) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (loss_) return;
  loss_ = Loss{what, told, ControlClock::now() + seconds(delay)};
  lost_.store(true, std::memory_order_release);
  changed_.notify_all();
}

std::string Control::Connections::iteration_of(int rank) const {
  const int64_t iteration = rank == rank_ ? iteration_.load() : peers_[rank].iteration;
  return iteration < 0 ? "" : cat(" (last iteration ", iteration, ")");
}

void Control::Connections::flush() {
  for (Peer& peer : peers_) {
    if (peer.connection) peer.connection->flush();
  }
}

void Control::Connections::send_all(const Bytes& frame) {
  for (Peer& peer : peers_) {
    if (peer.connection && !peer.connection->ended()) peer.connection->send(frame);
  }
}

}  // namespace crema
