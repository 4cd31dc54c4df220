#include "python/net/net_object.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "layers/data/memory_data.h"
#include "net/prototxt/net_input.h"
#include "net/weights/weights.h"
#include "python/gil.h"
#include "python/mode.h"

namespace crema::python {

namespace py = pybind11;

namespace {

// A net that only Python uses.
struct OwnNet {
  std::unique_ptr<Context> context;
  std::unique_ptr<Net> net;
  const MadeInProcess made;

  ~OwnNet() {
    if (!made.here()) {
      static_cast<void>(net.release());
      static_cast<void>(context.release());
    }
    if (!context) return;
    const DeviceScope scope = enter(*context);
    net.reset();
    context.reset();
  }
};

Precision precision_of(const NetFormat& format, const Context& context) {
  if (!format.precision.empty()) return precision_named(format.precision);
  return format.planned ? precision_for(context, "") : Precision::fp32;
}

bool has_python(const NetParameter& net) {
  return std::any_of(net.layer().begin(), net.layer().end(),
                     [](const LayerParameter& layer) { return layer.type() == "Python"; });
}

// Whether a pass can be repeated when the program reads a blob, with the same results and no other
// effects. Python layers are not called again for that.
bool can_be_lazy(const NetParameter& net) {
  std::set<std::string> inputs;
  for (const LayerParameter& layer : net.layer()) {
    const std::string& type = layer.type();
    if (type == "Input") inputs.insert(layer.top().begin(), layer.top().end());
    const bool writes_files = (layer.top_size() == 0 && type != "Silence" && type != "Python") ||
                              layer.detection_output_param().has_save_output_param();
    if (type == "MemoryData" || writes_files) return false;
    for (int j = 0; j < layer.top_size() && j < layer.bottom_size(); ++j) {
      if (layer.top(j) == layer.bottom(j) && inputs.count(layer.top(j))) return false;
    }
  }
  return true;
}

}  // namespace

NetObject::NetObject(std::shared_ptr<void> owner, Net& net, std::shared_ptr<NetLock> lock,
                     uint64_t* passes)
    : owner_(std::move(owner)),
      net_(net),
      lock_(std::move(lock)),
      passes_(passes ? passes : &own_passes_),
      map_(net.graph()) {
  lock_->nets.push_back(this);
}

NetObject::~NetObject() { std::erase(lock_->nets, this); }

std::shared_ptr<NetObject> NetObject::open(const std::string& path, const NetFormat& format) {
  require(format.phase == TRAIN || format.phase == TEST, "phase ", format.phase,
          ": expected crema.TRAIN (0) or crema.TEST (1)");
  const auto own = std::make_shared<OwnNet>();
  std::shared_ptr<NetObject> object;
  {
    const ReleaseGil release;
    own->context = make_context();
    const DeviceScope scope = enter(*own->context);
    NetState outer;
    outer.set_level(format.level);
    for (const std::string& stage : format.stages) outer.add_stage(stage);
    NetInput input =
        read_net_input(path, static_cast<Phase>(format.phase), outer, own->context->log());
    input.options.precision = precision_of(format, *own->context);
    const bool lazy = !format.planned && own->context->device() == Device::cpu &&
                      format.phase == TEST && can_be_lazy(input.net);
    input.options.keep_blobs = !format.planned && !lazy;
    input.options.row_major = input.options.keep_blobs && !is_half(input.options.precision);
    input.options.forward_only = lazy;
    // Views of weights may change them before any pass, and packing takes longer than a pass.
    input.options.pack = false;
    // As Caffe's force_backward: gradients start from whatever the program writes into an output's.
    input.options.seed_outputs = input.net.force_backward();
    std::vector<std::string> files = split(format.weights, ',');
    std::erase(files, "");
    input.options.weights_follow = !files.empty();
    own->net = std::make_unique<Net>(*own->context, input.net, input.options);
    for (const std::string& file : files)
      load_weights(*own->net, file, {WeightsMode::strict, false});
    // The state that a layer passes from pass to pass would be lost if one were repeated.
    const bool carries = lazy && !own->net->carried().empty();
    if (carries) own->net->look_into(input.net.force_backward(), true);
    object = std::make_shared<NetObject>(own, *own->net, std::make_shared<NetLock>());
    object->lazy_ = lazy && !carries;
    object->plans_gradients_ =
        object->lazy_ && input.net.force_backward() && !has_python(input.net);
  }
  object->planned_ = format.planned;
  return object;
}

void NetObject::clear_param_diffs() {
  const NetLock::Hold hold(lock_);
  const DeviceScope scope = enter(net_.context());
  if (lazy_ && !net_.plan().options.backward) return;  // it has none
  write_back();
  for (const Parameter& parameter : net_.parameters()) {
    if (parameter.diff) zero(net_.context(), parameter.diff);
  }
  net_.context().synchronize();
}

void NetObject::reshape() {
  const NetLock::Hold hold(lock_);
  require(!running_, "the net is running: a callback cannot reshape it");
  const DeviceScope scope = enter(net_.context());
  apply_reshapes(0, layers() - 1);
}

void NetObject::load(const std::string& path) {
  const NetLock::Hold hold(lock_);
  const DeviceScope scope = enter(net_.context());
  write_back_others();
  write_back_weights();
  if (has_pass_) {
    for (size_t i = 0; i < net_.parameters().size(); ++i) {
      if (const int parameter = static_cast<int>(i); weights_of_last_pass_.count(parameter) == 0)
        weights_of_last_pass_[parameter] = to_floats(net_.context(), net_.parameters()[i].data);
    }
  }
  {
    const ReleaseGil release;
    load_weights(net_, path, {WeightsMode::strict, false});
  }
  for (auto& [key, mirror] : mirrors_) {
    if (key.first == kParameter && net_.context().device() == Device::cpu)
      mirror.read(net_.context(), tensor(key));
  }
  weights_changed();
}

void NetObject::save(const std::string& path, bool hdf5) {
  const NetLock::Hold hold(lock_);
  const DeviceScope scope = enter(net_.context());
  write_back_others();
  write_back_weights();
  const ReleaseGil release;
  hdf5 ? save_hdf5(net_, path) : save_caffemodel(net_, path);
}

// All nets that share memory with this one are then under that lock.
void NetObject::join(const std::shared_ptr<NetLock>& lock) {
  if (lock == lock_) return;
  const std::vector<NetObject*> nets = std::exchange(lock_->nets, {});
  lock->nets.insert(lock->nets.end(), nets.begin(), nets.end());
  for (NetObject* const net : nets) net->lock_ = lock;
}

void NetObject::share_with(const std::shared_ptr<NetObject>& other) {
  if (other.get() == this) return;
  const NetLock::HoldBoth hold(lock_, other->lock_);
  require(!running_ && !other->running_, "share_with: one of the nets is running");
  // Each may change the other's weights between a pass and a look.
  for (NetObject* const net : {this, other.get()}) {
    if (net->lazy_) net->look_into(false);
  }
  Net& from = other->net_;
  require(net_.context().device() == from.context().device() &&
              net_.context().ordinal() == from.context().ordinal(),
          "share_with: the two nets are on different devices");
  require(!net_.half_arena() && !from.half_arena(),
          "share_with: nets that compute in 16 bits have copies of their own of the weights");
  std::vector<std::pair<Parameter*, Tensor>> found;
  bool alike = true, shared = true;
  for (Parameter& mine : net_.parameters()) {
    for (const Parameter& theirs : from.parameters()) {
      if (mine.layer != theirs.layer || mine.index != theirs.index) continue;
      require(mine.shape == theirs.shape, "share_with: layer \"", mine.layer, "\": parameter ",
              mine.index, " has shape ", mine.shape.brief(), " in this net, but ",
              theirs.shape.brief(), " in the other");
      alike = alike && same_layout(mine.data.format(), theirs.data.format(), mine.shape);
      shared = shared && mine.data.raw() == theirs.data.raw();
      found.emplace_back(&mine, theirs.data);
    }
  }
  if (shared) return;
  require(
      passes_ == &own_passes_,
      "share_with: the solver updates the weights of its own nets: let the other net share_with() "
      "this one");
  const DeviceScope scope = enter(net_.context());
  write_back();
  join(other->lock_);
  const auto take = [&] {
    for (const auto& [mine, data] : found) mine->data = data;
  };
  if (!alike) {
    // The other one is planned, as a solver's is: its weights are in the order that its kernels like.
    return plan_again([&] {
      take();
      net_.plan_like(from);
    });
  }
  take();
  plan();
  net_.parameters_moved();
}

void NetObject::set_input_arrays(const py::handle& data, const py::handle& labels,
                                 const std::string& layer) {
  const int index = layer.empty() ? 0 : map_.layer(layer);
  require(map_.layers[index].type == "MemoryData", "set_input_arrays: layer \"",
          map_.layers[index].name, "\" is of type ", map_.layers[index].type,
          ": arrays can be given to MemoryData layers only");
  const auto images = floats_of(data), numbers = floats_of(labels);
  const NetLock::Hold hold(lock_);
  const DeviceScope scope = enter(net_.context());
  for (const Node& node : net_.graph().nodes) {
    if (node.members.back() != index) continue;
    const MemoryDataParameter& p = node.message.memory_data_param();
    const std::vector<py::ssize_t> got(images.shape(), images.shape() + images.ndim());
    std::vector<int64_t> wanted = {p.channels(), p.height(), p.width()};
    if (p.dim_size() > 0) wanted.assign(p.dim().begin() + 1, p.dim().end());
    const bool fits = !got.empty() && std::vector<int64_t>(got.begin() + 1, got.end()) == wanted;
    require(fits, "set_input_arrays: the images have the shape ",
            Shape(std::vector<int64_t>(got.begin(), got.end())).brief(), ", but layer \"",
            map_.layers[index].name, "\" takes N x ", Shape(wanted).brief());
    const int64_t count = got[0];
    const int64_t batch = p.dim_size() > 0 ? p.dim(0) : p.batch_size();
    require(numbers.size() == count, "set_input_arrays: ", count, " images, but ", numbers.size(),
            " labels");
    require(count > 0 && count % batch == 0, "set_input_arrays: ", count,
            " images are not a multiple of the batch size, ", batch);
    // The next pass begins with the first image, whatever its number is.
    const int64_t size = images.size() / count;
    const auto first =
        static_cast<int64_t>(*passes_ % static_cast<uint64_t>(count / batch)) * batch;
    std::vector<float> all(images.size()), all_labels(count);
    for (int64_t n = 0; n < count; ++n) {
      const int64_t to = (first + n) % count;
      std::copy_n(images.data() + n * size, size, all.data() + to * size);
      all_labels[to] = numbers.data()[n];
    }
    memory_data(*node.layer).set(std::move(all), std::move(all_labels));
    return;
  }
}

void NetObject::add_callback(Moment moment, py::function callback) {
  const NetLock::Hold hold(lock_);
  require(!planned_,
          "a planned net runs several layers as one: open it without planned=True for "
          "callbacks between layers");
  callbacks_[moment].push_back(std::move(callback));
}

}  // namespace crema::python
