#include "tools/serve/served_model.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>

#include "base/error.h"
#include "device/device_scope.h"
#include "device/host_limits.h"
#include "tools/serve/box_rows.h"
#include "tools/serve/sample_trial.h"

namespace crema {

namespace {

int64_t values_in(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

// Four at most, as many as a net keeps plans.
std::vector<int64_t> batch_sizes(int most) {
  std::vector<int64_t> sizes = {1};
  for (const double part : {1. / 3, 2. / 3, 1.})
    sizes.push_back(std::llround(std::pow(static_cast<double>(most), part)));
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

}  // namespace

std::string shape_text(const std::vector<int64_t>& shape, bool batches) {
  std::vector<std::string> parts;
  for (const int64_t size : shape) parts.push_back(std::to_string(size));
  if (batches && !parts.empty()) parts[0] = "N";
  return parts.empty() ? "one number" : join(parts, "x");
}

ServedModel::ServedModel(const ServedModelOptions& options, ProgramLog& log) : options_(options) {
  open(log);
  find_batches();
  find_pictures();
  measure_sizes();
  for (int i = 1; i < options_.threads; ++i) {
    try {
      models_.push_back(models_[0].shared());
    } catch (const Error& error) {
      log.info(cat(name(), ": one thread computes: ", error.what()));
      break;
    }
  }
  now_.resize(models_.size(), now_[0]);
  std::vector<std::string> takes;
  for (const BlobInfo& input : inputs_)
    takes.push_back(cat(input.name, " ", shape_text(input.shape, batches())));
  std::vector<std::string> sizes;
  for (const int64_t size : sizes_) sizes.push_back(std::to_string(size));
  log.info(cat(name(), ": takes ", join(takes, ", "),
               batches() ? cat("; computes batches of ", join(sizes, ", "))
                         : std::string("; computes one request at a time"),
               pictures_.result() == PictureResult::none
                   ? ""
                   : cat("; gives ", info_of(pictures_.result()).noun, " for pictures")));
}

// Odd seeds give other bits than the even ones before them.
std::vector<float> ServedModel::trial_values(size_t i, int64_t samples, unsigned seed) const {
  const std::vector<int64_t>& shape = inputs_[i].shape;
  int64_t count = values_in(shape);
  if (samples > 0 && !shape.empty()) count = count / std::max<int64_t>(1, shape[0]) * samples;
  if (is_picture_facts(inputs_[i])) {
    const std::vector<float> facts = picture_facts(inputs_);
    std::vector<float> all;
    while (static_cast<int64_t>(all.size()) < count)
      all.insert(all.end(), facts.begin(), facts.end());
    return all;
  }
  std::mt19937 generator(trial_ == Trial::bits ? seed / 2 : seed);
  std::uniform_real_distribution<float> fraction(0, 1);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& each : values)
    each =
        trial_ == Trial::bits ? static_cast<float>((generator() ^ seed) & 1) : fraction(generator);
  return values;
}

std::vector<std::vector<float>> ServedModel::all_trial_values(int64_t samples,
                                                              unsigned seed) const {
  std::vector<std::vector<float>> all;
  for (size_t i = 0; i < inputs_.size(); ++i) all.push_back(trial_values(i, samples, seed));
  return all;
}

void ServedModel::open(ProgramLog& log) {
  ModelOptions how = options_.model;
  how.deploy = true;
  how.log = [&to = log.library()](LogLevel level, std::string_view line) {
    if (level == LogLevel::info) {
      to.info(line);
    } else {
      to.warning(line);
    }
  };
  models_.emplace_back(options_.net, how);
  inputs_ = models_[0].inputs();
  require(!inputs_.empty(), options_.net, ": the net has no input that a request could fill");
  now_ = {0};
  for (const Trial trial : {Trial::fractions, Trial::bits, Trial::none}) {
    trial_ = trial;
    if (trial == Trial::none) break;
    try {
      run(0, 0, all_trial_values(0, 1));  // so that shapes that depend on data are known
      break;
    } catch (const DeviceLost&) {
      throw;
    } catch (const Error& error) {
      log.library().info(cat(name(), ": it does not take the values of a trial: ", error.what()));
    }
  }
  outputs_ = models_[0].outputs();
}

void ServedModel::find_batches() {
  Shapes shapes;
  for (const BlobInfo& input : inputs_) shapes.emplace_back(input.name, input.shape);
  const bool independent = samples_are_independent();
  now_[0] = 0;  // whatever the trial left
  if (independent) {
    sizes_ = batch_sizes(options_.batch);
    reshape(0, 1);
    inputs_ = models_[0].inputs();
    outputs_ = models_[0].outputs();
  } else {
    models_[0].reshape(shapes);
  }
}

bool ServedModel::samples_are_independent() {
  if (trial_ == Trial::none) return false;
  SampleTrial trial{inputs_, all_trial_values(1, 2), all_trial_values(1, 3), {}, {}};
  std::vector<std::string> boxes;
  for (const BlobInfo& input : inputs_) {
    if (input.shape.empty()) return false;
  }
  for (const BlobInfo& output : outputs_)
    (has_box_rows(output) ? boxes : trial.by_sample).push_back(output.name);
  if (boxes.empty()) return crema::samples_are_independent(models_[0], trial);
  // Values of a trial may show no objects, so the boxes' layers are judged by what they read.
  trial.by_sample_or_fixed = blobs_read_for(boxes, options_.net);
  ModelOptions how = options_.model;
  how.deploy = how.keep_blobs = true;
  Model whole(options_.net, how);
  return crema::samples_are_independent(whole, trial);
}

void ServedModel::reshape(int thread, int64_t samples) {
  if (now_[thread] == samples) return;
  Shapes shapes;
  for (const BlobInfo& input : inputs_) {
    shapes.emplace_back(input.name, input.shape);
    shapes.back().second[0] = samples;
  }
  now_[thread] = 0;  // unknown, if it fails
  models_[thread].reshape(shapes);
  now_[thread] = samples;
}

void ServedModel::find_pictures() {
  if (trial_ == Trial::none) return;
  run(0, 1, all_trial_values(0, 1));
  pictures_ = ServedPictures(models_[0], options_.model.pictures);
}

void ServedModel::take_thread(int thread) {
  [[maybe_unused]] const std::vector<BlobInfo> inputs = models_[thread].inputs();  // enters it
  if (std::getenv("OMP_NUM_THREADS") == nullptr)
    set_cpu_threads(std::max(1, usable_processors() / threads()));
}

// Also makes the plans, for which the first requests would wait.
void ServedModel::measure_sizes() {
  constexpr int kTimes = 3;
  for (size_t at = 0; at < sizes_.size(); ++at) {
    const int64_t size = sizes_[at];
    const std::vector<std::vector<float>> inputs = all_trial_values(size, 1);
    run(0, size, inputs);
    seconds_[at] = 0;  // the first pass made the plan
    for (int i = 1; i < kTimes; ++i) run(0, size, inputs);
  }
}

void ServedModel::add_time(int64_t size, double seconds) {
  constexpr double kNew = 0.1;
  for (size_t i = 0; i < sizes_.size(); ++i) {
    if (sizes_[i] != size) continue;
    const double before = seconds_[i];
    seconds_[i] = before > 0 ? before + kNew * (seconds - before) : seconds;
  }
}

int64_t ServedModel::samples_to_take(int64_t waiting) const {
  const auto up = std::lower_bound(sizes_.begin(), sizes_.end(), waiting);
  if (up == sizes_.begin() || up == sizes_.end() || *up == waiting) return waiting;
  const size_t i = static_cast<size_t>(up - sizes_.begin());
  const double filled = static_cast<double>(waiting) / seconds_[i];
  const double divided = static_cast<double>(sizes_[i - 1]) / seconds_[i - 1];
  return divided > filled ? sizes_[i - 1] : waiting;
}

std::vector<ServedTensor> ServedModel::part(const std::vector<ServedTensor>& outputs,
                                            int64_t samples, int64_t first, int64_t count) const {
  std::vector<ServedTensor> parts;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const ServedTensor& all = outputs[i];
    if (has_box_rows(outputs_[i])) {
      parts.push_back(box_rows_of(all, first, count));
      continue;
    }
    const auto each = static_cast<int64_t>(all.values.size()) / samples;
    const auto from = all.values.begin() + first * each;
    parts.push_back({all.name, all.shape, {from, from + count * each}});
    parts.back().shape[0] = count;
  }
  return parts;
}

std::vector<ServedTensor> ServedModel::run(int thread, int64_t samples,
                                           const std::vector<std::vector<float>>& inputs) {
  Model& model = models_[thread];
  const auto begin = std::chrono::steady_clock::now();
  int64_t size = samples;
  if (batches()) {
    size = *std::find_if(sizes_.begin(), sizes_.end(), [&](int64_t s) { return s >= samples; });
    reshape(thread, size);
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (size == samples) {
      model.set_input(inputs_[i].name, inputs[i]);
      continue;
    }
    std::vector<float> padded = inputs[i];
    padded.resize(inputs[i].size() / static_cast<size_t>(samples) * static_cast<size_t>(size));
    model.set_input(inputs_[i].name, padded);
  }
  model.forward();
  std::vector<ServedTensor> results;
  for (const BlobInfo& output : model.outputs())
    results.push_back({output.name, output.shape, model.values(output.name)});
  if (size != samples) results = part(results, size, 0, samples);
  if (batches()) {
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    add_time(size, took.count());
  }
  return results;
}

}  // namespace crema
