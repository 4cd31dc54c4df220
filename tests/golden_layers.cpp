// Layer cases: CASE.prototxt + CASE.h5. Each runs twice: layer by layer with every blob kept, and
// as the planner runs it.
#include <algorithm>
#include <cmath>

#include "base/files.h"
#include "data/databases/hdf5/hdf5_file.h"
#include "golden.h"
#include "net/net.h"
#include "net/prototxt/prototxt.h"

namespace crema::tests {
namespace {

// Cases whose summation order may differ a lot from the reference's.
bool sums_much(const std::string& type) {
  return type == "LRN" || type == "MVN" || type == "RNN" || type == "LSTM" || type == "Net";
}

class LayerCase {
 public:
  LayerCase(Context& context, const std::string& stem, bool planned)
      : context_(context),
        file_(stem + ".h5"),
        planned_(planned),
        tolerance_(sums_much(file_.attribute("layer_type", "")) ? 1e-4 : 1e-5) {
    const NetFile net_file = read_net_file(stem + ".prototxt");
    NetOptions options;
    options.state.set_phase(file_.attribute("phase", "") == "TRAIN" ? TRAIN : TEST);
    options.keep_blobs = !planned;
    options.backward = file_.attribute("has_backward", 0) != 0;
    options.seed_outputs = options.backward && !file_.children("topdiff").empty();
    options.folder = folder_of(stem);
    net_ = std::make_unique<Net>(context, net_file.net, options);
  }

  CaseResult run() {
    set_parameters();
    const int passes = static_cast<int>(file_.attribute("forward_passes", 1));
    for (int pass = 0; pass < passes; ++pass) {
      for (const auto& blob : file_.children("in"))
        write(net_->input(blob.name), "in/" + blob.name);
      net_->forward(static_cast<uint64_t>(pass));
    }
    compare_outputs();
    if (file_.attribute("has_backward", 0) != 0) {
      seed();
      net_->backward();
      for (const auto& blob : file_.children("indiff"))
        compare("indiff/" + blob.name, net_->input_diff(blob.name));
      compare_parameters("paramdiff", [](const Parameter& p) { return p.diff; });
    }
    compare_parameters("param_after", [](const Parameter& p) { return p.data; });
    return result_;
  }

 private:
  void write(const Tensor& to, const std::string& from) {
    const Shape shape = file_.shape(from);
    require(to.shape() == shape, "shape ", to.shape().brief(), ", the reference has ",
            shape.brief());
    from_doubles(context_, file_.doubles(from).data(), to);
  }

  Parameter& parameter(const std::string& layer, int index) {
    for (int i = 0; i < net_->graph().net.layer_size(); ++i) {
      if (net_->graph().net.layer(i).name() == layer) {
        return net_->parameters()[net_->graph().views[i].parameters.at(static_cast<size_t>(index))];
      }
    }
    fail("no layer ", layer);
  }

  void set_parameters() {
    for_each_parameter("param", [&](const std::string& path, const Parameter& parameter) {
      from_doubles(context_, file_.doubles(path).data(), parameter.data);
    });
  }

  void compare_outputs() {
    for (const auto& blob : file_.children("out")) {
      if (!planned_) {
        compare("out/" + blob.name, net_->blob(blob.name));
        continue;
      }
      for (const Net::Output& output : net_->outputs()) {
        if (output.blob == blob.name) compare("out/" + blob.name, output.value);
      }
    }
  }

  void seed() {
    const std::vector<Tensor> diffs = net_->output_diffs();
    const std::vector<Net::Output> outputs = net_->outputs();
    for (size_t i = 0; i < outputs.size(); ++i) {
      const std::string path = "topdiff/" + outputs[i].blob;
      if (file_.has(path) && diffs[i]) write(diffs[i], path);
    }
  }

  template <typename Visit>
  void for_each_parameter(const std::string& group, Visit visit) {
    for (const auto& layer : file_.children(group)) {
      const std::string position = group + "/" + layer.name;
      for (const auto& index : file_.children(position))
        visit(position + "/" + index.name, parameter(layer.name, std::stoi(index.name)));
    }
  }

  template <typename Pick>
  void compare_parameters(const std::string& group, Pick pick) {
    for_each_parameter(group, [&](const std::string& path, const Parameter& parameter) {
      compare(path, pick(parameter));
    });
  }

  void compare(const std::string& path, const Tensor& ours) {
    if (!ours) {
      result_.fail(path, "is missing");
      return;
    }
    const Shape wanted = file_.shape(path);
    if (ours.shape() != wanted) {
      result_.fail(path,
                   cat("has shape ", ours.shape().brief(), ", the reference ", wanted.brief()));
      return;
    }
    result_.compare(path, to_doubles(context_, ours), file_.doubles(path), tolerance_, 1e-6);
  }

  Context& context_;
  Hdf5File file_;
  bool planned_;
  double tolerance_;
  std::unique_ptr<Net> net_;
  CaseResult result_;
};

}  // namespace

CaseResult run_layer_case(Context& context, const std::string& stem) {
  CaseResult result = LayerCase(context, stem, false).run();
  result.merge(LayerCase(context, stem, true).run());
  return result;
}

}  // namespace crema::tests
