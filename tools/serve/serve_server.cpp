#include "tools/serve/serve_server.h"

#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/error.h"
#include "data/images/image_header.h"
#include "tools/http/connections.h"
#include "tools/http/loopback.h"
#include "tools/http/request.h"
#include "tools/serve/batcher.h"
#include "tools/serve/serve_metrics.h"
#include "tools/serve/serve_page.h"
#include "tools/serve/tensor_json.h"

namespace crema {

namespace {

using ServeClock = std::chrono::steady_clock;

constexpr const char* kJsonType = "application/json";
// Nothing from other sites, no foreign script, and no frames.
constexpr const char* kServePolicy =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src "
    "blob: "
    "data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n"
    "Referrer-Policy: no-referrer\r\n";
// 192 MiB when decoded; a file of a few kilobytes may claim to hold more.
constexpr int64_t kMostPixels = int64_t{1} << 26;

// As many connections as the process may have files, up to a bound.
size_t raise_connection_limit() {
  constexpr rlim_t kMostConnections = 4096, kOtherFiles = 128;
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return 128;
  const rlim_t wanted = kMostConnections + kOtherFiles;
  if (files.rlim_cur < wanted) {
    files.rlim_cur = std::min(wanted, files.rlim_max);
    setrlimit(RLIMIT_NOFILE, &files);
  }
  const rlim_t own = std::min(files.rlim_cur, wanted);
  return static_cast<size_t>(std::max(own, 2 * kOtherFiles) - kOtherFiles);
}

ConnectionLimits serve_limits(const ServeOptions& options) {
  constexpr size_t kHeaders = size_t{16} << 10;
  ConnectionLimits limits;
  limits.connections = raise_connection_limit();
  limits.headers = kHeaders;
  limits.request = options.max_body + kHeaders;
  limits.requests = std::max(size_t{256} << 20, 4 * options.max_body);
  limits.answers = size_t{256} << 20;
  limits.to_ask = std::chrono::seconds(10);
  limits.to_ask_again = std::chrono::seconds(60);
  limits.threads = 4;
  return limits;
}

size_t size_from(const std::string& text, size_t most, const std::string& name) {
  size_t number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc() || end != text.data() + text.size() || number > most)
    throw HttpRefusal(400, cat(name, " is \"", text, "\"; expected a number from 0 to ", most));
  return number;
}

PictureLimits limits_from(const std::map<std::string, std::string>& query,
                          const PictureResultInfo& result) {
  constexpr size_t kMostClasses = 1000;
  for (const auto& [name, value] : query) {
    if (name != result.setting)
      throw HttpRefusal(400,
                        cat(result.action, " has no setting \"", name, "\"; it takes ",
                            result.setting.empty() ? "none" : cat("?", result.setting, "=NUMBER")));
  }
  PictureLimits limits;
  if (const auto top = query.find("top"); top != query.end())
    limits.top = size_from(top->second, kMostClasses, "top");
  if (const auto score = query.find("score"); score != query.end()) {
    const std::string& text = score->second;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), limits.score);
    if (code != std::errc() || end != text.data() + text.size() || !(limits.score >= 0))
      throw HttpRefusal(400, cat("score is \"", text, "\"; expected a number from 0 up"));
  }
  return limits;
}

}  // namespace

struct ServeServer::Server {
  struct Served {
    Served(const ServedModelOptions& options, const ServeOptions& of, ServeMetrics& metrics,
           ProgramLog& log)
        : model(options, log),
          batcher(model, {.delay = options.batch > 1 ? of.delay : std::chrono::microseconds(0)},
                  [this, &metrics](int64_t n) { metrics.add_pass(model.name(), n); }) {}
    ServedModel model;
    Batcher batcher;
  };
  // A request on its way to its answer.
  struct Exchange {
    Connections::Reply reply;
    bool stays;
    Served* served = nullptr;  // null: about no model
    ServeClock::time_point begin = ServeClock::now();
  };

  Server(const ServeOptions& of, ProgramLog& log);
  void handle(const std::string& text, Connections::Reply reply);
  void route(const ParsedRequest& request, Exchange* exchange);
  void about_model(const ParsedRequest& request, const std::string& path, Exchange* exchange);
  void infer(const ParsedRequest& request, Exchange* exchange);
  // The answer to a picture.
  void look(const ParsedRequest& request, PictureResult wanted, Exchange* exchange);
  void answer(Exchange* exchange, int status, const std::string& type, std::string_view body,
              const std::string& headers = "");
  void answer_json(Exchange* exchange, const std::string& json) {
    answer(exchange, 200, kJsonType, json);
  }
  // HttpRefusal if a pass of this model, or nullptr: of any, cannot succeed.
  void check_ready(const Served* only) const;
  std::string metrics_text() const;
  std::string model_names() const;

  const ServeOptions options;
  ServeMetrics metrics;
  Connections connections;  // listens before models are opened, which takes longer
  const bool only_own;
  std::vector<std::unique_ptr<Served>> models;
};

