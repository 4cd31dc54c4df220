#include "tools/serve/serve_metrics.h"

#include <algorithm>

#include "base/strings.h"

namespace crema {

namespace {

const std::vector<double> kLatencyBounds = {.001, .0025, .005, .01, .025, .05, .1,
                                            .25,  .5,    1,    2.5, 5,    10};
const std::vector<double> kSampleBounds = {1, 2, 4, 8, 16, 32, 64, 128, 256};

std::string label_of(const std::string& model) {
  std::string text;
  for (const char c : model) {
    if (c == '\\' || c == '"') text += '\\';
    text += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return cat("model=\"", text, "\"");
}

std::string metric_head(const std::string& name, const std::string& help, const char* type) {
  return cat("# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
}

}  // namespace

void ServeMetrics::Histogram::add(const std::vector<double>& bounds, double value) {
  counts.resize(bounds.size() + 1);
  ++counts[static_cast<size_t>(std::lower_bound(bounds.begin(), bounds.end(), value) -
                               bounds.begin())];
  sum += value;
}

void ServeMetrics::add_request(const std::string& model, int status) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++requests_[{model, status}];
}

void ServeMetrics::add_latency(const std::string& model, double seconds) {
  const std::lock_guard<std::mutex> lock(mutex_);
  latencies_[model].add(kLatencyBounds, seconds);
}

void ServeMetrics::add_pass(const std::string& model, int64_t samples) {
  const std::lock_guard<std::mutex> lock(mutex_);
  passes_[model].add(kSampleBounds, static_cast<double>(samples));
}

void ServeMetrics::write(const std::string& name, const std::string& help,
                         const std::vector<double>& bounds,
                         const std::map<std::string, Histogram>& histograms, std::string* text) {
  *text += metric_head(name, help, "histogram");
  for (const auto& [model, histogram] : histograms) {
    const std::string label = label_of(model);
    uint64_t count = 0;
    for (size_t i = 0; i <= bounds.size(); ++i) {
      count += histogram.counts[i];
      *text += cat(name, "_bucket{", label, ",le=\"",
                   i < bounds.size() ? cat(bounds[i]) : std::string("+Inf"), "\"} ", count, "\n");
    }
    *text += cat(name, "_sum{", label, "} ", histogram.sum, "\n", name, "_count{", label, "} ",
                 count, "\n");
  }
}

std::string ServeMetrics::text(const std::vector<std::pair<std::string, size_t>>& queues) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::string out =
      metric_head("crema_requests_total", "Requests by model and status code.", "counter");
  for (const auto& [key, count] : requests_)
    out += cat("crema_requests_total{", label_of(key.first), ",code=\"", key.second, "\"} ", count,
               "\n");
  write("crema_request_seconds", "Seconds from a whole request to its answer.", kLatencyBounds,
        latencies_, &out);
  write("crema_batch_samples", "Samples in a pass of the net.", kSampleBounds, passes_, &out);
  out += metric_head("crema_queue_requests", "Requests that wait for a pass.", "gauge");
  for (const auto& [model, count] : queues)
    out += cat("crema_queue_requests{", label_of(model), "} ", count, "\n");
  return out;
}

}  // namespace crema
