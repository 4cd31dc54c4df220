// A net's parameters and their gradients: their memory, first values, and copies in 16 bits.
#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "kernels/move/reorder.h"
#include "layers/filler.h"
#include "net/graph/graph_builder.h"
#include "net/net.h"
#include "net/plan/plan.h"

namespace crema {

namespace {

// The step that has a parameter as its own; for messages.
LayerPlace place_of_parameter(const Graph& graph, int parameter) {
  for (const Node& node : graph.nodes) {
    if (std::count(node.parameters.begin(), node.parameters.end(), parameter) > 0)
      return node.place;
  }
  return {graph.parameters[parameter].layer, ""};
}

// For each parameter, how many before it have its layer's name and its index: of two layers of one
// name the first shares with the first.
std::vector<int> occurrences(const std::vector<Parameter>& parameters) {
  std::map<std::pair<std::string, int>, int> seen;
  std::vector<int> found;
  for (const Parameter& parameter : parameters)
    found.push_back(seen[{parameter.layer, parameter.index}]++);
  return found;
}

// Why the shapes differ: most often inputs of a different size.
std::string other_inputs(const Graph& mine, const Graph& theirs) {
  const auto input_of = [](const Graph& graph) {
    for (const Node& node : graph.nodes) {
      if (node.bottoms.empty() && !node.tops.empty()) return graph.values[node.tops[0]];
    }
    return Value();
  };
  const Value test = input_of(mine), train = input_of(theirs);
  const auto sample = [](const Value& value) {
    std::vector<int64_t> dims = value.shape.dims();
    if (!dims.empty()) dims.erase(dims.begin());
    return dims;
  };
  if (test.blob.empty() || train.blob.empty() || sample(test) == sample(train)) return "";
  return cat(": the data differ, \"", test.blob, "\" is ", test.shape.brief(), " here and \"",
             train.blob, "\" ", train.shape.brief(),
             " there: give both phases samples of one size (crop_size, new_height, the database)");
}

}  // namespace

void Net::share_parameters() {
  if (!options_.share) return;
  const Graph& other = options_.share->graph_;
  const std::vector<int> number = occurrences(graph_.parameters),
                         their_number = occurrences(other.parameters);
  for (size_t i = 0; i < graph_.parameters.size(); ++i) {
    Parameter& mine = graph_.parameters[i];
    for (size_t j = 0; j < other.parameters.size(); ++j) {
      const Parameter& theirs = other.parameters[j];
      if (theirs.layer != mine.layer || theirs.index != mine.index || number[i] != their_number[j])
        continue;
      const auto check = [&] {
        require(
            theirs.shape == mine.shape, "parameter ", mine.index, " has shape ", mine.shape.brief(),
            " in this net, but ", theirs.shape.brief(), " in the training net that owns it (",
            place_of_parameter(other, static_cast<int>(j)).where, ")", other_inputs(graph_, other));
      };
      if (theirs.shape != mine.shape)
        at_layer(place_of_parameter(graph_, static_cast<int>(i)), check);
      mine.data = theirs.data;
      mine.diff = theirs.diff;
      mine.half = theirs.half;
    }
  }
}

// Refuses nets whose passes change parameters: other threads read these at the same time.
void Net::take_weights(const Net& other) {
  const std::string refusal = "several threads cannot share the weights of this net";
  require(!training(), refusal, ": its passes are for training (phase TRAIN)");
  for (const Node& node : graph_.nodes) {
    at_layer(node.place, [&] {
      require(!node.layer->traits().changes_parameters, refusal,
              ": this layer changes its own in each pass");
    });
  }
  require(graph_.parameters.size() == other.graph_.parameters.size(), refusal,
          ": the nets are not the same");
  for (size_t i = 0; i < graph_.parameters.size(); ++i) {
    Parameter& mine = graph_.parameters[i];
    const Parameter& theirs = other.graph_.parameters[i];
    require(mine.layer == theirs.layer && mine.shape == theirs.shape, refusal,
            ": the nets are not the same");
    mine.data = theirs.data;
    mine.half = theirs.half;
  }
  parameter_data_ = other.parameter_data_;
  parameter_half_ = other.parameter_half_;
  parameter_offsets_ = other.parameter_offsets_;
  parameter_elements_ = other.parameter_elements_;
}

// Gives those that have none memory in the arena, in the plan's formats.
void Net::place_in_arena() {
  const int64_t total = parameter_elements_;
  const DType dtype = options_.dtype;
  parameter_data_ = Tensor(context_, Shape{total}, dtype);
  if (is_half(options_.precision))
    parameter_half_ = Tensor(context_, Shape{total}, storage_of(options_.precision, dtype));
  for (size_t i = 0; i < graph_.parameters.size(); ++i) {
    Parameter& parameter = graph_.parameters[i];
    if (parameter.data) continue;
    const size_t offset = static_cast<size_t>(parameter_offsets_[i]) * size_of(dtype);
    const Format& format = *plan_->parameter_formats[i];
    parameter.data = Tensor(parameter_data_.memory(), offset, parameter.shape, dtype, format);
    if (parameter_half_) {
      parameter.half = Tensor(parameter_half_.memory(), offset / size_of(dtype) * 2,
                              parameter.shape, parameter_half_.dtype(), format);
    }
  }
}

void Net::allocate_parameters() {
  for (size_t i = 0; i < graph_.parameters.size(); ++i) {
    if (!graph_.parameters[i].data) unfilled_.insert(static_cast<int>(i));
  }
  place_in_arena();
  if (!options_.weights_follow) fill_others({});
  for (const Node& node : graph_.nodes) {
    for (size_t k = 0; k < node.parameters.size(); ++k) {
      const Parameter& parameter = graph_.parameters[node.parameters[k]];
      const bool owned =
          parameter.layer == node.message.name() && !options_.share && !parameter.given;
      const Tensor given = owned ? node.layer->given_parameter(k) : Tensor();
      if (!given) continue;
      from_floats(context_, given.data<float>(), parameter.data);
      unfilled_.erase(node.parameters[k]);
    }
  }
  if (plan_->options.backward) place_diffs();
}

void Net::fill_others(const std::set<int>& loaded) {
  for (const int i : std::exchange(unfilled_, {})) {
    const Parameter& parameter = graph_.parameters[i];
    if (loaded.count(i) > 0) continue;
    if (parameter.given) {
      from_floats(context_, parameter.given->data(), parameter.data);
      continue;
    }
    at_layer({parameter.layer, ""}, [&] {
      fill(context_, *parameter.filler, context_.random(parameter.filler_stream), parameter.data);
    });
  }
}

// Moves the parameters of a net that is used on its own into an arena in row-major order.
void Net::store_in_rows() {
  require(!options_.share && weights_.use_count() == 1 && !is_half(options_.precision),
          "parameters that another net owns, or that have copies in 16 bits, keep their order");
  std::vector<Tensor> before, diffs;
  for (Parameter& parameter : graph_.parameters) {
    before.push_back(std::exchange(parameter.data, Tensor()));
    diffs.push_back(std::exchange(parameter.diff, Tensor()));
  }
  options_.row_major = true;
  parameter_data_ = parameter_diff_ = {};
  make_plan();
  place_in_arena();
  for (size_t i = 0; i < before.size(); ++i)
    from_floats(context_, to_floats(context_, before[i]).data(), graph_.parameters[i].data);
  if (!plan_->options.backward) return;
  place_diffs();
  for (size_t i = 0; i < diffs.size(); ++i) {
    if (diffs[i] && graph_.parameters[i].diff)
      from_floats(context_, to_floats(context_, diffs[i]).data(), graph_.parameters[i].diff);
  }
}

// In the same layout as the parameters.
void Net::place_diffs() {
  const DType dtype = options_.dtype;
  parameter_diff_ = Tensor(context_, Shape{parameter_elements_}, dtype);
  for (size_t i = 0; i < graph_.parameters.size(); ++i) {
    Parameter& parameter = graph_.parameters[i];
    if (parameter.data.memory() != parameter_data_.memory()) continue;
    const size_t offset = static_cast<size_t>(parameter_offsets_[i]) * size_of(dtype);
    parameter.diff =
        Tensor(parameter_diff_.memory(), offset, parameter.shape, dtype, parameter.data.format());
  }
}

// Counts changes of this net's parameters, whichever net has made them.
uint64_t Net::weights_version() const {
  return weights_->version + (options_.share ? options_.share->weights_version() : 0);
}

void Net::parameters_changed() {
  weights_->halves_stale = true;
  ++weights_->version;
}

void Net::change_parameters(const std::function<void()>& work) {
  const SharedWeights::Writing writing = weights_->write();
  parameters_changed();
  try {
    work();
  } catch (...) {
    context_.synchronize();
    throw;
  }
  context_.synchronize();
}

bool Net::halves_are_current() const {
  return (!weights_->halves_stale || !parameter_half_) &&
         (!options_.share || options_.share->halves_are_current());
}

bool Net::copies_are_current() {
  return halves_are_current() && ready().has_folded(weights_version());
}

void Net::refresh_halves() {
  if (options_.share) options_.share->refresh_halves();
  if (!weights_->halves_stale || !parameter_half_) return;
  reorder(context_, parameter_data_, parameter_half_);
  weights_->halves_stale = false;
}

void Net::refresh_copies() {
  if (copies_are_current()) return;
  refresh_halves();
  ready().write_folded(context_, graph_.parameters, weights_version());
}

SharedWeights::Reading Net::read_current_weights() {
  ready();  // may allocate
  for (;;) {
    SharedWeights::Reading reading = weights_->read();
    if (copies_are_current()) return reading;
    reading.unlock();
    const SharedWeights::Writing writing = weights_->write();
    refresh_copies();
    context_.synchronize();  // the other nets have streams of their own
  }
}

void Net::with_weights(const std::function<void()>& work) {
  const SharedWeights::Reading reading = read_current_weights();
  // The next writer uses another stream.
  const auto end_reading = [this] {
    if (weights_.use_count() > 1) context_.synchronize();
  };
  try {
    work();
  } catch (...) {
    end_reading();
    throw;
  }
  end_reading();
}

}  // namespace crema
