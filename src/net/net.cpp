#include "net/net.h"

#include <algorithm>

#include "base/log.h"
#include "device/cudnn.h"
#include "device/range.h"
#include "device/staging.h"
#include "kernels/move/reorder.h"
#include "net/forward_replay.h"
#include "net/graph/engine_note.h"
#include "net/graph/filter.h"
#include "net/graph/graph_builder.h"
#include "net/graph/loss_parts.h"
#include "net/plan/arena.h"
#include "net/plan/plan.h"

namespace crema {

namespace {

// As Caffe logs it, but for values of blobs: as text, those of a large layer take a minute.
std::string text_without_blobs(NetParameter* net) {
  using Blobs = google::protobuf::RepeatedPtrField<BlobProto>;
  std::vector<Blobs> kept(static_cast<size_t>(net->layer_size()));
  for (int i = 0; i < net->layer_size(); ++i) kept[i].Swap(net->mutable_layer(i)->mutable_blobs());
  std::string text = net->DebugString();
  for (int i = 0; i < net->layer_size(); ++i) kept[i].Swap(net->mutable_layer(i)->mutable_blobs());
  return text;
}

}  // namespace

Net::Net(Context& context, const NetParameter& net, NetOptions options)
    : context_(context),
      options_(std::move(options)),
      weights_(options_.weights_of ? options_.weights_of->weights_
                                   : std::make_shared<SharedWeights>()) {
  if (!options_.arena) options_.arena = std::make_shared<ArenaPool>();
  require(!is_half(options_.precision) ||
              (context.device() == Device::gpu && options_.dtype == DType::f32),
          "precision ", name_of(options_.precision), " needs a GPU: CPUs compute in fp32");
  require(!is_half(options_.precision) || options_.format, "precision ",
          name_of(options_.precision), " needs channels-last order: leave the format pass on");
  GraphOptions graph_options;
  graph_options.training = training();
  graph_options.seed_outputs = options_.seed_outputs;
  graph_options.whole_epochs = options_.whole_epochs;
  graph_options.folder = options_.folder;
  graph_options.frozen = options_.frozen;
  const auto kept = std::make_shared<std::vector<int>>();
  NetParameter filtered =
      filter_net(net, options_.state, context_.log(), kept.get(), options_.where);
  for (LayerParameter& layer : *filtered.mutable_layer()) {
    for (const auto& [blob, shape] : options_.input_shapes) set_input_shape(layer, blob, shape);
  }
  require(filtered.layer_size() > 0, "net \"", net.name(), "\" has no layer for phase ",
          Phase_Name(options_.state.phase()));
  if (options_.where)
    graph_options.where = [this, kept](int layer) { return options_.where((*kept)[layer]); };
  if (context.device() == Device::gpu && !has_cudnn() && !options_.share && !options_.weights_of) {
    const std::string note = note_on_cudnn_engine(filtered, graph_options.where);
    if (!note.empty()) context_.log().warning(note);
  }
  graph_options.why_missing = [&](const std::string& blob) {
    return why_left_out(net, options_.state, blob, options_.where);
  };
  *filtered.mutable_state() = options_.state;
  log_text(context_.log(),
           cat("Initializing net from parameters: \n", text_without_blobs(&filtered)));
  graph_ = build_graph(context_, filtered, graph_options);
  if (options_.dtype != DType::f32) {  // records on the device are given as float32
    for (const auto& [node, source] : sources_of(graph_)) source.release_resident();
  }
  if (training() && context_.world()) check_loss_parts(graph_, *context_.world());
  if (options_.kept) {
    for (const int id : options_.kept(graph_)) graph_.values[id].keep = true;
  }
  share_parameters();
  if (options_.weights_of) take_weights(*options_.weights_of);
  make_plan();
  if (!options_.weights_of) {
    allocate_parameters();
  } else if (plan_->options.backward) {
    place_diffs();
  }
  options_.weights_of = nullptr;
}

Net::~Net() = default;

Plan& Net::ready() {
  planned();
  // Earlier plans would keep the old arena.
  if (options_.arena->held() < options_.arena->bytes()) earlier_plans_.clear();
  const std::shared_ptr<Buffer>& arena = options_.arena->buffer(context_);
  if (plan_->bound() != arena.get()) {
    plan_->take_folded(context_, weights_->folded);
    plan_->bind(context_, arena, graph_.parameters);
    diffs_are_clear_ = false;
    ++generation_;
    if (live_pass_) set_live_pass(live_pass_);
  }
  return *plan_;
}

void Net::run(const PlanNode& node, bool backward, const std::function<void()>& body) {
  const Range range(node.message.name().c_str());
  if (observer_) observer_({&node, backward}, true);
  at_layer(node.place, body);
  if (observer_) observer_({&node, backward}, false);
}

// A plan is for fixed shapes: it is rebuilt when a source has images of another size.
void Net::update_source_shapes(uint64_t pass) {
  update_source_shapes(pass, 0, graph_.net.layer_size() - 1);
}

// For a pass of the layers from `first` to `last`.
void Net::update_source_shapes(uint64_t pass, int first, int last) {
  bool changed = false;
  for (const auto& [node, source] : sources_of(graph_)) {
    if (node.members[0] < first || node.members[0] > last) continue;
    at_layer(node.place, [&, &source = source] { changed |= source.reshapes(pass); });
  }
  if (!changed) return;
  if (plan_) check();  // errors that layers recorded are lost with the plan
  const std::vector<std::pair<int, Tensor>> inputs = input_values();
  infer_shapes(graph_, first, last);
  set_plan_aside();
  if (inputs.empty()) return;
  const Plan& plan = ready();
  for (const auto& [id, values] : inputs) reorder(context_, values, plan.value(id));
}

bool Net::dynamic() const {
  return std::any_of(graph_.nodes.begin(), graph_.nodes.end(),
                     [](const Node& node) { return node.layer->traits().dynamic; });
}

void Net::check() {
  for (const PlanNode& node : ready().nodes) {
    if (node.stale) continue;
    at_layer(node.place, [&] { node.layer->check(context_, node.arguments.forward); });
  }
}

double Net::loss() {
  check();
  double total = 0;
  for (const Loss& part : losses()) {
    double sum = 0;
    for (double element : to_doubles(context_, part.value)) sum += element;
    total += part.weight * sum;
  }
  return total;
}

std::vector<Net::Loss> Net::losses() {
  Plan& plan = ready();
  std::vector<Loss> parts;
  for (size_t id = 0; id < plan.values.size(); ++id) {
    const PlanValue& value = plan.values[id];
    if (value.loss_weight == 0) continue;
    const int number = static_cast<int>(id);
    const Tensor seed = value.seed_storage >= 0 ? plan.seed(number) : plan.diff(number);
    const LossShares shares = plan.loss_shares(value);
    parts.push_back({value.loss_weight, shares.loss, shares.gradient, plan.value(number), seed,
                     shares.count ? plan.loss_count(value) : Tensor()});
  }
  return parts;
}

std::vector<Tensor> Net::carried() {
  planned();
  // Records for later passes have their own type.
  const auto is_carried = [](const TensorSpec& spec) { return spec.persistent && !spec.dtype; };
  const auto any = [&](const PlanNode& node) {
    return std::any_of(node.saved.begin(), node.saved.end(), is_carried);
  };
  std::vector<Tensor> all;
  if (std::none_of(plan_->nodes.begin(), plan_->nodes.end(), any)) return all;
  for (const PlanNode& node : ready().nodes) {
    for (size_t k = 0; k < node.saved.size(); ++k) {
      if (is_carried(node.saved[k])) all.push_back(node.arguments.forward.saved[k]);
    }
  }
  return all;
}

void Net::clear_carried() {
  for (const Tensor& tensor : carried()) zero(context_, tensor);
}

std::vector<int> Net::early_parameters() {
  const Plan& plan = ready();
  return plan.early_node < 0 ? std::vector<int>() : plan.nodes[plan.early_node].parameters;
}

std::vector<Net::Output> Net::outputs() {
  Plan& plan = ready();
  std::vector<Output> all;
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    const int id = plan.outputs[i];
    const PlanValue& value = plan.values[id];
    all.push_back({graph_.output_names[i], value.loss_weight, plan.value(id)});
    if (value.loss_weight != 0 || value.top != 0 || !plan.options.backward) continue;
    const PartsRule parts = plan.loss_parts(plan.nodes[value.producer]).loss;
    if (parts == PartsRule::sum && !plan.options.shares_batches) continue;
    if (parts == PartsRule::cannot) continue;
    all.back().parts = parts;
    if (parts == PartsRule::counted) all.back().count = plan.loss_count(value);
  }
  return all;
}

