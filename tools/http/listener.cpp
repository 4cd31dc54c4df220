#include "tools/http/listener.h"

#include <netdb.h>
#include <netinet/in.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "base/error.h"

namespace crema {
namespace connections {

Descriptor listener(const std::string& host, int port) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  int code = 0;
  if (getaddrinfo(host.c_str(), cat(port).c_str(), &hints, &found) == 0) {
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
    for (const addrinfo* at = found; at; at = at->ai_next) {
      Descriptor socket(::socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
      const int yes = 1;
      setsockopt(socket.number(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
      if (bind(socket.number(), at->ai_addr, at->ai_addrlen) == 0 &&
          listen(socket.number(), SOMAXCONN) == 0)
        return socket;
      code = errno;
    }
  }
  const bool port_is_at_fault = code == EADDRINUSE || code == EACCES;
  fail("cannot serve pages at ", host, ", port ", port,
       code != 0 ? cat(": ", std::strerror(code)) : "",
       port_is_at_fault ? "; another port: -port N, or a free one: -port 0"
                        : "; -host is an address of this machine, such as 127.0.0.1, or 0.0.0.0 "
                          "for all of them");
}

sockaddr_storage address_of(const Descriptor& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  require(getsockname(socket.number(), reinterpret_cast<sockaddr*>(&address), &size) == 0,
          "cannot find the address of the server: ", std::strerror(errno));
  return address;
}

int port_of(const sockaddr_storage& address) {
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                   : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

}  // namespace connections
}  // namespace crema
