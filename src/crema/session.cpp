#include "crema/session.h"

#include <algorithm>

#include "base/error.h"
#include "base/visible.h"

namespace crema {

namespace {

LogLevel level_of(Severity severity) {
  if (severity == Severity::warning) return LogLevel::warning;
  return severity == Severity::error ? LogLevel::error : LogLevel::info;
}

void check_count(const std::string& what, const Shape& shape, size_t count) {
  require(static_cast<int64_t>(count) == shape.count(), what, ": ", count,
          " values were given, but its shape ", shape.brief(), " has ", shape.count());
}

Parameter& find_parameter(Net& net, const std::string& layer, int index) {
  std::vector<std::string> layers;
  int count = 0;
  for (Parameter& parameter : net.parameters()) {
    if (parameter.layer == layer && parameter.index == index) return parameter;
    count += parameter.layer == layer;
    layers.push_back(parameter.layer);
  }
  if (count > 0)
    fail("layer \"", layer, "\" has no parameter ", index, ": it has ", count, ", numbered from 0");
  fail("net \"", net.name(), "\" has no layer \"", layer, "\" with parameters",
       did_you_mean(layer, layers));
}

}  // namespace

void CallbackLog::write(Severity severity, const std::source_location&, std::string_view line) {
  if (!callback_) return;
  const std::lock_guard<std::mutex> lock(*mutex_);
  callback_(level_of(severity), visible(line));
}

void CallbackLog::write_text(const std::source_location&, std::string_view lines) {
  if (!callback_) return;
  const std::lock_guard<std::mutex> lock(*mutex_);
  for (const std::string& line : split(lines, '\n')) callback_(LogLevel::info, line);
}

Session::Session(ComputeDevice on, bool deterministic, const CallbackLog& to)
    : log(to),
      device(on),
      context(on.is_gpu() ? Device::gpu : Device::cpu, on.ordinal()),
      thread(std::this_thread::get_id()) {
  context.set_log(log);
  // As the program does with and without -deterministic.
  context.repeatable = deterministic;
  context.tune(deterministic ? TuneMode::off : TuneMode::quick);
}

DeviceScope device_scope(ComputeDevice device) {
  return DeviceScope(device.is_gpu() ? device.ordinal() : -1);
}

DeviceScope Session::enter() {
  if (thread != std::this_thread::get_id()) {
    limit_threads();
    thread = std::this_thread::get_id();
  }
  return device_scope(device);
}

CallerInputs::CallerInputs(Net& net) : net_(net) {
  for (const Node& node : net.graph().nodes) {
    if (node.message.type() != "Input") continue;
    for (const int top : node.tops) names_.push_back(net.graph().values[top].blob);
  }
  forget();
}

std::vector<BlobInfo> CallerInputs::list() const {
  std::vector<BlobInfo> all;
  for (const std::string& name : names_) all.push_back(describe_blob(name, net_.input(name)));
  return all;
}

void CallerInputs::check_name(const std::string& name) const {
  if (std::find(names_.begin(), names_.end(), name) != names_.end()) return;
  fail("net \"", net_.name(), "\" has no input \"", name, "\"", did_you_mean(name, names_),
       names_.empty() ? ": its data come from layers that read files"
                      : cat("; its inputs are ", join(names_, ", ")));
}

void CallerInputs::set(const std::string& name, std::span<const float> values) {
  check_name(name);
  check_count(cat("input \"", name, "\""), net_.input(name).shape(), values.size());
  net_.set_input(name, values.data());
  in_place_.erase(name);
  unset_.erase(name);
}

std::span<float> CallerInputs::in_place(const std::string& name) {
  check_name(name);
  const auto found = in_place_.find(name);
  if (found != in_place_.end()) return found->second;
  const Tensor input = net_.input(name);
  std::vector<float> values = unset_.count(name) > 0
                                  ? std::vector<float>(static_cast<size_t>(input.count()))
                                  : to_floats(net_.context(), input);
  unset_.erase(name);
  return in_place_.emplace(name, std::move(values)).first->second;
}

void CallerInputs::forget() {
  unset_ = {names_.begin(), names_.end()};
  in_place_.clear();
}

void CallerInputs::give() {
  for (const auto& [name, values] : in_place_) net_.set_input(name, values.data());
}

void CallerInputs::check() const {
  if (unset_.empty()) return;
  fail("net \"", net_.name(), "\": no values were set for ",
       join({unset_.begin(), unset_.end()}, ", "), ": its Input layers need values first");
}

BlobInfo describe_blob(const std::string& name, const Tensor& tensor) {
  return {name, tensor.shape().dims(), name_of(tensor.dtype())};
}

WeightsMode weights_mode_named(const std::string& name) {
  require(name == "strict" || name == "match", "weights_mode \"", name,
          "\": expected strict or match");
  return name == "match" ? WeightsMode::match : WeightsMode::strict;
}

std::vector<ParameterInfo> list_parameters(Net& net) {
  std::vector<ParameterInfo> all;
  for (const Parameter& parameter : net.parameters())
    all.push_back({parameter.layer, parameter.index, parameter.shape.dims()});
  return all;
}

std::vector<float> read_parameter(Net& net, const std::string& layer, int index) {
  const SharedWeights::Reading reading = net.read_parameters();
  return to_floats(net.context(), find_parameter(net, layer, index).data);
}

void write_parameter(Net& net, const std::string& layer, int index, std::span<const float> values) {
  const Parameter& parameter = find_parameter(net, layer, index);
  check_count(cat("layer \"", layer, "\", parameter ", index), parameter.shape, values.size());
  net.change_parameters([&] { from_floats(net.context(), values.data(), parameter.data); });
}

}  // namespace crema
