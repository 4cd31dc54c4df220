// The sockets of the control connection. None of them blocks in a call, and none is inherited by
// programs that this one starts.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "comm/control.h"
#include "comm/control_frames.h"
#include "comm/control_keys.h"

namespace crema {

using ControlClock = std::chrono::steady_clock;
using Moment = ControlClock::time_point;
ControlClock::duration seconds(double count);
// For poll(), rounded up; 0 when `moment` is past.
int milliseconds_until(Moment moment);

class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();
  int get() const { return descriptor_; }
  int release() { return std::exchange(descriptor_, -1); }
  explicit operator bool() const { return descriptor_ >= 0; }

 private:
  int descriptor_ = -1;
};

struct HostPort {
  std::string host;
  int port = 0;
};
// "host:port,host:port", also "[::1]:port"; Error names a part that is neither.
std::vector<HostPort> parse_addresses(const std::string& addresses);
bool is_loopback(const std::string& host);

// Listens on a port of this machine, 0 for any free one, at the address of `host`, "" for all.
Listening listen_on(const std::string& host, int port);

// A connection, made by `until`. None: why not is in `reason`.
Socket connect_to(const HostPort& address, Moment until, std::string* reason);
// The next one that waits at a listening socket, or none.
Socket accept_next(const Socket& listening);
// "10.0.0.7:41234": who has made a connection, as the system knows it.
std::string other_end(int socket);

// Frames in both directions.
class Connection {
 public:
  Connection(Socket socket, size_t max_payload);

  int descriptor() const { return socket_.get(); }
  short events() const;  // events for poll() to wait for
  void allow(size_t max_payload) { reader_.allow(max_payload); }
  // From here on frames have codes made with these.
  void set_keys(ConnectionKeys keys) { keys_ = std::move(keys); }

  void send(const Bytes& frame);
  // Sends as much as the socket accepts now.
  void flush();
  bool sends() const { return !queue_.empty(); }
  // Nothing more will be sent after the queued data: the other side reads the end.
  void finish();

  // Gives `handle` the frames that have come; returns whether any bytes have. Error when they are
  // no frames, or not from who has the keys.
  bool receive(const std::function<void(Frame&&)>& handle);
  // No more data will come: the other side has closed or finished, or the connection is broken.
  bool ended() const { return ended_; }
  bool inside_frame() const { return reader_.inside_frame(); }

 private:
  Socket socket_;
  FrameReader reader_;
  ConnectionKeys keys_;
  struct Queued {
    Bytes frame;
    std::string code;
  };
  std::deque<Queued> queue_;
  size_t sent_ = 0;  // bytes sent of the first in the queue
  bool finishing_ = false, finished_ = false, ended_ = false;
};

}  // namespace crema
