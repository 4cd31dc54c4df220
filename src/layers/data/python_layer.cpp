// Python: a layer written in Python, a class that derives from crema.Layer. It runs in programs
// that use the Python module, and in the tools, which start an interpreter for it; -assume
// TOP=SHAPE for the layer's tops avoids that. The classes of well-known public nets need no Python.
// Shapes: set by the class's reshape(); its forward() may change them for the pass.
// Parameters: python_param: module and layer (the class), param_str. The blobs that the class adds
// in setup() are trained like those of any layer, starting from the values set there.
// Gradient: written by the class's backward(); zero where it writes nothing.
#include <algorithm>
#include <chrono>
#include <optional>

#include "base/error.h"
#include "layers/layer.h"
#include "layers/python_hook.h"
#include "proto/filler.pb.h"
#include "proto/layer.pb.h"
#include "tensor/part.h"

namespace crema {
namespace {

// Whether Python can read and write this memory itself.
bool is_direct(const Tensor& tensor) {
  return tensor.device() == Device::cpu && tensor.dtype() == DType::f32 && tensor.memory();
}

Tensor front(const Tensor& tensor, const Shape& shape) {
  return tensor.shape() == shape ? tensor : part(tensor, shape);
}

void to_host(Context& context, const Tensor& from, const Tensor& to) {
  if (from.raw() == to.raw() || to.count() == 0) return;
  const std::vector<float> values = to_floats(context, from);
  const auto count = std::min<int64_t>(from.count(), to.count());  // its class may have reshaped it
  std::copy_n(values.begin(), count, to.data<float>());
}

void from_host(Context& context, const Tensor& from, const Tensor& to) {
  if (from.raw() != to.raw() && to.count() > 0) from_floats(context, from.data<float>(), to);
}

class PythonLayer : public Layer, public DataSource {
 public:
  static constexpr LayerFacts facts = {.content = SourceContent::given};

  Arity bottoms() const override { return {0, -1}; }
  Arity tops() const override { return {0, -1}; }
  DataSource* source() override { return is_source() ? this : nullptr; }
  // Dynamic, as Caffe calls reshape() in each pass, with the values there; a source's shapes are known
  // before its pass. A class may write its tops once and leave them.
  LayerTraits traits() const override {
    return {.dynamic = !is_source(),
            .keeps_tops = true,
            .changes_parameters = !blobs_.empty(),  // a class may
            .works_on_host = true};
  }

  PythonObject* object() const { return object_.get(); }
  void repeat(bool on) {
    repeated_.reset();
    if (!on || is_source()) return;  // a source does not run twice in a pass
    repeated_.emplace();
    for (const auto& top : top_)
      repeated_->emplace_back(top->shape(), to_floats(*host_, top->data()));
  }
  LossParts loss_parts(const std::vector<Shape>&) const override { return parts_; }
  Tensor given_parameter(size_t index) const override {
    return index < given_.size() ? given_[index] : Tensor();
  }

