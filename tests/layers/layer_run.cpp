#include "layers/layer_run.h"

#include <algorithm>
#include <limits>

#include "data/lists/message_text.h"
#include "layers/filler.h"
#include "proto/layer.pb.h"
#include "tensor/part.h"

namespace crema {
namespace {

constexpr size_t kGuard = 256;  // bytes before and after each tensor; keeps a GPU's alignment
constexpr char kGuardByte = 0x5A;

void fill_bytes(Context& context, const Tensor& tensor, char byte) {
  const std::vector<char> bytes(tensor.bytes(), byte);
  copy_bytes(context, tensor.raw(), tensor.device(), bytes.data(), Device::cpu, bytes.size());
}

// NaN in every element, but zero in the padding of blocked formats, as a plan keeps it.
void poison(Context& context, const Tensor& tensor) {
  if (!tensor || tensor.bytes() == 0) return;
  if (is_real(tensor.dtype())) {
    const std::vector<double> nans(tensor.count(), std::numeric_limits<double>::quiet_NaN());
    from_doubles(context, nans.data(), tensor);
  } else {
    fill_bytes(context, tensor, static_cast<char>(0xFF));
  }
}

std::vector<std::vector<double>> read_all(Context& context, const std::vector<Tensor>& tensors) {
  std::vector<std::vector<double>> all;
  for (const Tensor& tensor : tensors)
    all.push_back(tensor ? to_doubles(context, tensor) : std::vector<double>());
  return all;
}

}  // namespace

LayerParameter layer_of(const Row& row) {
  LayerParameter message;
  const std::string error = parse_message(row.text, &message);
  require(error.empty(), "row ", row.id(), ": ", error);
  message.set_name(row.name);
  for (size_t i = 0; i < row.bottoms.size(); ++i) message.add_bottom(cat("bottom", i));
  if (message.top_size() > 0) return message;
  const std::shared_ptr<Layer> layer = make_layer(message, row.training, CREMA_TEST_DATA);
  const int tops = layer->as_many_tops_as_bottoms() ? message.bottom_size() : layer->tops().minimum;
  for (int i = 0; i < tops; ++i) message.add_top(cat("top", i));
  return message;
}

std::string Setting::str() const {
  return cat(device == Device::cpu ? "CPU " : "GPU ", name_of(dtype), " ", name_of(precision),
             order == Order::row_major ? " plain" : " channels_last", " implementation \"",
             implementation, "\"", in_place ? " in place" : "",
             bottoms_wanted == ~0u ? "" : cat(" bottom gradients ", bottoms_wanted),
             parameters_wanted ? "" : " without parameter gradients",
             parts ? " top gradient in parts" : "");
}

void LayerRun::ChosenLog::write(Severity, const std::source_location&, std::string_view line) {
  if (line.find("is implemented by") != std::string_view::npos)
    chosen += cat(line.substr(0, line.find(';')), "\n");
}

LayerRun::LayerRun(const Row& row, const Setting& setting)
    : row_(row),
      setting_(setting),
      context_(setting.context ? setting.context : std::make_shared<Context>(setting.device)) {
  log_.verbosity = 1;
  context_->set_log(log_);
  context_->implementation = setting.implementation;
  context_->repeatable = setting.repeatable;
  context_->chosen.clear();
  context_->ran.clear();
  const LayerParameter message = layer_of(row);
  layer_ = make_layer(message, row.training, CREMA_TEST_DATA);
  const std::vector<Shape> bottoms = bottom_shapes();
  layer_->setup(*context_, bottoms);
  inference_ = layer_->infer(bottoms);
  require(static_cast<int>(inference_.tops.size()) == message.top_size(), "infer gives ",
          inference_.tops.size(), " shapes for ", message.top_size(), " tops");
  if (setting.in_place || layer_->traits().is_view)
    require(inference_.tops.at(0).count() == bottoms.at(0).count(),
            "top 0 cannot share memory with bottom 0: it is ", inference_.tops[0].brief(),
            " and not ", bottoms[0].brief());

  preparation_.bottoms = bottoms;
  preparation_.tops = inference_.tops;
  for (const Shape& shape : bottoms)
    preparation_.bottom_orders.push_back(activation_format(shape).order);
  preparation_.bottom_channels.resize(bottoms.size(), 0);
  if (setting.padded) preparation_.bottom_channels[0] = layer_->padded_channels(storage());
  for (const Shape& shape : inference_.tops)
    preparation_.top_orders.push_back(activation_format(shape).order);
  preparation_.bottom_needs_diff.resize(bottoms.size(), false);
  if (setting.backward) {
    for (int bottom : differentiable_bottoms())
      preparation_.bottom_needs_diff[bottom] = setting.bottoms_wanted >> bottom & 1;
  }
  for (const ParameterSpec& parameter : layer_->parameters())
    preparation_.parameter_needs_diff.push_back(setting.backward && setting.parameters_wanted &&
                                                parameter.learned);
  preparation_.parameter_formats.resize(layer_->parameters().size());
  preparation_.backward = setting.backward;
  preparation_.dtype = setting.dtype;
  preparation_.storage = bottoms.empty() ? setting.dtype : bottom_dtype(0);
  preparation_.precision = setting.precision;
  if (row.through_relu != 0)
    preparation_.bottom_edge = {.relu = true, .relu_factor = row.through_relu};
  DataSource* const source = layer_->source();
  if (source && setting.dtype != DType::f32) source->release_resident();  // as a net does
  prepared_ = layer_->prepare(*context_, preparation_);
  forward_.state = backward_.state = prepared_.state.get();

  const BackwardReads reads = this->reads();
  for (size_t i = 0; i < bottoms.size(); ++i) {
    Format format = activation_format(bottoms[i]);
    format.channels = preparation_.bottom_channels[i];
    forward_.bottom.push_back(
        allocate(cat("bottom ", i), bottoms[i], bottom_dtype(static_cast<int>(i)), format));
  }
  for (size_t i = 0; i < inference_.tops.size(); ++i) {
    const Shape& shape = inference_.tops[i];
    const bool shared = (overwrites_bottom() && i == 0) || layer_->traits().is_view;
    forward_.top.push_back(
        shared ? forward_.bottom[0].reshaped(shape, activation_format(shape))
               : allocate(cat("top ", i), shape, top_dtype(), activation_format(shape)));
    backward_.top_diff.push_back(
        top_has_gradient(static_cast<int>(i))
            ? allocate(cat("top_diff ", i), shape, top_dtype(), activation_format(shape))
            : Tensor());
  }
  written_ = forward_.top;
  for (int part = 1; setting.parts && part < prepared_.top_edge.gradient_parts; ++part) {
    if (!backward_.top_diff[0]) break;
    backward_.top_edge.gradient_parts.push_back(allocate(cat("part ", part, " of top_diff 0"),
                                                         inference_.tops[0], top_dtype(),
                                                         activation_format(inference_.tops[0])));
  }
  for (size_t i = 0; i < bottoms.size(); ++i) {
    const bool shared = (setting.in_place && i == 0) || layer_->traits().is_view;
    if (!preparation_.bottom_needs_diff[i]) {
      backward_.bottom_diff.emplace_back();
    } else if (shared && backward_.top_diff[0]) {
      backward_.bottom_diff.push_back(
          backward_.top_diff[0].reshaped(bottoms[i], activation_format(bottoms[i])));
    } else {
      backward_.bottom_diff.push_back(allocate(cat("bottom_diff ", i), bottoms[i],
                                               bottom_dtype(static_cast<int>(i)),
                                               activation_format(bottoms[i])));
    }
  }
  for (size_t i = 0; i < layer_->parameters().size(); ++i) {
    const Shape& shape = layer_->parameters()[i].shape;
    const Format format =
        prepared_.parameter_formats.empty() ? Format() : prepared_.parameter_formats[i];
    const std::vector<bool>& halves = prepared_.half_parameters;
    const DType dtype = i < halves.size() && halves[i] ? storage() : setting.dtype;
    forward_.parameters.push_back(allocate(cat("parameter ", i), shape, dtype, format));
    backward_.parameter_diff.push_back(
        preparation_.parameter_needs_diff[i]
            ? allocate(cat("parameter_diff ", i), shape, setting.dtype, format)
            : Tensor());
  }
  saved_ = inference_.saved;
  saved_.insert(saved_.end(), prepared_.saved.begin(), prepared_.saved.end());
  for (size_t i = 0; i < saved_.size(); ++i) {
    const TensorSpec& spec = saved_[i];
    forward_.saved.push_back(
        allocate(cat("saved ", i), spec.shape, spec.dtype.value_or(setting.dtype)));
  }
  forward_.workspace =
      allocate("workspace", Shape{static_cast<int64_t>(prepared_.workspace)}, DType::u8);
  forward_.pass = backward_.pass = 3;
  for (size_t i = 0; i < bottoms.size(); ++i)
    backward_.bottom.push_back(reads.bottom_at(i) ? forward_.bottom[i] : Tensor());
  backward_.top = reads.top ? forward_.top : std::vector<Tensor>(forward_.top.size());
  backward_.parameters = forward_.parameters;
  backward_.saved = forward_.saved;
  backward_.workspace = backward_.side_workspace = forward_.workspace;
}

LayerRun::~LayerRun() { context_->set_log(silent_log()); }

DType LayerRun::storage() const {
  return layer_->traits().half_rule == HalfRule::never && !layer_->traits().is_view
             ? setting_.dtype
             : storage_of(setting_.precision, setting_.dtype);
}

DType LayerRun::bottom_dtype(int bottom) const {
  return layer_->differentiable(bottom) ? storage() : setting_.dtype;
}

DType LayerRun::top_dtype() const { return layer_->is_loss() ? setting_.dtype : storage(); }

// As in a plan: data that the layer's own backward reads is not overwritten, though the gradients
// still share memory.
bool LayerRun::overwrites_bottom() const {
  return setting_.in_place && !(setting_.backward && reads().bottom);
}

std::vector<Shape> LayerRun::bottom_shapes() const {
  std::vector<Shape> shapes;
  for (const RowBottom& bottom : row_.bottoms) shapes.push_back(bottom.shape);
  return shapes;
}

std::vector<int> LayerRun::differentiable_bottoms() const {
  if (!row_.differentiable.empty()) return row_.differentiable;
  std::vector<int> all;
  for (int i = 0; i < static_cast<int>(row_.bottoms.size()); ++i)
    if (layer_->differentiable(i)) all.push_back(i);
  return all;
}

bool LayerRun::top_has_gradient(int top) const {
  if (!setting_.backward) return false;
  if (layer_->is_loss()) return top == 0;
  return row_.gradient_tops < 0 || top < row_.gradient_tops;
}

Format LayerRun::activation_format(const Shape& shape) const {
  return setting_.order == Order::channels_last && shape.axes() >= 3 ? Format::channels_last()
                                                                     : Format::row_major();
}

Tensor LayerRun::allocate(const std::string& what, const Shape& shape, DType dtype,
                          const Format& format) {
  const size_t bytes = static_cast<size_t>(format.elements(shape)) * size_of(dtype);
  auto memory = std::make_shared<Buffer>(*context_, bytes + 2 * kGuard);
  fill_bytes(*context_, Tensor(memory, 0, Shape{static_cast<int64_t>(memory->bytes())}, DType::u8),
             kGuardByte);
  Tensor tensor(memory, kGuard, shape, dtype, format);
  zero(*context_, tensor);
  guarded_.push_back({what, memory, bytes});
  return tensor;
}

Start LayerRun::make_start() const {
  Start start;
  for (size_t i = 0; i < row_.bottoms.size(); ++i)
    start.bottom.push_back(make_values(row_, static_cast<int>(i)));
  Context cpu(Device::cpu);
  for (size_t i = 0; i < layer_->parameters().size(); ++i) {
    const ParameterSpec& spec = layer_->parameters()[i];
    const Random random{7, mix(100, i)};
    const Tensor tensor(cpu, spec.shape);
    fill(cpu, *spec.filler, random, tensor);
    std::vector<double> values = to_doubles(cpu, tensor);
    for (size_t k = 0; k < values.size(); ++k) {
      if (!spec.learned) {
        values[k] =
            static_cast<float>(0.5 + random.uniform(k));  // a statistic: any positive number
      } else if (spec.filler->type() == "constant") {
        values[k] = static_cast<float>(
            values[k] + 0.5 * random.normal(k));  // equal values would hide mixed-up indexes
      }
    }
    start.parameter.push_back(values);
  }
  for (size_t i = 0; i < inference_.tops.size(); ++i) {
    std::vector<double> values;
    if (layer_->is_loss()) {
      if (i == 0) values.assign(inference_.tops[0].count(), 0.75);  // a loss weight
    } else if (top_has_gradient(static_cast<int>(i))) {
      const Random random{11, i};
      values.resize(inference_.tops[i].count());
#pragma omp parallel for if (values.size() > 10000)
      for (size_t k = 0; k < values.size(); ++k) values[k] = random.normal(k);
    }
    start.top_diff.push_back(values);
  }
  return start;
}

void LayerRun::run_forward(const Start& start) {
  for (size_t i = 0; i < forward_.top.size(); ++i) {
    if (layer_->traits().keeps_tops ||
        (i == 0 && (overwrites_bottom() || layer_->traits().is_view)))
      continue;
    poison(*context_, forward_.top[i]);
  }
  for (size_t i = 0; i < forward_.saved.size(); ++i) {
    if (!saved_[i].persistent) poison(*context_, forward_.saved[i]);
  }
  poison(*context_, forward_.workspace);
  for (size_t i = 0; i < forward_.bottom.size(); ++i)
    from_doubles(*context_, start.bottom[i].data(), forward_.bottom[i]);
  for (size_t i = 0; i < forward_.parameters.size(); ++i) {
    from_doubles(*context_, start.parameter[i].data(), forward_.parameters[i]);
  }
  layer_->forward(*context_, forward_);
  if (layer_->traits().dynamic) take_shapes();
}

// As in a plan: the written values, and their gradients, are tensors of the resulting shapes.
void LayerRun::take_shapes() {
  const std::vector<Shape>& shapes = state_of<DynamicTops>(forward_).tops;
  require(shapes.size() == inference_.tops.size(), "forward wrote ", shapes.size(), " shapes for ",
          inference_.tops.size(), " tops");
  for (size_t i = 0; i < shapes.size(); ++i) {
    require(shapes[i].count() <= inference_.tops[i].count(), "top ", i, " is ", shapes[i].brief(),
            ", more than infer said: ", inference_.tops[i].brief());
    written_[i] = part(forward_.top[i], shapes[i]);
    if (backward_.top[i]) backward_.top[i] = written_[i];
    if (backward_.top_diff[i]) backward_.top_diff[i] = part(backward_.top_diff[i], shapes[i]);
  }
}

Outcome LayerRun::forward(const Start& start) {
  run_forward(start);
  Outcome outcome;
  outcome.top = read_all(*context_, written_);
  outcome.parameter = read_all(*context_, forward_.parameters);
  return outcome;
}

Outcome LayerRun::backward(const Start& start, int times, const std::function<void()>& between) {
  Outcome outcome;
  for (int time = 0; time < times; ++time) {
    run_forward(start);
    if (between) between();
    outcome.top = read_all(*context_, written_);
    outcome.parameter = read_all(*context_, forward_.parameters);
    if (layer_->traits().recomputes && !overwrites_bottom()) check_recompute(outcome);
    poison(*context_, forward_.workspace);
    for (const Tensor& diff : backward_.bottom_diff) poison(*context_, diff);
    write_top_diffs(start);
    backward_.accumulate.assign(forward_.parameters.size(), time > 0);
    backward_.begun.assign(forward_.parameters.size(), false);
    for (const Tensor& diff : backward_.parameter_diff)
      if (time == 0) poison(*context_, diff);
    layer_->backward(*context_, backward_);
  }
  outcome.bottom_diff = read_all(*context_, backward_.bottom_diff);
  outcome.parameter_diff = read_all(*context_, backward_.parameter_diff);
  outcome.parameter_after = read_all(*context_, forward_.parameters);
  return outcome;
}

// The same tops again, bit for bit, and nothing else.
void LayerRun::check_recompute(const Outcome& outcome) {
  poison(*context_, forward_.workspace);
  for (const Tensor& top : forward_.top) poison(*context_, top);
  layer_->recompute(*context_, forward_);
  require(read_all(*context_, forward_.top) == outcome.top, "recompute() wrote other tops");
  require(read_all(*context_, forward_.parameters) == outcome.parameter,
          "recompute() changed parameters");
}

// In parts: 2, -2, 2, ... times the gradient, and the last to make the sum right: exact in 16 bits.
void LayerRun::write_top_diffs(const Start& start) {
  const size_t more = backward_.top_edge.gradient_parts.size();
  for (size_t i = 0; i < backward_.top_diff.size(); ++i) {
    if (!backward_.top_diff[i]) continue;
    const auto write = [&](double factor, const Tensor& to) {
      std::vector<double> values = start.top_diff[i];
      for (double& value : values) value *= factor;
      from_doubles(*context_, values.data(), to);
    };
    if (i > 0 || more == 0) {
      write(1, backward_.top_diff[i]);
      continue;
    }
    write(2, backward_.top_diff[0]);
    for (size_t k = 0; k + 1 < more; ++k)
      write(k % 2 == 0 ? -2 : 2, backward_.top_edge.gradient_parts[k]);
    write(more % 2 == 0 ? 1 : -1, backward_.top_edge.gradient_parts[more - 1]);
  }
}

std::string LayerRun::broken_guard() {
  for (const Guarded& guarded : guarded_) {
    std::vector<char> bytes(guarded.memory->bytes());
    copy_bytes(*context_, bytes.data(), Device::cpu, guarded.memory->data(),
               guarded.memory->device(), bytes.size());
    const auto intact = [](char byte) { return byte == kGuardByte; };
    if (!std::all_of(bytes.begin(), bytes.begin() + kGuard, intact))
      return cat("memory before ", guarded.what);
    if (!std::all_of(bytes.begin() + kGuard + guarded.bytes, bytes.end(), intact))
      return cat("memory after ", guarded.what);
  }
  return "";
}

}  // namespace crema
