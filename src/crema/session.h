// The common part of Model and Trainer: a device, a log, and access to a net by names.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "crema.h"
#include "device/context.h"
#include "device/device_scope.h"
#include "net/net.h"
#include "net/weights/weights.h"

namespace crema {

// Hands lines to a callback, one by one, from whatever thread they come. So do copies, which share
// the mutex.
class CallbackLog : public TextLog {
 public:
  explicit CallbackLog(LogCallback callback) : callback_(std::move(callback)) {}
  void write(Severity severity, const std::source_location& where, std::string_view line) override;
  void write_text(const std::source_location& where, std::string_view lines) override;

 private:
  std::shared_ptr<std::mutex> mutex_ = std::make_shared<std::mutex>();
  LogCallback callback_;
};

// For the time that a call takes: on a CPU nothing.
DeviceScope device_scope(ComputeDevice device);

struct Session {
  Session(ComputeDevice device, bool deterministic, const CallbackLog& log);

  // Wraps every call from outside: the calling thread may differ each time.
  DeviceScope enter();

  CallbackLog log;
  ComputeDevice device;
  Context context;
  std::thread::id thread;
};

// Inputs of a net that a caller fills, and whether it has.
class CallerInputs {
 public:
  explicit CallerInputs(Net& net);

  std::vector<BlobInfo> list() const;
  // Error when there is no such input.
  void check_name(const std::string& name) const;
  void set(const std::string& name, std::span<const float> values);
  // Values that the caller writes in place, until set() or forget().
  std::span<float> in_place(const std::string& name);
  void forget();
  // Gives the net what was written in place; before each pass.
  void give();
  // Error unless all have been set.
  void check() const;

 private:
  Net& net_;
  std::vector<std::string> names_;
  std::set<std::string> unset_;
  std::map<std::string, std::vector<float>> in_place_;
};

BlobInfo describe_blob(const std::string& name, const Tensor& tensor);
WeightsMode weights_mode_named(const std::string& name);

std::vector<ParameterInfo> list_parameters(Net& net);
std::vector<float> read_parameter(Net& net, const std::string& layer, int index);
void write_parameter(Net& net, const std::string& layer, int index, std::span<const float> values);

}  // namespace crema
