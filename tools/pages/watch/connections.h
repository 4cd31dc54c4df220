// Connections of a small server: one thread reads requests and writes answers as fast as each client
// takes part, a few others compute the answers. A slow client occupies no thread and only for a time.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace crema {

struct ConnectionLimits {
  size_t connections = 128;  // at a time; one more closes the oldest that is not being answered
  size_t request = size_t{80} << 10;  // bytes, headers and body
  size_t answers =
      size_t{64} << 20;  // bytes that wait to be sent; more close the oldest connection
  std::chrono::milliseconds to_ask{5000};      // from the connection to the whole request
  std::chrono::milliseconds to_listen{30000};  // from the answer to its last byte
  size_t threads = 4;
};

class Connections {
 public:
  // From a complete HTTP request to the whole response, in several threads concurrently. "": just
  // close.
  using Answer = std::function<std::string(const std::string& request)>;

  // Listens at host and port, 0: a free one. Error when it cannot.
  Connections(const std::string& host, int port, Answer answer,
              const ConnectionLimits& limits = {});
  ~Connections();
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  int port() const;
  // Whether only this machine can reach it, judged by its address, not by its name.
  bool is_local() const;
  // Answers until stop(), which may come before and from any thread. Requests that are being answered
  // then get no answer, but are waited for.
  void serve();
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The value of a header of a request, without blanks around it; "": there is none. For what must be
// known before a library parses the request.
std::string header_in(const std::string& request, const std::string& name);

}  // namespace crema
