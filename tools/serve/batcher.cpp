#include "tools/serve/batcher.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/exceptions.h"

namespace crema {

Batcher::Batcher(ServedModel& model, const BatcherOptions& options, OnPass on_pass)
    : model_(model), options_(options), on_pass_(std::move(on_pass)) {
  for (int i = 0; i < model.threads(); ++i) threads_.emplace_back([this, i] { work(i); });
}

Batcher::~Batcher() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    over_ = true;
  }
  came_.notify_all();
}

size_t Batcher::Request::bytes() const {
  size_t count = 0;
  for (const std::vector<float>& input : inputs) count += input.size() * sizeof(float);
  return count;
}

bool Batcher::add(int64_t samples, std::vector<std::vector<float>> inputs, Done done) {
  Request request{samples, std::move(inputs), std::move(done), Clock::now()};
  const size_t bytes = request.bytes();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (queue_.size() >= options_.requests || (bytes_ > 0 && bytes_ + bytes > options_.bytes))
      return false;
    queue_.push_back(std::move(request));
    samples_ += samples;
    bytes_ += bytes;
  }
  came_.notify_all();
  return true;
}

size_t Batcher::waiting() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return queue_.size();
}

// Waits for `expected` samples, but not longer than the delay from the first request on. Empty at the end.
std::vector<Batcher::Request> Batcher::next(int64_t expected) {
  std::vector<Request> taken;
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    came_.wait(lock, [this] { return over_ || !queue_.empty(); });
    if (over_) return taken;
    const Clock::time_point until = queue_.front().came + options_.delay;
    came_.wait_until(lock, until, [&] { return over_ || queue_.empty() || samples_ >= expected; });
    if (over_) return taken;
    if (!queue_.empty()) break;  // another thread may have taken them
  }
  int64_t samples = 0;
  const int64_t most = model_.samples_to_take(std::min(samples_, model_.most_samples()));
  while (!queue_.empty() && (taken.empty() || samples + queue_.front().samples <= most)) {
    samples += queue_.front().samples;
    samples_ -= queue_.front().samples;
    bytes_ -= queue_.front().bytes();
    taken.push_back(std::move(queue_.front()));
    queue_.pop_front();
    if (!model_.batches()) break;
  }
  return taken;
}

void Batcher::work(int thread) {
  model_.take_thread(thread);
  // A single client gets no others to wait for: as many as last time are expected.
  int64_t expected = 1;
  while (true) {
    std::vector<Request> requests = next(expected);
    if (requests.empty()) return;
    expected = 0;
    for (const Request& request : requests) expected += request.samples;
    expected = requests.size() == 1 ? 1 : std::min<int64_t>(expected, model_.most_samples());
    try {
      run(thread, &requests);
    } catch (const std::exception&) {  // no memory for the answers: these clients get none
    }
  }
}

void Batcher::run(int thread, std::vector<Request>* requests) {
  int64_t samples = 0;
  std::vector<std::vector<float>> inputs = std::move((*requests)[0].inputs);
  std::vector<size_t> row(inputs.size());  // values of a sample
  for (size_t i = 0; i < inputs.size(); ++i)
    row[i] = inputs[i].size() / static_cast<size_t>((*requests)[0].samples);
  for (Request& request : *requests) {
    for (size_t i = 0; samples > 0 && i < inputs.size(); ++i)
      inputs[i].insert(inputs[i].end(), request.inputs[i].begin(), request.inputs[i].end());
    samples += request.samples;
  }
  std::vector<ServedTensor> all;
  std::string error;
  int status = 200;
  try {
    on_pass_(samples);
    all = model_.run(thread, samples, inputs);
  } catch (const DeviceLost& problem) {
    lost_ = true;
    status = 500;
    error = problem.what();
  } catch (const Error& problem) {
    status = 400;
    error = problem.what();
  } catch (const std::exception& problem) {
    status = 500;
    error = problem.what();
  }
  if (status != 200 && works() && requests->size() > 1) {  // perhaps because of one of them
    size_t first = 0;
    for (Request& request : *requests) {
      std::vector<Request> alone;
      request.inputs.resize(inputs.size());
      const auto count = static_cast<size_t>(request.samples);
      for (size_t i = 0; i < inputs.size(); ++i) {
        const auto from = inputs[i].begin() + static_cast<std::ptrdiff_t>(first * row[i]);
        request.inputs[i].assign(from, from + static_cast<std::ptrdiff_t>(count * row[i]));
      }
      first += count;
      alone.push_back(std::move(request));
      run(thread, &alone);
    }
    return;
  }
  if (status != 200 || requests->size() == 1) {
    for (Request& request : *requests) request.done(all, status, error);
    return;
  }
  int64_t first = 0;
  for (Request& request : *requests) {
    const std::vector<ServedTensor> own = model_.part(all, samples, first, request.samples);
    first += request.samples;
    request.done(own, status, "");
  }
}

}  // namespace crema
