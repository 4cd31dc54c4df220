#include "tools/http/request.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>

#include "base/strings.h"

namespace crema {

namespace {

constexpr size_t kMostHeaders = 64;

bool is_token(std::string_view text) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           kMarks.find(c) != std::string_view::npos;
  });
}

// Bytes that end lines for some readers, or texts for others.
bool has_control_characters(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) < ' ' && c != '\t') || c == 127;
  });
}

std::optional<uint64_t> http_number(std::string_view text, int base = 10) {
  uint64_t number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (text.empty() || code != std::errc() || end != text.data() + text.size()) return {};
  return number;
}

std::string without_escapes(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const std::optional<uint64_t> code = http_number(text.substr(i + 1, 2), 16);
    if (!code || i + 2 >= text.size() || *code == 0)
      throw HttpRefusal(400, "the address has a wrong escape after %");
    out += static_cast<char>(*code);
    i += 2;
  }
  return out;
}

void parse_target(std::string_view target, ParsedRequest* request) {
  if (target.empty() || target[0] != '/' || has_control_characters(target))
    throw HttpRefusal(400, "the address does not begin with /");
  const size_t question = std::min(target.find('?'), target.size());
  request->path = without_escapes(target.substr(0, question));
  if (question == target.size()) return;
  for (const std::string& part : split(target.substr(question + 1), '&')) {
    const size_t equals = std::min(part.find('='), part.size());
    request->query[without_escapes(part.substr(0, equals))] =
        without_escapes(std::string_view(part).substr(std::min(equals + 1, part.size())));
  }
}

void parse_first_line(std::string_view line, ParsedRequest* request) {
  const size_t first = line.find(' '), last = line.rfind(' ');
  if (first == std::string_view::npos || first == last ||
      line.substr(first + 1, last - first - 1).find(' ') != std::string_view::npos ||
      !is_token(line.substr(0, first)))
    throw HttpRefusal(400, "the first line is not METHOD ADDRESS HTTP/1.1");
  const std::string_view version = line.substr(last + 1);
  if (version != "HTTP/1.1" && version != "HTTP/1.0")
    throw HttpRefusal(starts_with(version, "HTTP/") ? 505 : 400, "only HTTP/1.1 is spoken here");
  request->method = line.substr(0, first);
  request->stays = version == "HTTP/1.1";
  parse_target(line.substr(first + 1, last - first - 1), request);
}

void parse_header(std::string_view line, ParsedRequest* request) {
  const size_t colon = std::min(line.find(':'), line.size());
  if (colon == line.size() || !is_token(line.substr(0, colon)) || has_control_characters(line))
    throw HttpRefusal(400, "a header is not NAME: VALUE");
  const std::string name = lower_case(std::string(line.substr(0, colon)));
  const auto [at, added] = request->headers.emplace(name, trim(line.substr(colon + 1)));
  if (added) return;
  // For other headers the first value counts; nothing here reads them.
  for (const char* once : {"content-length", "transfer-encoding", "host", "content-type",
                           "content-encoding", "inference-header-content-length"}) {
    if (name == once) throw HttpRefusal(400, cat("there are several headers ", name));
  }
}

std::string_view body_of(std::string_view rest, const ParsedRequest& request, size_t max_body) {
  const bool has_length = request.headers.count("content-length") > 0;
  if (request.headers.count("transfer-encoding") > 0) {
    if (has_length)
      throw HttpRefusal(400, "Content-Length and Transfer-Encoding exclude each other");
    throw HttpRefusal(411, "bodies in chunks are not taken; send a Content-Length");
  }
  if (!has_length) {
    if (request.method == "POST" || request.method == "PUT")
      throw HttpRefusal(411, "Content-Length is missing");
    return {};
  }
  const std::string text = request.header("content-length");
  const bool digits = text.find_first_not_of("0123456789") == std::string::npos;
  if (text.empty() || !digits) throw HttpRefusal(400, "Content-Length is not a number");
  const std::optional<uint64_t> length = http_number(text);
  if (!length || *length > max_body)
    throw HttpRefusal(413,
                      cat("the body has more than ", max_body, " bytes; -max_body allows more"));
  if (*length > rest.size()) throw HttpRefusal(400, "the body is shorter than Content-Length");
  return rest.substr(0, *length);
}

const char* phrase_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 411:
      return "Length Required";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Error";
  }
}

}  // namespace

std::string ParsedRequest::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

ParsedRequest parse_request(std::string_view text, size_t max_body) {
  const size_t end = text.find("\r\n\r\n");
  if (end == std::string_view::npos) throw HttpRefusal(431, "the headers are too long");
  ParsedRequest request;
  std::string_view lines = text.substr(0, end + 2);
  const auto next = [&lines] {
    const size_t length = lines.find("\r\n");
    const std::string_view line = lines.substr(0, length);
    lines.remove_prefix(length + 2);
    return line;
  };
  parse_first_line(next(), &request);
  for (size_t count = 0; !lines.empty(); ++count) {
    if (count == kMostHeaders) throw HttpRefusal(431, "there are too many headers");
    parse_header(next(), &request);
  }
  const bool is_newer = request.stays;
  if (is_newer && request.headers.count("host") == 0) throw HttpRefusal(400, "Host is missing");
  request.body = body_of(text.substr(end + 4), request, max_body);
  const std::string encoding = lower_case(request.header("content-encoding"));
  if (!encoding.empty() && encoding != "identity")
    throw HttpRefusal(415, "compressed bodies are not taken");
  const std::string connection = lower_case(request.header("connection"));
  if (connection.find("close") != std::string::npos) request.stays = false;
  return request;
}

std::string http_response(int status, const std::string& type, std::string_view body, bool stays,
                          const std::string& headers) {
  std::string text =
      cat("HTTP/1.1 ", status, " ", phrase_of(status), "\r\nContent-Type: ", type,
          "\r\nContent-Length: ", body.size(), "\r\nConnection: ", stays ? "keep-alive" : "close",
          "\r\nX-Content-Type-Options: nosniff\r\nCross-Origin-Resource-Policy: same-origin\r\n"
          "Cache-Control: no-store\r\n",
          headers, "\r\n");
  text += body;
  return text;
}

}  // namespace crema