std::vector<Tensor> Net::output_diffs() {
  Plan& plan = ready();
  std::vector<Tensor> all;
  for (int id : plan.outputs) {
    const bool runs =
        plan.nodes[plan.values[id].producer].backward && plan.values[id].diff_storage >= 0;
    all.push_back(runs ? plan.diff(id) : Tensor());
  }
  return all;
}

int Net::find_value(const std::string& name) {
  Plan& plan = ready();
  for (int i = graph_.net.layer_size() - 1; i >= 0; --i) {
    const LayerParameter& layer = graph_.net.layer(i);
    for (int j = 0; j < layer.top_size(); ++j) {
      if (layer.top(j) != name) continue;
      const int id = graph_.views[i].tops[j];
      const bool whole = id < static_cast<int>(plan.values.size()) &&
                         plan.values[id].storage >= 0 && !plan.values[id].in_micro_batch;
      return whole ? id : -1;
    }
  }
  return -1;
}

bool Net::has_blob(const std::string& name) const {
  return const_cast<Net*>(this)->find_value(name) >= 0;
}

Tensor Net::blob(const std::string& name) {
  const int id = find_value(name);
  if (id >= 0) return plan_->value(id);
  std::vector<std::string> names;
  for (const LayerParameter& layer : graph_.net.layer())
    names.insert(names.end(), layer.top().begin(), layer.top().end());
  const bool exists = std::count(names.begin(), names.end(), name) > 0;
  fail("net \"", this->name(), "\" has no blob \"", name, "\"",
       exists ? ": planning the net removed it (ask for keep_blobs)" : did_you_mean(name, names));
}

Tensor Net::diff(const std::string& name) {
  const int id = find_value(name);
  return id < 0 ? Tensor() : plan_->diff(id);
}

std::string Net::dump_plan() {
  const std::string steps = ready().dump(graph_);
  const MemoryKinds m = memory();
  return cat(steps, "parameters: ", size_text(m.parameters), ", gradients ", size_text(m.diffs),
             ", 16-bit copies ", size_text(m.halves),
             options_.share ? "; the rest is that of the training net\n" : "\n");
}

void Net::set_observer(std::function<void(const StepInfo&, bool begin)> observer) {
  observer_ = std::move(observer);
}

}  // namespace crema
