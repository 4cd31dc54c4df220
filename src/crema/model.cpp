#include <algorithm>

#include "base/error.h"
#include "crema.h"
#include "crema/deployed_net.h"
#include "crema/partial_passes.h"
#include "crema/pictures.h"
#include "crema/session.h"
#include "crema/setting_names.h"
#include "net/prototxt/net_input.h"
#include "net/sources/batch_size.h"

namespace crema {

namespace {

void set_batch(NetInput* input, int batch) {
  for (int i = 0; i < input->net.layer_size(); ++i) {
    if (!is_source(input->net.layer(i))) continue;
    try {
      set_batch_size(*input->net.mutable_layer(i), batch);
    } catch (const Error& error) {
      fail(input->options.where(i), ": batch ", batch, ": ", error.what());
    }
  }
}

// Reads a net of a phase, from a file or from text.
using ReadNet = std::function<NetInput(Phase phase, const NetState& outer, Log& log)>;

NetInput read(const ReadNet& read_net, const ModelOptions& options, Context& context) {
  require(options.phase == "TEST" || options.phase == "TRAIN", "phase \"", options.phase,
          "\": expected TEST or TRAIN");
  require(options.assume.empty() || options.deploy, setting_names().assume,
          " is for nets that are opened with deploy");
  require(options.batch >= 0, "batch ", options.batch, ": expected a positive number");
  NetState outer;
  outer.set_level(options.level);
  for (const std::string& stage : options.stages) outer.add_stage(stage);
  NetInput input = read_net(options.phase == "TRAIN" ? TRAIN : TEST, outer, context.log());
  if (options.deploy) {
    make_deployed(&input, options, context.log());
  } else if (options.batch > 0) {
    set_batch(&input, options.batch);
  }
  input.options.precision = precision_for(context, options.precision);
  input.options.keep_blobs = options.keep_blobs || options.gradients;
  input.options.backward = input.options.seed_outputs = options.gradients;
  if (options.gradients) input.net.set_force_backward(true);
  input.options.weights_follow = !options.weights.empty() || !options.weights_contents.empty();
  return input;
}

}  // namespace

int usable_gpus() { return gpu_count(); }

struct Model::Impl {
  Impl(const std::string& path, const ModelOptions& options, NetInput read,
       std::unique_ptr<Session> made)
      : session(std::move(made)),
        net(session->context, read.net, read.options),
        inputs(net),
        parts(net),
        pictures(read.preparation, read.options.folder, options.pictures),
        weights_mode(weights_mode_named(options.weights_mode)),
        path(path) {
    // What shared() needs.
    for (LayerParameter& layer : *read.net.mutable_layer()) layer.clear_blobs();
    text = std::make_shared<const NetInput>(std::move(read));
  }

  // On the weights of another.
  Impl(Impl& other, std::unique_ptr<Session> made)
      : session(std::move(made)),
        text(other.text),
        net(session->context, text->net, other.shared_options()),
        inputs(net),
        parts(net),
        pictures(other.pictures),
        weights_mode(other.weights_mode),
        path(other.path) {}

  static std::unique_ptr<Impl> open(const ReadNet& read_net, const std::string& path,
                                    ModelOptions options) {
    const DeviceScope scope = device_scope(options.device);
    auto session = std::make_unique<Session>(options.device, options.deterministic,
                                             CallbackLog(std::move(options.log)));
    NetInput input = read(read_net, options, session->context);
    auto made = std::make_unique<Impl>(path, options, std::move(input), std::move(session));
    for (const std::string& file : options.weights) made->load(file);
    for (const std::string_view content : options.weights_contents)
      made->load(content, path + "'s weights");
    return made;
  }

  NetOptions shared_options() {
    NetOptions options = text->options;
    options.weights_of = &net;
    for (const BlobInfo& input : inputs.list())
      options.input_shapes.emplace_back(input.name, Shape(input.shape));
    return options;
  }

  void load(const std::string& file) {
    net.change_parameters([&] { crema::load_weights(net, file, {weights_mode}); });
  }
  void load(std::string_view content, const std::string& name) {
    net.change_parameters([&] { crema::load_weights_content(net, content, name, {weights_mode}); });
  }

  void require_gradients() const {
    require(net.options().seed_outputs, path,
            ": gradients need a model that was opened with gradients");
  }

