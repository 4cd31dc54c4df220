// Connections of a small server: one thread reads requests and writes answers as fast as each client
// takes part, a few others compute the answers. A slow client occupies no thread and only for a time.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace crema {

struct ConnectionLimits {
  // At a time. One more closes the oldest that is not being answered; while more than half have asked
  // nothing yet, the oldest of these.
  size_t connections = 128;
  size_t request = size_t{80} << 10;  // bytes, headers and body; a longer one is not read further
  size_t headers = size_t{80} << 10;  // bytes of the headers alone
  // Bytes of requests that are being read or wait for a thread; more close the oldest being read.
  size_t requests = size_t{64} << 20;
  size_t answers =
      size_t{64} << 20;  // bytes that wait to be sent; more close the oldest connection
  std::chrono::milliseconds to_ask{5000};      // from the connection to the whole request
  std::chrono::milliseconds to_listen{30000};  // from the answer to its last byte
  // How long a connection may wait for its next request; 0: it is closed after the first answer.
  std::chrono::milliseconds to_ask_again{0};
  size_t threads = 4;
};

class Connections {
  struct State;

 public:
  // Sends the response to a request, from any thread. Without a response, the connection is closed
  // when the last Reply of the request is destroyed.
  class Reply {
   public:
    Reply(std::shared_ptr<State> state, uint64_t to, bool late)
        : state_(std::move(state)), to_(to), late_(late) {}
    ~Reply();
    Reply(Reply&& other) noexcept = default;
    Reply& operator=(Reply&& other) noexcept;
    // Whether the request was complete only after finish().
    bool is_late() const { return late_; }
    // "": just close. `stays`: another request may follow on this connection.
    void operator()(std::string response, bool stays = false);

   private:
    std::shared_ptr<State> state_;  // null: answered
    uint64_t to_;
    bool late_;
  };

  // Gets each complete HTTP request, in several threads concurrently, and answers now or later.
  using Handler = std::function<void(std::string request, Reply reply)>;
  // From a request to the whole response. "": just close.
  using Answer = std::function<std::string(const std::string& request)>;

  // Listens at host and port, 0: a free one. Error when it cannot.
  Connections(const std::string& host, int port, Handler handler,
              const ConnectionLimits& limits = {});
  Connections(const std::string& host, int port, const Answer& answer,
              const ConnectionLimits& limits = {});
  ~Connections();
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  int port() const;
  // Whether only this machine can reach it, judged by its address, not by its name.
  bool is_local() const;
  // Answers until stop() or finish(), which may come before and from any thread.
  void serve();
  // Requests that are being answered then get no answer, but Handlers that run are waited for.
  void stop();
  // Accepts no more connections, and lets serve() return when every request has its answer: those that
  // have come, and those that come on open connections within kToEnd.
  void finish();
  static constexpr std::chrono::milliseconds kToEnd{500};

 private:
  std::shared_ptr<State> state_;
};

// The value of a header of a request, without blanks around it; "": there is none. For what must be
// known before a library parses the request.
std::string header_in(const std::string& request, const std::string& name);

}  // namespace crema
