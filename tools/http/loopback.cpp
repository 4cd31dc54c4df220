#include "tools/http/loopback.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <strings.h>

#include <algorithm>
#include <cstring>

namespace crema {

namespace {

bool is_loopback_v4(const in_addr& address) { return ntohl(address.s_addr) >> 24 == 127; }

bool is_loopback_v6(const in6_addr& address) {
  in_addr v4{};
  std::memcpy(&v4, &address.s6_addr[12], sizeof v4);
  return IN6_IS_ADDR_LOOPBACK(&address) || (IN6_IS_ADDR_V4MAPPED(&address) && is_loopback_v4(v4));
}

bool is_port(const std::string& text) {
  return text.empty() || (text[0] == ':' && text.size() <= 6 &&
                          text.find_first_not_of("0123456789", 1) == std::string::npos);
}

}  // namespace

bool is_loopback(const sockaddr& address) {
  if (address.sa_family == AF_INET)
    return is_loopback_v4(reinterpret_cast<const sockaddr_in&>(address).sin_addr);
  return address.sa_family == AF_INET6 &&
         is_loopback_v6(reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
}

bool host_is_loopback(const std::string& host) {
  if (!host.empty() && host[0] == '[') {
    const size_t end = host.find(']');
    in6_addr address{};
    return end != std::string::npos && is_port(host.substr(end + 1)) &&
           inet_pton(AF_INET6, host.substr(1, end - 1).c_str(), &address) == 1 &&
           is_loopback_v6(address);
  }
  const size_t colon = std::min(host.find(':'), host.size());
  if (!is_port(host.substr(colon))) return false;
  const std::string name = host.substr(0, colon);
  in_addr address{};
  return strcasecmp(name.c_str(), "localhost") == 0 ||
         (inet_pton(AF_INET, name.c_str(), &address) == 1 && is_loopback_v4(address));
}

}  // namespace crema
