#include "tools/tune/batch_trials.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <new>
#include <set>

#include "base/error.h"
#include "device/memory.h"
#include "net/graph/filter.h"
#include "net/records.h"
#include "net/sources/batch_size.h"
#include "solver/fields/solver_nets.h"
#include "solver/solver.h"
#include "tools/flags/net_flags.h"
#include "tools/inputs/random_inputs.h"
#include "tools/measure/memory_use.h"
#include "tools/runs/train_nets.h"

namespace crema {

namespace {

using Clock = std::chrono::steady_clock;

constexpr double seconds_timed = 0.5;
constexpr int fewest_iterations = 3;

double seconds_from(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// "data_param.batch_size": the field that set_batch_size() sets; "" if it sets a shape.
std::string batch_field(LayerParameter layer) {
  constexpr int never = 1234567891;
  set_batch_size(layer, never);
  const auto* reflection = layer.GetReflection();
  for (int i = 0; i < LayerParameter::descriptor()->field_count(); ++i) {
    const auto* field = LayerParameter::descriptor()->field(i);
    if (field->is_repeated() || !field->message_type() || !reflection->HasField(layer, field))
      continue;
    const auto& message = reflection->GetMessage(layer, field);
    const auto* size = field->message_type()->FindFieldByName("batch_size");
    if (!size || size->is_repeated()) continue;
    const int64_t value = size->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_UINT32
                              ? message.GetReflection()->GetUInt32(message, size)
                              : message.GetReflection()->GetInt32(message, size);
    if (value == never) return cat(field->name(), ".batch_size");
  }
  return "";
}

}  // namespace

BatchTrials::BatchTrials(ProgramLog& log, Context& context, const BatchTrialFlags& flags,
                         const SolverFile& file)
    : log_(log), context_(context), flags_(flags), file_(file) {
  available_ = free_memory(context);
  if (available_ == std::numeric_limits<size_t>::max()) available_ = available_memory();  // a CPU
  find_sources();
}

void BatchTrials::find_sources() {
  const NetSource source = train_source(file_);
  const NetFile net = open_net(file_, source);
  write_notes(log_.library(), net.upgrade.notes);
  NetState state = source.state;
  add_level_and_stages(flags_, &state);
  const NetParameter filtered = filter_net(net.net, net_state(TRAIN, net.net, state), silent_log(),
                                           nullptr, [&net](int layer) { return net.where(layer); });
  for (const LayerParameter& layer : filtered.layer()) {
    if (!is_source(layer)) continue;
    const std::string field = batch_field(layer);
    if (field.empty()) {
      others_.push_back(layer.name());
    } else {
      settings_.push_back(cat("layer[", layer.name(), "].", field));
    }
  }
  require(!settings_.empty() || !others_.empty(), net.path,
          ": the training net has no source of data whose batch could be changed");
}

void BatchTrials::run_iterations(int64_t batch, bool timed, BatchTrial* trial) {
  SolverFile file = file_;
  BatchTrialFlags flags = flags_;
  flags.batch = static_cast<int>(batch);
  take_assume_flag(silent_log(), flags, &file);
  SolverOptions options;
  options.level = flags.level;
  options.stages = split(flags.stage, ',');
  options.fills_inputs = true;
  set_passes(flags, &options.net);
  options.net.precision = precision_of_flag(context_, flags.precision, file.solver.precision());
  Solver solver(context_, file, options);
  fill_random_inputs(solver.net());
  trial->memory = solver.memory();
  trial->batch = batch_of(solver.net());
  if (batch == 0) own_ = trial->batch;
  trial->samples = trial->batch * file.solver.iter_size();
  solver.step(fewest_iterations);  // on a GPU the second of them is recorded
  if (!timed) return;
  const double waited = solver.net().waited();
  const auto begin = Clock::now();
  int iterations = 0;
  while (flags.iterations_given
             ? iterations < flags.iterations
             : iterations < fewest_iterations || seconds_from(begin) < seconds_timed) {
    solver.step(2);
    iterations += 2;
  }
  trial->seconds = seconds_from(begin) / iterations;
  trial->waited = (solver.net().waited() - waited) / iterations;
}

BatchTrial BatchTrials::run(int64_t batch, bool timed) {
  BatchTrial trial;
  trial.batch = batch;
  try {
    run_iterations(batch, timed, &trial);
    trial.fits = true;
  } catch (const DeviceLost&) {
    throw;
  } catch (const Error& error) {
    if (batch == 0) throw;  // what is wrong with the training itself
    trial.problem = error.what();
  } catch (const std::bad_alloc&) {
    if (batch == 0) throw;
    trial.problem = "out of memory";
  }
  return trial;
}

std::vector<int64_t> batches_to_time(int64_t own, int64_t most) {
  std::set<int64_t> batches = {own};
  for (int64_t batch = 1; batch <= most; batch *= 2) {
    if (8 * batch >= own) batches.insert(batch);
  }
  return {batches.begin(), batches.end()};
}

}  // namespace crema
