// HttpRoutes: parses requests and finds their handlers, by cpp-httplib. It is a library of its own,
// libcrema_http.so, which `crema watch` loads: OpenSSL and Brotli, which that brings along, would
// delay the start of every other verb.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace crema {

struct HttpRequest {
  std::string host;
  std::multimap<std::string, std::string> parameters;  // from the address and from a form

  // All values of a parameter; the first one, or "".
  std::vector<std::string> values(const std::string& name) const {
    std::vector<std::string> found;
    const auto [begin, end] = parameters.equal_range(name);
    for (auto at = begin; at != end; ++at) found.push_back(at->second);
    return found;
  }
  std::string value(const std::string& name) const {
    const auto found = parameters.find(name);
    return found == parameters.end() ? "" : found->second;
  }
};

struct HttpResponse {
  int status = 200;
  std::string body, type;
  std::vector<std::pair<std::string, std::string>> headers;
};

using HttpHandler = std::function<void(const HttpRequest&, HttpResponse&)>;

// What holds for all responses.
struct HttpRules {
  size_t longest_body = 0;  // of requests
  std::vector<std::pair<std::string, std::string>> headers;
  std::string policy;   // the Content-Security-Policy where a handler sets none
  std::string no_page;  // the text where there is no handler
  // Fills the response and returns true for requests that no handler gets.
  std::function<bool(const HttpRequest&, HttpResponse&)> refuse;
};

class HttpRoutes {
 public:
  virtual ~HttpRoutes() = default;
  virtual void get(const std::string& path, HttpHandler handler) = 0;
  virtual void post(const std::string& path, HttpHandler handler) = 0;
  // The whole response to a whole request. An exception of a handler becomes status 500.
  virtual std::string response_to(const std::string& request) = 0;
};

// The entry point of the library.
extern "C" HttpRoutes* crema_http_routes(const HttpRules& rules);

}  // namespace crema
