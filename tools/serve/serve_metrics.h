// What a server has done, in the text format of Prometheus.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace crema {

class ServeMetrics {
 public:
  // `model`: one of those that are served, or "".
  void add_request(const std::string& model, int status);
  void add_latency(const std::string& model, double seconds);
  void add_pass(const std::string& model, int64_t samples);
  // queues: the requests that wait, by model.
  std::string text(const std::vector<std::pair<std::string, size_t>>& queues) const;

 private:
  struct Histogram {
    std::vector<uint64_t> counts;  // by bucket, the last for the rest
    double sum = 0;
    void add(const std::vector<double>& bounds, double value);
  };
  static void write(const std::string& name, const std::string& help,
                    const std::vector<double>& bounds,
                    const std::map<std::string, Histogram>& histograms, std::string* text);

  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, uint64_t> requests_;
  std::map<std::string, Histogram> latencies_, passes_;
};

}  // namespace crema