  void setup(Context& context, const std::vector<Shape>& bottoms) override {
    const auto& p = params<PythonParameter>();
    require(!p.module().empty() && !p.layer().empty(),
            "python_param needs a module and a layer, the class in that module");
    const PythonMaker make = python_maker();
    if (!make) {
      std::string assumed;
      for (const std::string& top : message().top())
        assumed += cat(assumed.empty() ? "" : ",", top, "=SHAPE");
      fail("it is class ", p.layer(), " of the Python module ", p.module(),
           ", and this program runs no Python layers",
           assumed.empty() ? "" : cat("; -assume ", assumed, " puts inputs in its place"));
    }
    const auto host = host_ = std::make_shared<Context>(Device::cpu);
    for (const Shape& shape : bottoms) bottom_.push_back(std::make_shared<HostBlob>(host, shape));
    in_place_.assign(bottoms.size(), -1);
    for (int j = 0; j < message().top_size(); ++j) {
      top_.push_back(std::make_shared<HostBlob>(host, Shape()));
      for (int i = 0; i < message().bottom_size(); ++i) {
        if (message().bottom(i) != message().top(j)) continue;
        top_.back() = bottom_[i];
        in_place_[i] = j;
      }
    }
    object_ = make({p.module(), p.layer(), p.has_param_str_() ? p.param_str_() : p.param_str(),
                    name(), training(), context.rank(), context.ranks(), folder(), host});
    object_->setup(bottom_, top_);
    blobs_ = object_->blobs();
    set_parts(p.layer(), object_->loss_parts());
    own_losses_.resize(training() && context.ranks() > 1 ? top_.size() : 0);
    for (const auto& blob : blobs_) {
      blob->fix_shape();
      given_.push_back(blob->has_data() ? blob->data() : Tensor());
      known_.push_back(given_.back() ? to_floats(*host, given_.back())
                                     : std::vector<float>(blob->shape().count()));
      add_parameter(blob->shape(), FillerParameter::default_instance());
    }
    if (is_source()) object_->reshape(bottom_, top_);
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    if (!is_source()) {
      for (size_t i = 0; i < bottoms.size(); ++i) {
        bottom_[i]->view_data({});
        bottom_[i]->view_diff({});
        bottom_[i]->reshape(bottoms[i]);
      }
      object_->reshape(bottom_, top_);
    }
    planned_ = shapes();
    return {planned_, {}};
  }

  // --- a source: its pass is run before the plan's, which needs its shapes ---

  // A pass that is run again (a net that is looked into afterwards) has the same data.
  bool reshapes(uint64_t pass) override {
    if (pass == last_pass_) return false;
    run_source(pass);
    return shapes() != planned_;
  }
  void run_source(uint64_t pass) const {
    if (waiting_ || pass == last_pass_) return;
    const auto start = std::chrono::steady_clock::now();
    object_->reshape(bottom_, top_);
    object_->forward(pass, bottom_, top_);
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    waiting_ = true;
  }
  double waited() const override { return seconds_; }
  std::string waiting_hint() const override {
    return "it is written in Python: it is waited for less if its class prepares the next batch in "
           "a "
           "thread or process of its own";
  }

  // --- passes ---

  void forward(Context& context, const Forward& pass) const override {
    view_parameters(context, pass.parameters);
    if (is_source()) {
      run_source(pass.pass);
      waiting_ = false;
      last_pass_ = pass.pass;
    } else if (!grows_) {
      view_bottoms(context, pass);
      repeated_ ? give_repeated_tops() : object_->reshape(bottom_, top_);
      for (size_t j = 0; j < top_.size(); ++j) view_top(context, j, pass.top[j]);
      if (!repeated_) object_->forward(pass.pass, bottom_, top_);
    }
    if (!is_source()) state_of<DynamicTops>(pass).tops = shapes();
    // Then the plan enlarges their memory, and this is called once more to fill it.
    const bool grew = grows_;
    grows_ = false;
    for (size_t j = 0; j < top_.size(); ++j)
      grows_ |= top_[j]->shape().count() > pass.top[j].count();
    if (grows_) {
      require(!grew && !is_source(), "its tops change their shapes in a pass that keeps them");
      return;
    }
    for (size_t j = 0; j < top_.size(); ++j) {
      if (j < own_losses_.size() && has_loss_weight(j))
        own_losses_[j] = to_floats(*host_, top_[j]->data());
      from_host(context, top_[j]->data(), front(pass.top[j], top_[j]->shape()));
    }
    write_back(context, pass.parameters);
  }

