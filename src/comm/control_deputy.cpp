#include "comm/control_deputy.h"

#include "base/error.h"

namespace crema {

Bytes frame_of(const Hello& hello) {
  return FrameWriter(FrameType::hello)
      .text(kHelloMagic)
      .number(hello.ranks)
      .number(hello.rank)
      .text(hello.token)
      .text(hello.host)
      .text(hello.deputy)
      .finish();
}

Hello read_hello(const Frame& frame) {
  FrameFields fields(frame.payload);
  require(frame.type == FrameType::hello && fields.text() == kHelloMagic, "this is no hello");
  Hello hello;
  hello.ranks = fields.number();
  hello.rank = fields.number();
  hello.token = fields.text();
  hello.host = fields.text();
  hello.deputy = fields.text();
  return hello;
}

Deputy::Deputy(const std::string& token, bool only_here) : token_(token) {
  const Listening listening = only_here ? listen_on("127.0.0.1", 0) : listen_anywhere();
  listening_ = Socket(listening.socket);
  constexpr size_t kMaxAddresses = 8;  // a hello is short
  std::vector<std::string> hosts;
  if (!only_here) hosts = own_addresses();
  if (hosts.size() > kMaxAddresses) hosts.resize(kMaxAddresses);
  hosts.emplace_back("127.0.0.1");
  for (const std::string& host : hosts)
    address_ += cat(address_.empty() ? "" : ",", host, ":", listening.port);
}

void Deputy::add_to(std::vector<pollfd>* waiting) const {
  waiting->push_back({listening_.get(), POLLIN, 0});
  for (const Guest& guest : guests_)
    waiting->push_back({guest.connection.descriptor(), guest.connection.events(), 0});
}

void Deputy::serve(std::optional<int> teller) {
  while (Socket guest = accept_next(listening_))
    guests_.push_back({Connection(std::move(guest), kMaxHello)});
  for (auto guest = guests_.begin(); guest != guests_.end();) {
    bool stays = true;
    try {
      guest->connection.receive([&](const Frame& frame) {
        require(read_hello(frame).token == token_, "of another run");
        guest->asks = true;
      });
    } catch (const Error&) {
      stays = false;
    }
    stays = stays && !guest->connection.ended();
    if (stays && guest->asks && !guest->answered && teller) {
      guest->connection.send(FrameWriter(FrameType::teller).number(*teller).finish());
      guest->connection.finish();
      guest->answered = true;
      ++answers_;
    }
    guest = stays ? std::next(guest) : guests_.erase(guest);
  }
}

std::optional<int> ask_deputy(const std::string& addresses, const Hello& hello, Moment until) {
  std::optional<int> teller;
  if (addresses.empty()) return teller;
  for (const HostPort& address : parse_addresses(addresses)) {
    std::string ignored;
    Socket socket = connect_to(address, until, &ignored);
    if (!socket) continue;
    Connection connection(std::move(socket), kMaxHello);
    connection.send(frame_of(hello));
    try {
      while (!teller && !connection.ended() && ControlClock::now() < until) {
        connection.flush();
        pollfd waiting{connection.descriptor(), connection.events(), 0};
        poll(&waiting, 1, milliseconds_until(until));
        connection.receive([&](const Frame& frame) {
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