  void begin_pass() {
    inputs.check();
    inputs.give();
  }

  // Without keep_blobs the memory of all others is used again within a pass.
  Tensor readable(const std::string& name) {
    if (!net.options().keep_blobs) {
      for (const Net::Output& output : net.outputs()) {
        if (output.blob == name) return output.value;
      }
      for (const Value& value : net.graph().values) {
        if (value.blob == name)
          fail(
              path, ": blob \"", name,
              "\" is not an output, so its memory is used again: open the model with keep_blobs to "
              "read it");
      }
      return net.blob(name);
    }
    return parts.blob(name);
  }

  std::unique_ptr<Session> session;
  std::shared_ptr<const NetInput> text;
  Net net;
  CallerInputs inputs;
  PartialPasses parts;
  ModelPictures pictures;
  WeightsMode weights_mode;
  std::string path;
  uint64_t passes = 0;
};

Model::Model(const std::string& net_file, ModelOptions options)
    : impl_(Impl::open([&](Phase phase, const NetState& outer,
                           Log& log) { return read_net_input(net_file, phase, outer, log); },
                       net_file, std::move(options))) {}

Model Model::from_text(const std::string& text, ModelOptions options, const std::string& name) {
  return Model(Impl::open([&](Phase phase, const NetState& outer,
                              Log& log) { return parse_net_input(text, name, phase, outer, log); },
                          name, std::move(options)));
}

Model::Model(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Model Model::shared() const {
  const Session& session = *impl_->session;
  const DeviceScope scope = impl_->session->enter();
  session.context.synchronize();  // the weights may still be being written
  auto made = std::make_unique<Session>(session.device, session.context.repeatable, session.log);
  return Model(std::make_unique<Impl>(*impl_, std::move(made)));
}

Model::~Model() {
  if (!impl_) return;
  const DeviceScope scope = impl_->session->enter();
  impl_.reset();
}

Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&& other) noexcept {
  std::swap(impl_, other.impl_);
  return *this;
}

const std::string& Model::name() const { return impl_->net.name(); }

std::vector<BlobInfo> Model::inputs() const {
  const DeviceScope scope = impl_->session->enter();
  return impl_->inputs.list();
}

std::vector<BlobInfo> Model::outputs() const {
  const DeviceScope scope = impl_->session->enter();
  std::vector<BlobInfo> all;
  for (const Net::Output& output : impl_->net.outputs()) {
    all.push_back(describe_blob(output.blob, output.value));
    all.back().layer_type = producing_type(impl_->net.graph(), output.blob);
  }
  return all;
}

void Model::set_input(const std::string& name, std::span<const float> values) {
  const DeviceScope scope = impl_->session->enter();
  impl_->inputs.set(name, values);
  impl_->pictures.forget(name);
}

std::span<float> Model::input(const std::string& name) {
  const DeviceScope scope = impl_->session->enter();
  const std::span<float> values = impl_->inputs.in_place(name);
  impl_->pictures.forget(name);
  return values;
}

void Model::set_picture(const std::string& name, const std::string& file, int sample) {
  const DeviceScope scope = impl_->session->enter();
  impl_->inputs.check_name(name);
  impl_->inputs.set(name, impl_->pictures.set(impl_->net, name, sample, file));
}

void Model::set_picture(const std::string& name, const PictureView& picture, int sample) {
  const DeviceScope scope = impl_->session->enter();
  impl_->inputs.check_name(name);
  impl_->inputs.set(name, impl_->pictures.set(impl_->net, name, sample, picture));
}

void Model::set_picture_content(const std::string& name, std::string_view file, int sample) {
  const DeviceScope scope = impl_->session->enter();
  impl_->inputs.check_name(name);
  impl_->inputs.set(name, impl_->pictures.set_content(impl_->net, name, sample, file));
}

std::vector<ClassScore> Model::best(int count, int sample, const std::string& blob) const {
  const DeviceScope scope = impl_->session->enter();
  impl_->parts.require_whole();
  return impl_->pictures.best(impl_->net, count, sample, blob);
}

std::vector<std::string> Model::class_names(int64_t count) const {
  return impl_->pictures.class_names(count, impl_->session->context.log());
}

Model::PictureReader Model::picture_reader(const std::string& name) const {
  const DeviceScope scope = impl_->session->enter();
  impl_->inputs.check_name(name);
  return impl_->pictures.reader(impl_->net, name);
}

void Model::reshape(const std::string& name, const std::vector<int64_t>& shape) {
  reshape({{name, shape}});
}

void Model::reshape(const std::vector<InputShape>& shapes) {
  if (shapes.empty()) return;
  const DeviceScope scope = impl_->session->enter();
  std::vector<std::pair<std::string, Shape>> before, after;
  for (const auto& [name, shape] : shapes) {
    impl_->inputs.check_name(name);
    before.emplace_back(name, impl_->net.input(name).shape());
    after.emplace_back(name, Shape(shape));
  }
  impl_->inputs.forget();
  try {
    impl_->net.reshape(after);
    impl_->net.input(shapes[0].first);  // makes the plan, which may not fit
  } catch (...) {
    impl_->net.reshape(before);
    throw;
  }
}

void Model::forward() {
  const DeviceScope scope = impl_->session->enter();
  impl_->begin_pass();
  impl_->net.forward(impl_->passes++);
  impl_->parts.end_at_last_layer();
  impl_->net.check();
}

void Model::forward_to(const std::string& last) {
  const DeviceScope scope = impl_->session->enter();
  require(impl_->net.options().keep_blobs, impl_->path,
          ": a pass up to a layer needs a model that was opened with keep_blobs");
  const int layer = impl_->parts.last_layer(last);
  impl_->begin_pass();
  impl_->net.forward_layers(impl_->passes++, 0, layer);
  impl_->parts.end_at(layer);
  impl_->net.check();
}

void Model::backward(const std::string& blob, std::span<const float> gradient) {
  const DeviceScope scope = impl_->session->enter();
  impl_->require_gradients();
  impl_->parts.backward(blob, gradient);
}

std::vector<float> Model::gradient(const std::string& name) const {
  const DeviceScope scope = impl_->session->enter();
  impl_->require_gradients();
  return to_floats(impl_->session->context, impl_->parts.gradient(name));
}

BlobInfo Model::blob(const std::string& name) const {
  const DeviceScope scope = impl_->session->enter();
  return describe_blob(name, impl_->readable(name));
}

std::vector<float> Model::values(const std::string& name) const {
  const DeviceScope scope = impl_->session->enter();
  return to_floats(impl_->session->context, impl_->readable(name));
}

void Model::values(const std::string& name, std::span<float> to) const {
  const DeviceScope scope = impl_->session->enter();
  const Tensor blob = impl_->readable(name);
  require(static_cast<int64_t>(to.size()) == blob.count(), "blob \"", name, "\" has ", blob.count(),
          " values, its shape is ", blob.shape().brief(), "; there is memory for ", to.size());
  const std::vector<float> values = to_floats(impl_->session->context, blob);
  std::copy(values.begin(), values.end(), to.begin());
}

std::span<const float> Model::view(const std::string& name) const {
  const DeviceScope scope = impl_->session->enter();
  const Tensor blob = impl_->readable(name);
  const char* reason = nullptr;
  if (blob.device() == Device::gpu) {
    reason = "is on a GPU";
  } else if (blob.dtype() != DType::f32) {
    reason = "is not stored in float32";
  } else if (!same_layout(blob.format(), Format::row_major(), blob.shape())) {
    reason = "is not stored in row-major order";
  }
  if (reason) fail("blob \"", name, "\" ", reason, ": copy it with values()");
  return {blob.data<float>(), static_cast<size_t>(blob.count())};
}

void Model::load_weights(const std::string& path) {
  const DeviceScope scope = impl_->session->enter();
  impl_->load(path);
}

void Model::load_weights_content(std::string_view content, const std::string& name) {
  const DeviceScope scope = impl_->session->enter();
  impl_->load(content, name);
}

std::vector<ParameterInfo> Model::parameters() const { return list_parameters(impl_->net); }

std::vector<float> Model::parameter(const std::string& layer, int index) const {
  const DeviceScope scope = impl_->session->enter();
  return read_parameter(impl_->net, layer, index);
}

void Model::set_parameter(const std::string& layer, int index, std::span<const float> values) {
  const DeviceScope scope = impl_->session->enter();
  write_parameter(impl_->net, layer, index, values);
}

}  // namespace crema
