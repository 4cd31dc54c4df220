#include "tools/lsp/rpc.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/error.h"
#include "base/strings.h"

namespace crema {
namespace {

constexpr size_t kMostBytes = size_t{64} << 20;
constexpr int kParseError = -32700;

}  // namespace

bool RpcStream::fill() {
  char bytes[1 << 16];
  ssize_t count = 0;
  do {
    count = ::read(in_, bytes, sizeof bytes);
  } while (count < 0 && errno == EINTR);
  require(count >= 0, "cannot read from the editor: ", std::strerror(errno));
  buffer_.append(bytes, static_cast<size_t>(count));
  return count > 0;
}

std::optional<std::string> RpcStream::line() {
  size_t end = 0;
  while ((end = buffer_.find("\r\n")) == std::string::npos) {
    require(buffer_.size() < kMostBytes, "the editor's message has no header");
    if (!fill()) return std::nullopt;
  }
  std::string line = buffer_.substr(0, end);
  buffer_.erase(0, end + 2);
  return line;
}

std::optional<Json> RpcStream::read() {
  while (true) {
    size_t length = 0;
    bool has_length = false;
    while (true) {
      const std::optional<std::string> header = line();
      if (!header) return std::nullopt;
      if (header->empty()) break;
      constexpr std::string_view kLength = "content-length:";
      if (!starts_with(lower_case(*header), kLength)) continue;
      const std::string_view number = trim(std::string_view(*header).substr(kLength.size()));
      const auto result = std::from_chars(number.data(), number.data() + number.size(), length);
      has_length = result.ec == std::errc() && result.ptr == number.data() + number.size();
    }
    require(has_length && length <= kMostBytes, "the editor's message has ",
            has_length ? "more than 64 MiB" : "no Content-Length: this is no editor");
    while (buffer_.size() < length) {
      if (!fill()) return std::nullopt;
    }
    Json message = Json::parse(
        buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(length), nullptr, false);
    buffer_.erase(0, length);
    if (message.is_object()) return message;
    write({{"jsonrpc", "2.0"},
           {"id", nullptr},
           {"error", {{"code", kParseError}, {"message", "expected a JSON object"}}}});
  }
}

bool RpcStream::has_more(int milliseconds) const {
  if (!buffer_.empty()) return true;
  pollfd one{in_, POLLIN, 0};
  return poll(&one, 1, milliseconds) > 0;
}

void RpcStream::write(const Json& message) {
  // Texts of files may have any bytes.
  const std::string body = message.dump(-1, ' ', false, Json::error_handler_t::replace);
  const std::string all = cat("Content-Length: ", body.size(), "\r\n\r\n", body);
  for (size_t done = 0; done < all.size();) {
    const ssize_t count = ::write(out_, all.data() + done, all.size() - done);
    if (count < 0 && errno == EINTR) continue;
    require(count > 0, "cannot write to the editor: ", std::strerror(errno));
    done += static_cast<size_t>(count);
  }
}

}  // namespace crema