  void backward(Context& context, const Backward& pass) const override {
    std::vector<bool> propagate;
    for (size_t i = 0; i < bottom_.size(); ++i) check_bottom(i, pass.bottom_diff[i], "forward()");
    for (size_t j = 0; j < top_.size(); ++j) {
      if (j < own_losses_.size() && has_loss_weight(j)) {
        show_own_loss(j);
      } else if (pass.top[j]) {
        view(context, pass.top[j], *top_[j], &HostBlob::view_data, &HostBlob::data);
      }
      view_top_diff(context, j, pass.top_diff[j]);
    }
    for (size_t i = 0; i < bottom_.size(); ++i) {
      const Tensor& diff = pass.bottom_diff[i];
      propagate.push_back(static_cast<bool>(diff));
      if (in_place_[i] >= 0) {
        if (!diff || !is_direct(diff)) continue;
        const Tensor top = bottom_[i]->diff();
        std::copy_n(top.data<float>(), diff.count(), diff.data<float>());
        bottom_[i]->view_diff(diff);
        continue;
      }
      view(context, pass.bottom[i], *bottom_[i], &HostBlob::view_data, &HostBlob::data);
      bottom_[i]->view_diff({});
      if (!diff || !is_direct(diff)) continue;
      zero(context, diff);
      bottom_[i]->view_diff(diff);
    }
    view_parameters(context, pass.parameters);
    for (size_t k = 0; k < blobs_.size(); ++k) {
      const Tensor& diff = pass.parameter_diff[k];
      blobs_[k]->view_diff({});
      if (!diff) continue;
      if (!pass.accumulate[k]) zero(context, diff);
      view(context, diff, *blobs_[k], &HostBlob::view_diff, &HostBlob::diff);
    }
    object_->backward(top_, propagate, bottom_);
    for (size_t i = 0; i < bottom_.size(); ++i) {
      if (!pass.bottom_diff[i]) continue;
      check_bottom(i, pass.bottom_diff[i], "backward()");
      from_host(context, bottom_[i]->diff(), pass.bottom_diff[i]);
    }
    for (size_t k = 0; k < blobs_.size(); ++k) {
      if (pass.parameter_diff[k]) from_host(context, blobs_[k]->diff(), pass.parameter_diff[k]);
    }
  }

 private:
  bool is_source() const { return message().bottom_size() == 0; }
  bool has_loss_weight(size_t top) const {
    const auto j = static_cast<int>(top);
    return j < message().loss_weight_size() && message().loss_weight(j) != 0;
  }

  void set_parts(const std::string& layer, const std::string& parts) {
    require(parts.empty() || parts == "mean" || parts == "sum", "loss_parts of class ", layer,
            " is \"", parts, "\"; expected \"mean\" or \"sum\": how the losses of the parts of a ",
            "batch become that of the batch");
    if (parts == "mean") parts_ = LossParts::all(PartsRule::mean);
    if (parts == "sum") parts_ = LossParts::all(PartsRule::sum);
  }

  // By now the plan's memory has the sum over the ranks; the class expects what it wrote.
  void show_own_loss(size_t j) const {
    top_[j]->view_data({});
    std::copy(own_losses_[j].begin(), own_losses_[j].end(), top_[j]->data().data<float>());
  }

  void check_bottom(size_t i, const Tensor& diff, const char* method) const {
    if (!diff || bottom_[i]->shape() == diff.shape()) return;
    fail(method, " has reshaped bottom ", i, " from ", diff.shape().brief(), " to ",
         bottom_[i]->shape().brief());
  }

  std::vector<Shape> shapes() const {
    std::vector<Shape> shapes;
    for (const auto& top : top_) shapes.push_back(top->shape());
    return shapes;
  }

  void give_repeated_tops() const {
    for (size_t j = 0; j < top_.size(); ++j) {
      const auto& [shape, values] = (*repeated_)[j];
      top_[j]->reshape(shape);
      from_floats(*host_, values.data(), top_[j]->data());
    }
  }

  // Shows the tensor's content: its own memory if Python can use that, else a copy.
  static void view(Context& context, const Tensor& tensor, HostBlob& blob,
                   void (HostBlob::*set)(Tensor), Tensor (HostBlob::*get)()) {
    if (is_direct(tensor)) return (blob.*set)(tensor);
    to_host(context, tensor, (blob.*get)());
  }

