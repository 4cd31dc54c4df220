#include "comm/control_rendezvous.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <thread>

#include "base/error.h"
#include "base/system.h"
#include "comm/token_file.h"

namespace crema {
namespace {

// After this time a rank tries the next address. Rank 0 may still be busy with something else.
constexpr double kAnswerSeconds = 5;
const char* const kSetToken =
    "If this machine does not share rank 0's home folder, set CREMA_TOKEN to the same secret in "
    "the "
    "environment of all ranks";

bool only_on_this_machine(const std::vector<HostPort>& addresses) {
  return std::all_of(addresses.begin(), addresses.end(),
                     [](const HostPort& address) { return is_loopback(address.host); });
}

Socket listening_socket(const ControlOptions& options) {
  if (options.listening < 0) {
    const std::vector<HostPort> addresses = parse_addresses(options.address);
    const std::string host = only_on_this_machine(addresses) ? addresses[0].host : "";
    return Socket(listen_on(host, addresses[0].port).socket);
  }
  Socket given(options.listening);
  int listens = 0;
  socklen_t size = sizeof listens;
  if (getsockopt(given.get(), SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || !listens)
    fail("file descriptor ", given.release(), " is no socket at which rank 0 can listen");
  fcntl(given.get(), F_SETFD, FD_CLOEXEC);
  fcntl(given.get(), F_SETFL, O_NONBLOCK);
  return given;
}

// Waits until one of them has something, at most until `until`.
void wait_for(std::vector<pollfd>& waiting, Moment until) {
  if (poll(waiting.data(), waiting.size(), milliseconds_until(until)) < 0 && errno != EINTR)
    fail("waiting for the other ranks: ", std::strerror(errno));
}

// --- rank 0 ---

class Reception {
 public:
  Reception(const ControlOptions& options, Socket listening)
      : options_(options),
        pending_(std::move(listening), options),
        until_(ControlClock::now() + seconds(options.timeout)) {
    met_.connections.resize(options.ranks);
    met_.hosts.resize(options.ranks);
    met_.hosts[0] = host_name();
  }

  Rendezvous run() {
    while (came_ + 1 < options_.ranks) {
      wait();
      pending_.serve([&](const Handshake& handshake, std::unique_ptr<Connection> connection) {
        admit(handshake, std::move(connection));
      });
      drop_those_that_left();
      if (ControlClock::now() >= until_) give_up();
    }
    FrameWriter welcome(FrameType::welcome);
    for (const std::string& host : met_.hosts) welcome.text(host);
    welcome.text(met_.standby_address);
    send_all(welcome.finish());
    return std::move(met_);
  }

 private:
  void wait() {
    std::vector<pollfd> waiting;
    pending_.add_to(&waiting);
    for (const auto& connection : met_.connections) {
      if (connection) waiting.push_back({connection->descriptor(), connection->events(), 0});
    }
    wait_for(waiting, std::min(until_, pending_.next()));
  }

  void admit(const Handshake& handshake, std::unique_ptr<Connection> connection) {
    const int64_t ranks = handshake.ranks, rank = handshake.rank;
    const std::string& host = handshake.host;
    std::string problem;
    if (ranks != options_.ranks || rank <= 0 || rank >= ranks) {
      problem = cat("rank ", rank, " of ", ranks, " does not belong to a run of ", options_.ranks,
                    " ranks");
    } else if (met_.connections[rank]) {
      problem = cat("a rank ", rank, " is there already, on ", met_.hosts[rank]);
    }
    if (!problem.empty()) {
      turned_away_ = cat("; a process on ", host, " was turned away: ", problem);
      connection->send(FrameWriter(FrameType::refused).text(problem).finish());
      connection->finish();
      return;
    }
    connection->send(FrameWriter(FrameType::accepted).finish());
    connection->flush();
    met_.hosts[rank] = host;
    if (rank == 1) met_.standby_address = handshake.standby;
    met_.connections[rank] = std::move(connection);
    ++came_;
  }

  // A launcher may start them again.
  void drop_those_that_left() {
    for (int rank = 1; rank < options_.ranks; ++rank) {
      std::unique_ptr<Connection>& connection = met_.connections[rank];
      if (!connection) continue;
      std::string problem = "has ended";
      try {
        connection->receive([](Frame&&) { fail("it has nothing to say yet"); });
        connection->flush();
        if (!connection->ended()) continue;
      } catch (const Error&) {
        problem = cat("sent from ", other_end(connection->descriptor()), " what no rank sends");
      }
      left_ = cat("; rank ", rank, " on ", met_.hosts[rank], " came, but ", problem);
      connection.reset();
      met_.hosts[rank].clear();
      --came_;
    }
  }

  [[noreturn]] void give_up() {
    std::vector<int> missing;
    for (int rank = 1; rank < options_.ranks; ++rank) {
      if (!met_.connections[rank]) missing.push_back(rank);
    }
    const std::string text = cat(
        "of ", options_.ranks, " ranks, ", names_of(missing, {}),
        missing.size() == 1 ? " has" : " have", " not come to rank 0 on ", met_.hosts[0], " (",
        options_.address.empty() ? "a socket of the launcher" : options_.address, ") within ",
        options_.timeout, " s", left_, turned_away_, pending_.problems(),
        "; does each of them run, and can it reach that address?",
        options_.token_file.empty()
            ? ""
            : " Ranks on machines that do not share a home folder also need CREMA_TOKEN, the same "
              "secret in the environment of all ranks.");
    send_all(FrameWriter(FrameType::missing).text(text).finish());
    fail(text);
  }

  void send_all(const Bytes& frame) {
    for (const auto& connection : met_.connections) {
      if (!connection) continue;
      connection->send(frame);
      connection->flush();
    }
  }

  const ControlOptions& options_;
  PendingPeers pending_;
  const Moment until_;
  Rendezvous met_;
  int came_ = 0;
  std::string left_, turned_away_;
};

// --- the other ranks ---

class Session {
 public:
  explicit Session(const ControlOptions& options)
      : options_(options),
        addresses_(parse_addresses(options.address)),
        until_(ControlClock::now() + seconds(options.timeout)) {
    met_.connections.resize(options.ranks);
  }

  Rendezvous run() {
    if (options_.rank == 1 && options_.ranks > 2) {
      open_standby();
    }
    handshake_ = {options_.ranks, options_.rank, host_name(), met_.standby_address};
    while (true) {
      for (const HostPort& address : addresses_) {
        if (try_address(address)) return std::move(met_);
      }
      if (ControlClock::now() >= until_) give_up();
      // Rank 0 may not listen yet.
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }

 private:
  void open_standby() {
    met_.standby = std::make_unique<Standby>(options_, only_on_this_machine(addresses_));
    met_.standby_address = met_.standby->address();
  }

  // Rank 0 writes the file before it sends a challenge, but on a network file system it may appear
  // later, and a file of an earlier run before it: each attempt reads it again.
  void read_token() {
    const std::string token = read_token_file(options_.token_file, &token_problem_);
    require(!token.empty(), "no token");
    if (token == options_.token) return;
    options_.token = token;
    if (!met_.standby) return;
    open_standby();
    handshake_.standby = met_.standby_address;
  }

  bool try_address(const HostPort& address) {
    Socket socket = connect_to(address, until_, &problem_);
    if (!socket) return false;
    met_.connections[0] = std::make_unique<Connection>(std::move(socket), kMaxHandshake);
    Connection& connection = *met_.connections[0];
    answered_ = false;
    const Moment asked = ControlClock::now();
    Moment until = std::min(asked + seconds(kAnswerSeconds), until_);
    bool accepted = false;
    while (!connection.ended() && ControlClock::now() < until) {
      connection.flush();
      std::vector<pollfd> waiting = {{connection.descriptor(), connection.events(), 0}};
      wait_for(waiting, until);
      bool was_accepted = false;
      try {
        connection.receive([&](Frame&& frame) {
          was_accepted |= frame.type == FrameType::accepted;
          take(std::move(frame), connection);
        });
      } catch (const RankLost&) {
        throw;
      } catch (const Error&) {
        accepted = false;  // not rank 0: something else listens there
        met_.hosts.clear();
        met_.early.clear();
        break;
      }
      if (!met_.hosts.empty()) return true;
      if (was_accepted) {
        // Rank 0 now knows who is missing, and reports that when its own time is over.
        accepted = true;
        refused_.clear();
        turned_away_.clear();
        until = ControlClock::now() + seconds(options_.timeout + 2);
      }
    }
    if (accepted) {
      problem_ = "it has ended before all ranks had come";
      if (!connection.ended()) problem_ = "it has answered, but nothing came after that";
    } else if (answered_ && connection.ended()) {
      turned_away_ =
          "what listens there turns this rank away: another run, or one with another token";
      if (!options_.token_file.empty())
        turned_away_ += cat(" than that in ", options_.token_file, ". ", kSetToken);
    } else if (problem_.empty() || connection.ended() || ControlClock::now() < until_) {
      problem_ = "what listens there does not answer as rank 0 does";
    }
    return false;
  }

  void take(Frame&& frame, Connection& connection) {
    if (!answered_) {
      if (!options_.token_file.empty() && frame.type == FrameType::challenge) read_token();
      ConnectionKeys keys;
      const Bytes answer = answer_challenge(frame, options_.token, handshake_, &keys);
      connection.set_keys(std::move(keys));
      connection.send(answer);
      answered_ = true;
      return;
    }
    if (!met_.hosts.empty()) {
      met_.early.push_back(std::move(frame));
      return;
    }
    FrameFields fields(frame.payload);
    if (frame.type == FrameType::accepted) {
      connection.allow(kMaxFrame);
    } else if (frame.type == FrameType::refused) {
      refused_ = fields.text();
    } else if (frame.type == FrameType::missing) {
      throw RankLost(fields.text(), true);
    } else if (frame.type == FrameType::welcome) {
      std::vector<std::string> hosts;
      for (int rank = 0; rank < options_.ranks; ++rank) hosts.push_back(fields.text());
      met_.standby_address = fields.text();
      met_.hosts = std::move(hosts);  // only a welcome that could be read ends the rendezvous
      met_.token = options_.token;
    }
  }

  [[noreturn]] void give_up() {
    const std::string begin = cat("rank ", options_.rank, " on ", host_name(), " has ");
    if (!refused_.empty())
      fail(begin, "been turned away at ", options_.address, ", where rank 0 should be: ", refused_);
    if (!token_problem_.empty())
      fail(begin, "found what may be rank 0 at ", options_.address,
           ", but not the token of the run within ", options_.timeout, " s: ", options_.token_file,
           ": ", token_problem_, ". ", kSetToken);
    fail(begin, "not met rank 0 at ", options_.address, " within ", options_.timeout, " s (",
         turned_away_.empty() ? problem_ : turned_away_,
         "); does rank 0 run, and can this machine reach it?");
  }

  ControlOptions options_;
  const std::vector<HostPort> addresses_;
  const Moment until_;
  Handshake handshake_;
  Rendezvous met_;
  bool answered_ = false;  // the challenge
  std::string problem_, token_problem_, refused_;
  std::string turned_away_;  // says more than that rank 0 has ended since
};

Rendezvous receive_ranks(ControlOptions options) {
  Socket listening = listening_socket(options);
  // Written only once the port is this run's: if another run has it, the file is that one's. Ranks
  // that connect meanwhile wait for their challenge.
  std::optional<TokenFile> file;
  if (!options.token_file.empty()) options.token = file.emplace(options.token_file).token();
  Rendezvous met = Reception(options, std::move(listening)).run();
  met.token = options.token;
  return met;
}

}  // namespace

Rendezvous connect_ranks(const ControlOptions& options) {
  require(options.ranks >= 1 && options.rank >= 0 && options.rank < options.ranks, "rank ",
          options.rank, " of ", options.ranks, ": ranks are numbered from 0");
  if (options.ranks == 1) {
    const Socket not_needed(options.listening);
    Rendezvous alone;
    alone.connections.resize(1);
    alone.hosts = {host_name()};
    return alone;
  }
  return options.rank == 0 ? receive_ranks(options) : Session(options).run();
}

std::string names_of(const std::vector<int>& ranks, const std::vector<std::string>& hosts) {
  constexpr size_t kShown = 8;
  const size_t shown = std::min(ranks.size(), kShown);
  std::vector<std::string> names;
  for (size_t i = 0; i < shown; ++i)
    names.push_back(hosts.empty() ? cat("rank ", ranks[i])
                                  : cat("rank ", ranks[i], " on ", hosts[ranks[i]]));
  if (shown < ranks.size()) names.push_back(cat(ranks.size() - shown, " more"));
  if (names.size() == 1) return names[0];
  const std::string last = names.back();
  names.pop_back();
  return join(names, ", ") + " and " + last;
}

}  // namespace crema
