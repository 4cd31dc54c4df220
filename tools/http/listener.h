// A socket that listens.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <utility>

namespace crema {
namespace connections {

class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  int number() const { return number_; }

 private:
  int number_;
};

// Listens at host and port, 0: a free one. Error that says what to do when it cannot.
Descriptor listener(const std::string& host, int port);
sockaddr_storage address_of(const Descriptor& socket);
int port_of(const sockaddr_storage& address);

}  // namespace connections
}  // namespace crema