  void view_bottoms(Context& context, const Forward& pass) const {
    for (size_t i = 0; i < bottom_.size(); ++i) {
      const Tensor& from = pass.bottom[i];
      HostBlob& blob = *bottom_[i];
      blob.reshape(from.shape());
      if (in_place_[i] < 0) {
        view(context, from, blob, &HostBlob::view_data, &HostBlob::data);
      } else {  // both are the same blob, but in the plan the top has its own memory
        const Tensor to = front(pass.top[in_place_[i]], from.shape());
        if (is_direct(to)) blob.view_data(to);
        to_host(context, from, blob.data());
      }
    }
  }

  // Moves the blob's content (from the last pass, or written by setup or reshape) into the plan's
  // memory.
  void view_top(Context& context, size_t j, const Tensor& to) const {
    HostBlob& blob = *top_[j];
    if (!is_direct(to) || blob.shape().count() > to.count()) return;
    if (blob.has_data()) from_host(context, blob.data(), front(to, blob.shape()));
    blob.view_data(to);
  }

  // A loss starts with its weight, which must not change.
  void view_top_diff(Context& context, size_t j, const Tensor& diff) const {
    HostBlob& blob = *top_[j];
    const bool is_seed = static_cast<int>(j) < message().loss_weight_size() &&
                         message().loss_weight(static_cast<int>(j)) != 0;
    blob.view_diff({});
    if (!diff) return;
    if (is_direct(diff) && !is_seed) return blob.view_diff(diff);
    to_host(context, diff, blob.diff());
  }

  // If the blob is a copy, values written into it since the last pass count: a program sees the
  // same blobs.
  void view_parameters(Context& context, const std::vector<Tensor>& parameters) const {
    for (size_t k = 0; k < blobs_.size(); ++k) {
      if (is_direct(parameters[k])) {
        blobs_[k]->view_data(parameters[k]);
        continue;
      }
      const Tensor copy = blobs_[k]->data();
      if (!std::equal(known_[k].begin(), known_[k].end(), copy.data<float>()))
        from_host(context, copy, parameters[k]);
      to_host(context, parameters[k], copy);
      known_[k].assign(copy.data<float>(), copy.data<float>() + copy.count());
    }
  }

  // For classes whose forward() changes them.
  void write_back(Context& context, const std::vector<Tensor>& parameters) const {
    for (size_t k = 0; k < blobs_.size(); ++k) {
      if (is_direct(parameters[k])) continue;
      const Tensor now = blobs_[k]->data();
      if (std::equal(known_[k].begin(), known_[k].end(), now.data<float>())) continue;
      from_host(context, now, parameters[k]);
      known_[k].assign(now.data<float>(), now.data<float>() + now.count());
    }
  }

  std::unique_ptr<PythonObject> object_;
  std::shared_ptr<Context> host_;
  HostBlobs bottom_, top_, blobs_;
  std::optional<std::vector<std::pair<Shape, std::vector<float>>>> repeated_;  // tops
  std::vector<int> in_place_;  // for each bottom the top that is the same blob; or -1
  std::vector<Tensor> given_;  // the first values of blobs_
  LossParts parts_;
  // What infer() and the passes leave. It belongs to the object, which exists once and has its
  // author's data, and not to a plan: a net with Python layers runs in one thread.
  // For blobs_ that are copies, their content after the last pass.
  mutable std::vector<std::vector<float>> known_;
  mutable std::vector<std::vector<float>> own_losses_;  // with several ranks: tops with loss_weight
  mutable bool grows_ = false;                          // the last forward's tops did not fit
  mutable bool waiting_ = false;               // a source has run, and its tops wait to be fetched
  mutable std::optional<uint64_t> last_pass_;  // set for sources only
  mutable double seconds_ = 0;
  mutable std::vector<Shape> planned_;
};

}  // namespace

void repeat_python(Layer& layer, bool on) {
  if (auto* python = dynamic_cast<PythonLayer*>(&layer)) python->repeat(on);
}

PythonObject* python_object(Layer& layer) {
  auto* python = dynamic_cast<PythonLayer*>(&layer);
  return python ? python->object() : nullptr;
}

REGISTER_LAYER(Python, PythonLayer);
}  // namespace crema
