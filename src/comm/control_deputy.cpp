#include "comm/control_deputy.h"

#include "base/error.h"

namespace crema {

Deputy::Deputy(const ControlOptions& options, bool only_here)
    : timeout_(options.timeout),
      listening_(only_here ? listen_on("127.0.0.1", 0) : listen_anywhere()),
      guests_(Socket(listening_.socket), options) {
  constexpr size_t kMaxAddresses = 8;  // a hello is short
  std::vector<std::string> hosts;
  if (!only_here) hosts = own_addresses();
  if (hosts.size() > kMaxAddresses) hosts.resize(kMaxAddresses);
  hosts.emplace_back("127.0.0.1");
  for (const std::string& host : hosts)
    address_ += cat(address_.empty() ? "" : ",", host, ":", listening_.port);
}

void Deputy::add_to(std::vector<pollfd>* waiting) const {
  guests_.add_to(waiting);
  for (const Asker& asker : askers_)
    waiting->push_back({asker.connection->descriptor(), asker.connection->events(), 0});
}

void Deputy::serve(std::optional<int> teller) {
  guests_.serve([&](const Hello&, std::unique_ptr<Connection> connection) {
    askers_.push_back(
        {std::move(connection), ControlClock::now() + seconds(hello_seconds(timeout_))});
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

std::optional<int> ask_deputy(const std::string& addresses, const std::string& token,
                              const Hello& hello, Moment until) {
  std::optional<int> teller;
  if (addresses.empty()) return teller;
  for (const HostPort& address : parse_addresses(addresses)) {
    std::string ignored;
    Socket socket = connect_to(address, until, &ignored);
    if (!socket) continue;
    Connection connection(std::move(socket), kMaxHello);
    bool asked = false;
    try {
      while (!teller && !connection.ended() && ControlClock::now() < until) {
        connection.flush();
        pollfd waiting{connection.descriptor(), connection.events(), 0};
        poll(&waiting, 1, milliseconds_until(until));
        connection.receive([&](const Frame& frame) {
          if (!asked) {
            ConnectionKeys keys;
            const Bytes question = answer_challenge(frame, token, hello, &keys);
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
