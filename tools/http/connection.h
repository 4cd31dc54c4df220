// One connection of Connections, and how much of its request has come.
#pragma once

#include <chrono>
#include <string>

#include "tools/http/connections.h"
#include "tools/http/listener.h"

namespace crema {
namespace connections {

using Clock = std::chrono::steady_clock;

struct Connection {
  // asks: its request is read; waits: it is computed; listens: the answer is sent; leaves: further
  // input is dropped, because closing immediately could destroy the answer on its way.
  enum class Phase { asks, waits, listens, leaves };
  Descriptor socket;
  uint64_t number = 0;
  Clock::time_point deadline;
  Phase phase = Phase::asks;
  std::string text{};   // the request, then the answer
  std::string later{};  // the beginning of the next request
  size_t whole = 0;     // bytes of the request; 0: not known yet
  size_t searched = 0;  // bytes that do not have the end of the headers
  size_t sent = 0;
  size_t event = 0;       // its position among the events; 0: it has none
  bool stays = false;     // after the answer
  bool answered = false;  // one of its requests

  bool is_complete(const ConnectionLimits& limits);
  bool waits_for_continue() const;
};

}  // namespace connections
}  // namespace crema
