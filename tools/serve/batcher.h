// Batcher: the requests that wait for a net, and the threads that run passes over several of them.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tools/serve/served_model.h"

namespace crema {

struct BatcherOptions {
  std::chrono::microseconds delay{2000};  // the longest wait for further requests
  size_t requests = 4096;                 // that wait at most
  size_t bytes = size_t{256} << 20;       // that their inputs take
};

class Batcher {
 public:
  // The results of one request, or why there are none: status 400 if the net refused its values, 500 if
  // the machine failed. Called by the thread that ran the pass.
  using Done = std::function<void(const std::vector<ServedTensor>& outputs, int status,
                                  const std::string& error)>;
  // Called for each pass, with its number of samples.
  using OnPass = std::function<void(int64_t samples)>;

  Batcher(ServedModel& model, const BatcherOptions& options, OnPass on_pass);
  ~Batcher();  // requests that wait are dropped
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  // `inputs` as in ServedModel::run(), checked. False if too many wait already.
  bool add(int64_t samples, std::vector<std::vector<float>> inputs, Done done);
  size_t waiting() const;
  // False after the GPU was lost: no pass will succeed.
  bool works() const { return !lost_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Request {
    int64_t samples;
    std::vector<std::vector<float>> inputs;
    Done done;
    Clock::time_point came;

    size_t bytes() const;
  };

  void work(int thread);
  std::vector<Request> next(int64_t expected);
  void run(int thread, std::vector<Request>* requests);

  ServedModel& model_;
  const BatcherOptions options_;
  const OnPass on_pass_;
  mutable std::mutex mutex_;
  std::condition_variable came_;
  std::deque<Request> queue_;
  int64_t samples_ = 0;  // in the queue
  size_t bytes_ = 0;
  bool over_ = false;
  std::atomic<bool> lost_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace crema
