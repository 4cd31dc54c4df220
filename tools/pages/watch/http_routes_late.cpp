#include <cstring>

#include "tools/pages/watch/http_routes.h"
// Last: it brings the names of the system's network headers.
#include <httplib.h>

namespace crema {
namespace {

using httplib::Request;
using httplib::Response;

// A request that has come, and the response to it.
class Exchange : public httplib::Stream {
 public:
  explicit Exchange(std::string request) : request_(std::move(request)) {}
  const std::string& response() const { return response_; }

  // As the library's versions declare them: newer ones have other names.
  // NOLINTBEGIN(modernize-use-override)
  bool is_readable() const { return true; }
  bool is_writable() const { return true; }
  bool wait_readable() const { return true; }
  bool wait_writable() const { return true; }
  time_t duration() const { return 0; }
  // NOLINTEND(modernize-use-override)
  socket_t socket() const override { return -1; }
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  ssize_t read(char* to, size_t size) override {
    const size_t count = std::min(size, request_.size() - at_);
    std::memcpy(to, request_.data() + at_, count);
    at_ += count;
    return static_cast<ssize_t>(count);
  }
  ssize_t write(const char* from, size_t size) override {
    response_.append(from, size);
    return static_cast<ssize_t>(size);
  }

 private:
  std::string request_, response_;
  size_t at_ = 0;
};

HttpRequest request_of(const Request& from) {
  return {from.get_header_value("Host"), {from.params.begin(), from.params.end()}};
}

void take(const HttpResponse& from, Response& to) {
  to.status = from.status;
  for (const auto& [name, value] : from.headers) to.set_header(name.c_str(), value);
  if (!from.type.empty()) to.set_content(from.body, from.type.c_str());
}

// Uses the library's parser and its routes without its sockets and threads, with which eight slow
// clients would block all others.
class Routes final : public HttpRoutes, private httplib::Server {
 public:
  explicit Routes(const HttpRules& rules) : rules_(rules) {
    set_payload_max_length(rules_.longest_body);
    set_pre_routing_handler([this](const Request& request, Response& response) {
      for (const auto& [name, value] : rules_.headers) response.set_header(name.c_str(), value);
      HttpResponse refusal;
      if (!rules_.refuse(request_of(request), refusal)) return HandlerResponse::Unhandled;
      take(refusal, response);
      return HandlerResponse::Handled;
    });
    set_post_routing_handler([this](const Request&, Response& response) {
      if (!response.has_header("Content-Security-Policy"))
        response.set_header("Content-Security-Policy", rules_.policy);
    });
    set_exception_handler([](const Request&, Response& response, std::exception_ptr thrown) {
      try {
        std::rethrow_exception(thrown);
      } catch (const std::exception& error) {
        response.status = 500;
        response.set_content(error.what() + std::string("\n"), "text/plain; charset=utf-8");
      }
    });
    set_error_handler([this](const Request&, Response& response) {
      if (response.body.empty())
        response.set_content(rules_.no_page + "\n", "text/plain; charset=utf-8");
    });
  }

  void get(const std::string& path, HttpHandler handler) override { Get(path, called(handler)); }
  void post(const std::string& path, HttpHandler handler) override { Post(path, called(handler)); }

  std::string response_to(const std::string& request) override {
    Exchange exchange(request);
    process(exchange);
    return exchange.response();
  }

 private:
  static Handler called(const HttpHandler& handler) {
    return [handler](const Request& request, Response& response) {
      HttpResponse made;
      handler(request_of(request), made);
      take(made, response);
    };
  }

  template <typename Stream>
  void process(Stream& stream) {
    bool closed = false;
    if constexpr (requires { process_request(stream, true, closed, nullptr); }) {
      process_request(stream, true, closed, nullptr);
    } else {  // newer versions ask for both ends
      process_request(stream, "", 0, "", 0, true, closed, nullptr);
    }
  }

  const HttpRules rules_;
};

}  // namespace

extern "C" HttpRoutes* crema_http_routes(const HttpRules& rules) { return new Routes(rules); }

}  // namespace crema
