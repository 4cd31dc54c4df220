#include "tools/http/connection.h"

#include <strings.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "base/strings.h"

namespace crema {

std::string header_in(const std::string& request, const std::string& name) {
  const size_t end = std::min(request.find("\r\n\r\n"), request.size());
  for (size_t at = request.find("\r\n"); at < end; at = request.find("\r\n", at + 2)) {
    const std::string_view line =
        std::string_view(request).substr(at + 2, request.find("\r\n", at + 2) - at - 2);
    if (line.size() > name.size() && line[name.size()] == ':' &&
        strncasecmp(line.data(), name.data(), name.size()) == 0)
      return std::string(trim(line.substr(name.size() + 1)));
  }
  return "";
}

namespace connections {

// Also true for a request that is too long: nobody reads the rest. A body in chunks has no length
// that is known here: the request ends with its headers.
bool Connection::is_complete(const ConnectionLimits& limits) {
  const std::string ends = "\r\n\r\n";
  if (whole == 0) {
    const size_t end = text.find(ends, searched - std::min(searched, ends.size() - 1));
    searched = text.size();
    if (end == std::string::npos) return text.size() >= std::min(limits.headers, limits.request);
    const unsigned long long body =
        std::strtoull(header_in(text, "Content-Length").c_str(), nullptr, 10);
    whole = end + ends.size() + static_cast<size_t>(std::min(body, 1ULL << 40));
  }
  return text.size() >= whole || whole > limits.request;
}

// curl waits for a second before it sends a body of more than a MiB.
bool Connection::waits_for_continue() const {
  return whole > 0 && strcasecmp(header_in(text, "Expect").c_str(), "100-continue") == 0;
}

}  // namespace connections
}  // namespace crema