ServeServer::Server::Server(const ServeOptions& of, ProgramLog& log)
    : options(of),
      connections(of.host, of.port,
                  Connections::Handler([this](const std::string& text, Connections::Reply reply) {
                    handle(text, std::move(reply));
                  }),
                  serve_limits(of)),
      only_own(connections.is_local()) {
  for (const ServedModelOptions& model : of.models)
    models.push_back(std::make_unique<Served>(model, of, metrics, log));
}

void ServeServer::Server::answer(Exchange* exchange, int status, const std::string& type,
                                 std::string_view body, const std::string& headers) {
  const std::string name = exchange->served ? exchange->served->model.name() : "";
  metrics.add_request(name, status);
  if (exchange->served) {
    const std::chrono::duration<double> seconds = ServeClock::now() - exchange->begin;
    metrics.add_latency(name, seconds.count());
  }
  exchange->reply(http_response(status, type, body, exchange->stays, headers), exchange->stays);
}

void ServeServer::Server::handle(const std::string& text, Connections::Reply reply) {
  Exchange exchange{std::move(reply), false};
  const auto refuse = [&](int status, const std::string& message) {
    answer(&exchange, status, kJsonType, json_error(message),
           status == 503 ? "Retry-After: 1\r\n" : "");
  };
  try {
    const ParsedRequest request = parse_request(text, options.max_body);
    if (exchange.reply.is_late()) throw HttpRefusal(503, "the server is ending");
    // Names of other hosts that lead here are how a page elsewhere would read answers.
    if (only_own && !host_is_loopback(request.header("host")))
      throw HttpRefusal(403,
                        "this server answers to localhost and addresses such as 127.0.0.1 only");
    exchange.stays = request.stays;
    route(request, &exchange);
  } catch (const HttpRefusal& refusal) {
    refuse(refusal.status, refusal.what());
  } catch (const std::exception& error) {
    refuse(500, error.what());
  }
}

std::string ServeServer::Server::model_names() const {
  std::vector<std::string> names;
  for (const auto& one : models) names.push_back(one->model.name());
  return join(names, ", ");
}

void ServeServer::Server::check_ready(const Served* only) const {
  for (const auto& one : models) {
    if ((!only || only == one.get()) && !one->batcher.works())
      throw HttpRefusal(503, cat("the GPU of \"", one->model.name(), "\" is lost; start again"));
  }
}

std::string ServeServer::Server::metrics_text() const {
  std::vector<std::pair<std::string, size_t>> queues;
  for (const auto& one : models) queues.emplace_back(one->model.name(), one->batcher.waiting());
  return metrics.text(queues);
}

void ServeServer::Server::route(const ParsedRequest& request, Exchange* exchange) {
  const std::string& path = request.path;
  const bool posts = request.method == "POST";
  if (!posts && request.method != "GET") throw HttpRefusal(405, "only GET and POST are taken");
  if (starts_with(path, "/v2/models/")) return about_model(request, path.substr(11), exchange);
  if (posts) throw HttpRefusal(404, cat("nothing is posted to ", path));
  if (path == "/v2/health/live") return answer_json(exchange, R"({"live":true})");
  if (path == "/v2/health/ready") {
    check_ready(nullptr);
    return answer_json(exchange, R"({"ready":true})");
  }
  if (path == "/v2" || path == "/v2/")
    return answer_json(exchange, R"({"name":"crema","version":")" CREMA_VERSION
                                 R"(","extensions":["binary_tensor_data"]})");
  if (path == "/v2/models") {
    std::vector<std::string> names;
    for (const auto& one : models) names.push_back(json_text(one->model.name()));
    return answer_json(exchange, cat(R"({"models":[)", join(names, ","), "]}"));
  }
  if (path == "/metrics")
    return answer(exchange, 200, "text/plain; version=0.0.4; charset=utf-8", metrics_text());
  if (path == "/crema.css") return answer(exchange, 200, "text/css; charset=utf-8", serve_style());
  if (path == "/crema.js")
    return answer(exchange, 200, "text/javascript; charset=utf-8", serve_script());
  if (path != "/") throw HttpRefusal(404, cat("there is no ", path));
  std::vector<const ServedModel*> shown;
  for (const auto& one : models) shown.push_back(&one->model);
  answer(exchange, 200, "text/html; charset=utf-8", serve_page(shown), kServePolicy);
}

