#include "tools/pages/watch/watch_server.h"

#include "base/error.h"

#ifdef CREMA_HTTPLIB
#include <atomic>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/hmac.h"
#include "base/late_library.h"
#include "base/visible.h"
#include "tools/http/connections.h"
#include "tools/http/loopback.h"
#include "tools/pages/runs/run_texts.h"
#include "tools/pages/watch/http_routes.h"
#include "tools/pages/watch/live_pages.h"
#endif

namespace crema {

#ifdef CREMA_HTTPLIB

namespace {

using Request = HttpRequest;
using Response = HttpResponse;

constexpr int kSeeOther = 303, kForbidden = 403, kNotFound = 404, kConflict = 409, kBusy = 503;

// One more as long as it lives.
struct Counted {
  explicit Counted(std::atomic<int>& counter) : of(counter), before(counter++) {}
  ~Counted() { --of; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  std::atomic<int>& of;
  const int before;
};

// Nothing from other sites, no foreign script, and no frames.
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src "
    "'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
// A drawing is a separate file, with its style in it and no script.
constexpr const char* kPolicyOfDrawing =
    "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";

// The part of a request that the library sees: what the pages need. It would spend long on byte
// ranges, and unpack bodies.
std::string needed_of(const std::string& request) {
  std::string text = request.substr(0, request.find("\r\n")) + "\r\n";
  for (const char* name : {"Host", "Content-Type", "Content-Length", "Accept-Encoding"}) {
    if (const std::string value = header_in(request, name); !value.empty())
      text += cat(name, ": ", value, "\r\n");
  }
  const size_t end = request.find("\r\n\r\n");
  return text + "\r\n" + (end == std::string::npos ? "" : request.substr(end + 4));
}

// The versions that a page has: "charts:0123,log:4567".
std::string version_in(const std::string& have, const std::string& name) {
  for (const std::string& part : split(have, ',')) {
    if (starts_with(part, name + ":")) return part.substr(name.size() + 1);
  }
  return "";
}

void set_content(Response& response, const std::string& body, const char* type) {
  response.body = body;
  response.type = type;
}

void answer(Response& response, int status, const std::string& text) {
  response.status = status;
  set_content(response, text + "\n", "text/plain; charset=utf-8");
}

std::unique_ptr<HttpRoutes> load_routes(const HttpRules& rules) {
  static constinit LateLibrary library("libcrema_http.so");
  static constinit LateFunction<decltype(crema_http_routes)> make(library, "crema_http_routes");
  return std::unique_ptr<HttpRoutes>(make(rules));
}

}  // namespace

struct WatchServer::Server {
  Server(Log& to, const WatchOptions& of)
      : log(to),
        options(of),
        pages(of.folder),
        connections(of.host, of.port, [this](const std::string& request) {
          return http->response_to(needed_of(request));
        }) {}

  void route();
  LivePages::Question question_of(const Request& request) const;
  void page(const Request& request, Response& response);
  void parts(const Request& request, Response& response);
  void drawing(const Request& request, Response& response);
  void stop(const Request& request, Response& response);

  Log& log;
  const WatchOptions options;
  std::unique_ptr<HttpRoutes> http;
  std::mutex mutex;  // of pages
  LivePages pages;
  std::atomic<int> drawing_requests = 0;
  std::mutex drawing_mutex;  // of drawings; one is made at a time, as it takes all cores
  std::map<std::string, std::string> drawings;  // by the text of the net
  Connections connections;
};

LivePages::Question WatchServer::Server::question_of(const Request& request) const {
  LivePages::Question question;
  question.names = request.values("run");
  if (same_bytes(request.value("token"), options.token)) question.token = options.token;
  return question;
}

void WatchServer::Server::page(const Request& request, Response& response) {
  std::string html;
  const std::lock_guard<std::mutex> lock(mutex);
  if (!pages.page(question_of(request), &html))
    return answer(response, kNotFound, "There is no run of this name.");
  set_content(response, html, "text/html; charset=utf-8");
}

void WatchServer::Server::parts(const Request& request, Response& response) {
  std::vector<PagePart> now;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    if (!pages.parts(question_of(request), &now))
      return answer(response, kNotFound, "There is no run of this name.");
  }
  const std::string have = request.value("have");
  nlohmann::json changed = nlohmann::json::array();
  for (const PagePart& part : now) {
    const std::string version = version_of(part);
    if (version != version_in(have, part.name))
      changed.push_back({{"name", part.name}, {"version", version}, {"html", part.html}});
  }
  set_content(response, changed.dump(), "application/json");
}

void WatchServer::Server::drawing(const Request& request, Response& response) {
  RunTexts texts;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    const std::string folder = pages.folder_of_run(request.value("run"));
    if (!folder.empty()) texts = texts_in(folder);
  }
  if (texts.net.empty()) return answer(response, kNotFound, "There is no such net.");
  // No more than two at a time: there are other pages, too.
  constexpr int kMostAtOnce = 2;
  constexpr size_t kMostDrawings = 32;
  const Counted waiting(drawing_requests);
  if (waiting.before >= kMostAtOnce)
    return answer(response, kBusy, "Other nets are being drawn; try again in a few seconds.");
  const std::string key = (texts.own ? "own " : "") + texts.net;
  const std::lock_guard<std::mutex> lock(drawing_mutex);
  if (drawings.size() >= kMostDrawings && drawings.count(key) == 0) drawings.clear();
  const auto [at, added] = drawings.try_emplace(key);
  if (added) at->second = drawing_of(texts, log);
  if (at->second.empty()) return answer(response, kNotFound, "The net cannot be drawn.");
  response.headers.emplace_back("Content-Security-Policy", kPolicyOfDrawing);
  set_content(response, at->second, "image/svg+xml");
}

