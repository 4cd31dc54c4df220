// Addresses that only this machine can reach, and the names that browsers know them by.
#pragma once

#include <sys/socket.h>

#include <string>

namespace crema {

// 127.0.0.0/8 and ::1, also as ::ffff:127.0.0.1.
bool is_loopback(const sockaddr& address);

// Whether a Host header, such as "localhost:8080" or "[::1]", names a loopback address by number or as
// localhost. Any other name may belong to a site that points it here (DNS rebinding).
bool host_is_loopback(const std::string& host);

}  // namespace crema
