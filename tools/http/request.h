// A strict parser of HTTP requests, for servers that answer programs. What two readers could
// understand differently is refused: that is how requests are smuggled past a proxy.
#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <string_view>

namespace crema {

// Ends a request with this status; what() is for the client.
struct HttpRefusal : std::runtime_error {
  HttpRefusal(int code, const std::string& text) : std::runtime_error(text), status(code) {}
  int status;
};

struct ParsedRequest {
  std::string method, path;                    // the path without escapes
  std::map<std::string, std::string> query;    // without escapes
  std::map<std::string, std::string> headers;  // names in lower case
  std::string_view body;                       // part of the text that was parsed
  bool stays = false;                          // the client may send another request

  // "": there is none.
  std::string header(const std::string& name) const;
};

// `text` is a request as Connections delivers it. HttpRefusal for what is no request, ends before
// its headers (431), has a body in chunks (411) or a body of more than `max_body` bytes (413).
ParsedRequest parse_request(std::string_view text, size_t max_body);

// A whole response. `headers`: further lines, each with its end.
std::string http_response(int status, const std::string& type, std::string_view body, bool stays,
                          const std::string& headers = "");

}  // namespace crema