void WatchServer::Server::stop(const Request& request, Response& response) {
  const LivePages::Question question = question_of(request);
  if (question.token.empty())
    return answer(response, kForbidden,
                  "Stopping a run needs the token: open the address that `crema watch` printed.");
  const std::string name = question.names.empty() ? "" : question.names[0];
  const std::lock_guard<std::mutex> lock(mutex);
  switch (pages.stop(name)) {
    case LivePages::Stop::no_run:
      return answer(response, kNotFound, "There is no run of this name.");
    case LivePages::Stop::over:
      return answer(response, kConflict, "This run has ended.");
    case LivePages::Stop::no_folder:
      return answer(
          response, kConflict,
          "This run has no run folder: only runs started with -run can be stopped from here.");
    case LivePages::Stop::asked:
      break;
  }
  log.info("Asked to stop with a snapshot: " + visible(name));
  response.status = kSeeOther;
  response.headers.emplace_back("Location",
                                "/?run=" + url_text(name) + "&token=" + url_text(options.token));
}

void WatchServer::Server::route() {
  HttpRules rules;
  rules.longest_body = 64 << 10;
  rules.headers = {{"X-Content-Type-Options", "nosniff"},
                   {"Referrer-Policy", "no-referrer"},
                   {"Cross-Origin-Resource-Policy", "same-origin"},
                   {"Cache-Control", "no-store"}};
  rules.policy = kPolicy;
  rules.no_page = "There is no such page.";
  // Names of other hosts that lead here are how a page elsewhere would read these ones.
  const bool only_own = connections.is_local();
  rules.refuse = [only_own](const Request& request, Response& response) {
    if (!only_own || host_is_loopback(request.host)) return false;
    answer(response, kForbidden,
           "This server answers to localhost and addresses such as 127.0.0.1 only.");
    return true;
  };
  http = load_routes(rules);
  http->get("/", [this](const Request& in, Response& out) { page(in, out); });
  http->get("/parts", [this](const Request& in, Response& out) { parts(in, out); });
  http->get("/net.svg", [this](const Request& in, Response& out) { drawing(in, out); });
  http->post("/stop", [this](const Request& in, Response& out) { stop(in, out); });
  http->get("/crema.css", [](const Request&, Response& out) {
    set_content(out, page_style(), "text/css; charset=utf-8");
  });
  http->get("/crema.js", [](const Request&, Response& out) {
    set_content(out, std::string(page_script()) + live_script(), "text/javascript; charset=utf-8");
  });
}

WatchServer::WatchServer(Log& log, const WatchOptions& options)
    : server_(std::make_unique<Server>(log, options)) {
  server_->route();
}

WatchServer::~WatchServer() = default;
int WatchServer::port() const { return server_->connections.port(); }
void WatchServer::serve() { server_->connections.serve(); }
void WatchServer::stop() { server_->connections.stop(); }

#else

struct WatchServer::Server {};

WatchServer::WatchServer(Log&, const WatchOptions&) {
  fail(
      "this build of Crema has no cpp-httplib, which serves the pages: install it (Debian's "
      "libcpp-httplib-dev, or `bash data_scripts/setup.sh`) and configure and build again");
}
WatchServer::~WatchServer() = default;
int WatchServer::port() const { return 0; }
void WatchServer::serve() {}
void WatchServer::stop() {}

#endif

}  // namespace crema