// path: NAME, NAME/ready, NAME/infer, NAME/classify, NAME/detect, NAME/segment, or NAME/versions/1/...
void ServeServer::Server::about_model(const ParsedRequest& request, const std::string& path,
                                      Exchange* exchange) {
  const size_t slash = std::min(path.find('/'), path.size());
  const std::string name = path.substr(0, slash);
  std::string action = path.substr(slash);
  const auto found = std::find_if(models.begin(), models.end(),
                                  [&](const auto& one) { return one->model.name() == name; });
  if (found == models.end())
    throw HttpRefusal(404, cat("there is no model \"", name, "\"; there are: ", model_names()));
  exchange->served = found->get();
  const std::string version = "/versions/1";
  if (action == version || starts_with(action, version + "/")) action.erase(0, version.size());
  const bool posts = request.method == "POST";
  const auto* const asked =
      std::find_if(kPictureResults.begin(), kPictureResults.end(),
                   [&](const PictureResultInfo& one) { return action == cat("/", one.action); });
  const bool has_action = action == "/infer" || asked != kPictureResults.end();
  if (!has_action && !action.empty() && action != "/ready")
    throw HttpRefusal(404, cat("there is no ", request.path));
  if (posts != has_action)
    throw HttpRefusal(405, cat(request.path, " takes ", has_action ? "POST" : "GET"));
  if (action == "/ready") check_ready(exchange->served);
  if (action == "/infer") return infer(request, exchange);
  if (asked != kPictureResults.end()) return look(request, asked->result, exchange);
  answer_json(exchange, action.empty() ? model_metadata(exchange->served->model)
                                       : cat(R"({"name":)", json_text(name), R"(,"ready":true})"));
}

void ServeServer::Server::infer(const ParsedRequest& request, Exchange* exchange) {
  constexpr const char* kJsonSize = "inference-header-content-length";
  const bool has_binary = request.headers.count(kJsonSize) > 0;
  const size_t json_size =
      has_binary ? size_from(request.header(kJsonSize), request.body.size(), kJsonSize)
                 : request.body.size();
  InferRequest parsed = parse_infer(request.body, json_size, exchange->served->model);
  std::vector<std::vector<float>> inputs = std::move(parsed.inputs);
  const int64_t samples = parsed.samples;
  const auto job =
      std::make_shared<std::pair<InferRequest, Exchange>>(std::move(parsed), std::move(*exchange));
  const auto done = [this, job](const std::vector<ServedTensor>& outputs, int status,
                                const std::string& error) {
    auto& [asked, own] = *job;
    if (status != 200) return answer(&own, status, kJsonType, json_error(error));
    const InferAnswer made = infer_answer(asked, own.served->model, outputs);
    if (made.binary.empty()) return answer_json(&own, made.json);
    answer(&own, 200, "application/octet-stream", made.json + made.binary,
           cat("Inference-Header-Content-Length: ", made.json.size(), "\r\n"));
  };
  if (job->second.served->batcher.add(samples, std::move(inputs), done)) return;
  *exchange = std::move(job->second);
  throw HttpRefusal(503, "too many requests wait; try again");
}

void ServeServer::Server::look(const ParsedRequest& request, PictureResult wanted,
                               Exchange* exchange) {
  const ServedModel& model = exchange->served->model;
  const ServedPictures& pictures = model.pictures();
  if (pictures.result() == PictureResult::none)
    throw HttpRefusal(
        400, cat("the model \"", model.name(), "\" does not take pictures; post tensors to ",
                 "/v2/models/", model.name(), "/infer"));
  if (pictures.result() != wanted)
    throw HttpRefusal(
        400, cat("the model \"", model.name(), "\" gives ", info_of(pictures.result()).noun,
                 ", not ", info_of(wanted).noun, "; post pictures to /v2/models/", model.name(),
                 "/", info_of(pictures.result()).action));
  const PictureLimits limits = limits_from(request.query, info_of(wanted));
  if (request.body.empty()) throw HttpRefusal(400, "the body is empty; expected an image file");
  const std::optional<ImageHeader> header = read_image_header(request.body);
  if (header && header->exceeds(kMostPixels))
    throw HttpRefusal(413, cat("the picture has ", header->width, " x ", header->height,
                               " pixels; at most ", kMostPixels, " are decoded"));
  std::vector<std::vector<float>> inputs;
  try {
    inputs = pictures.inputs(request.body);
  } catch (const Error& error) {
    throw HttpRefusal(400, cat("the picture in the body: ", error.what()));
  }
  const auto own = std::make_shared<Exchange>(std::move(*exchange));
  const auto done = [this, own, limits](const std::vector<ServedTensor>& outputs, int status,
                                        const std::string& error) {
    if (status != 200) return answer(own.get(), status, kJsonType, json_error(error));
    const ServedModel& from = own->served->model;
    answer_json(own.get(), from.pictures().json(from.name(), outputs, limits));
  };
  if (own->served->batcher.add(1, std::move(inputs), done)) return;
  *exchange = std::move(*own);
  throw HttpRefusal(503, "too many requests wait; try again");
}

ServeServer::ServeServer(const ServeOptions& options, ProgramLog& log)
    : server_(std::make_unique<Server>(options, log)) {}

ServeServer::~ServeServer() = default;
int ServeServer::port() const { return server_->connections.port(); }
void ServeServer::serve() { server_->connections.serve(); }
void ServeServer::finish() { server_->connections.finish(); }
void ServeServer::stop() { server_->connections.stop(); }

}  // namespace crema
