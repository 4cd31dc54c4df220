#include "comm/control_standby.h"

#include "base/error.h"

namespace crema {

Standby::Standby(const ControlOptions& options, bool only_here)
    : timeout_(options.timeout),
      listening_(only_here ? listen_on("127.0.0.1", 0) : listen_anywhere()),
      pending_(Socket(listening_.socket), options) {
  constexpr size_t kMaxAddresses = 8;  // a handshake is short
  std::vector<std::string> hosts;
  if (!only_here) hosts = own_addresses();
  if (hosts.size() > kMaxAddresses) hosts.resize(kMaxAddresses);
  hosts.emplace_back("127.0.0.1");
  for (const std::string& host : hosts)
    address_ += cat(address_.empty() ? "" : ",", host, ":", listening_.port);
}

void Standby::add_to(std::vector<pollfd>* waiting) const {
  pending_.add_to(waiting);
  for (const Asker& asker : askers_)
    waiting->push_back({asker.connection->descriptor(), asker.connection->events(), 0});
}

void Standby::serve(std::optional<int> teller) {
  pending_.serve([&](const Handshake&, std::unique_ptr<Connection> connection) {
    askers_.push_back(
        {std::move(connection), ControlClock::now() + seconds(handshake_seconds(timeout_))});
  });
  const Moment now = ControlClock::now();
  for (auto asker = askers_.begin(); asker != askers_.end();) {
    Connection& connection = *asker->connection;
    bool stays = now < asker->until;
    try {
      connection.receive([](Frame&&) { fail("a rank asks twice"); });
    } catch (const Error&) {
      stays = false;
    }
    stays = stays && !connection.ended();
    if (stays && !asker->answered && teller) {
      connection.send(FrameWriter(FrameType::teller).number(*teller).finish());
      connection.finish();
      asker->answered = true;
      ++answers_;
    }
    asker = stays ? std::next(asker) : askers_.erase(asker);
  }
}

std::optional<int> ask_standby(const std::string& addresses, const std::string& token,
                               const Handshake& handshake, Moment until) {
  std::optional<int> teller;
  if (addresses.empty()) return teller;
  for (const HostPort& address : parse_addresses(addresses)) {
    std::string ignored;
    Socket socket = connect_to(address, until, &ignored);
    if (!socket) continue;
    Connection connection(std::move(socket), kMaxHandshake);
    bool asked = false;
    try {
      while (!teller && !connection.ended() && ControlClock::now() < until) {
        connection.flush();
        pollfd waiting{connection.descriptor(), connection.events(), 0};
        poll(&waiting, 1, milliseconds_until(until));
        connection.receive([&](const Frame& frame) {
          if (!asked) {
            ConnectionKeys keys;
            const Bytes question = answer_challenge(frame, token, handshake, &keys);
            connection.set_keys(std::move(keys));
            connection.send(question);
            asked = true;
            return;
          }
          require(frame.type == FrameType::teller, "this is no answer");
          teller = static_cast<int>(FrameFields(frame.payload).number());
        });
      }
    } catch (const Error&) {
      continue;  // something else listens there
    }
    if (teller) break;
  }
  return teller;
}

}  // namespace crema
