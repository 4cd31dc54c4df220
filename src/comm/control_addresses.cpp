// The addresses of this machine.
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <tuple>

#include "base/strings.h"
#include "comm/control.h"

namespace crema {
namespace {

// Networks between a machine and its own containers and virtual machines: no other machine is in
// them.
bool is_of_containers(const std::string& name) {
  constexpr std::array<const char*, 13> kPrefixes = {"docker", "br-",     "virbr", "veth",   "cni",
                                                     "cali",   "flannel", "vxlan", "podman", "lxc",
                                                     "lxdbr",  "tun",     "tap"};
  return std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [&](const char* prefix) { return starts_with(name, prefix); });
}

// In Mbit/s; InfiniBand, which reports none, ranks as the fastest.
int64_t speed_of(const std::string& name) {
  const std::string folder = "/sys/class/net/" + name;
  int64_t speed = -1;
  if (std::ifstream file(folder + "/speed"); file >> speed && speed > 0) return speed;
  constexpr int kInfiniband = 32;  // ARPHRD_INFINIBAND
  int type = 0;
  if (std::ifstream file(folder + "/type"); file >> type && type == kInfiniband) return 100000;
  return 0;
}

struct Own {
  bool ipv6 = false, of_containers = false;
  int64_t speed = 0;
  std::string address;
};

std::string text_of(const sockaddr* address) {
  const bool ipv6 = address->sa_family == AF_INET6;
  std::array<char, NI_MAXHOST> text{};
  getnameinfo(address, ipv6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in), text.data(), text.size(),
              nullptr, 0, NI_NUMERICHOST);
  return text.data();
}

// Link-local addresses only need the name of the interface, a different one on each side.
bool is_link_local(const sockaddr* address) {
  return address->sa_family == AF_INET6 &&
         IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
}

}  // namespace

std::vector<std::string> own_addresses() {
  std::vector<Own> found;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) == 0) {
    for (const ifaddrs* at = all; at; at = at->ifa_next) {
      const sockaddr* const address = at->ifa_addr;
      if (!address || (address->sa_family != AF_INET && address->sa_family != AF_INET6)) continue;
      if (!(at->ifa_flags & IFF_UP) || (at->ifa_flags & IFF_LOOPBACK) || is_link_local(address))
        continue;
      found.push_back({address->sa_family == AF_INET6, is_of_containers(at->ifa_name),
                       speed_of(at->ifa_name), text_of(address)});
    }
    freeifaddrs(all);
  }
  std::stable_sort(found.begin(), found.end(), [](const Own& a, const Own& b) {
    return std::tuple(a.of_containers, -a.speed) < std::tuple(b.of_containers, -b.speed);
  });
  const bool ipv4 = std::any_of(found.begin(), found.end(),
                                [](const Own& own) { return !own.ipv6 && !own.of_containers; });
  std::vector<std::string> addresses;
  for (const Own& own : found) {
    if (!own.ipv6 || !ipv4) addresses.push_back(own.address);
  }
  if (addresses.empty()) addresses.emplace_back("127.0.0.1");
  return addresses;
}

}  // namespace crema
