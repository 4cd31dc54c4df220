// Python: a layer written in Python by a net's author. Such nets can be read and, with -assume
// TOP=SHAPE for the layer's tops, shown, timed and trained with random values in its place; running
// the layer itself needs the Python module, which this build lacks. Faster R-CNN's ProposalLayer is
// available as type "Proposal".
// Shapes: determined by the author's class.
// Gradient: that of the author's class.
#include <cctype>

#include "base/error.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

// The numbers after a key of YAML text: of "'scales': !!python/tuple [4, 8]" 4 and 8.
std::vector<std::string> numbers_of(const std::string& text, const std::string& key) {
  std::vector<std::string> numbers;
  size_t at = text.find(key);
  if (at != std::string::npos) at = text.find(':', at);
  if (at == std::string::npos) return numbers;
  int open = 0;
  bool in_number = false;
  for (const char c : text.substr(at + 1)) {
    open += (c == '[' || c == '(') - (c == ']' || c == ')');
    if (c == '\n' || c == '}' || (c == ',' && open == 0)) break;
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) || (in_number && c == '.');
    if (digit && !in_number) numbers.emplace_back();
    if (digit) numbers.back() += c;
    in_number = digit;
  }
  return numbers;
}

// The layer that computes the same as rpn/proposal_layer.py with the settings of its
// py-faster-rcnn.
std::string native_proposal(const std::string& param_str, bool training) {
  const std::vector<std::string> stride = numbers_of(param_str, "feat_stride");
  std::vector<std::string> scales = numbers_of(param_str, "scales");
  if (scales.empty()) scales = {"8", "16", "32"};
  std::string fields = cat("feat_stride: ", stride.empty() ? "16" : stride[0]);
  for (const char* ratio : {"0.5", "1", "2"}) fields += cat(" ratio: ", ratio);
  for (const std::string& scale : scales) fields += cat(" scale: ", scale);
  if (training) fields += " pre_nms_topn: 12000 post_nms_topn: 2000";
  return cat("type: \"Proposal\" proposal_param { ", fields, " }");
}

class PythonLayer : public Layer {
  Arity bottoms() const override { return {0, -1}; }
  Arity tops() const override { return {0, -1}; }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const auto& p = params<PythonParameter>();
    std::string assumed, native;
    for (const std::string& top : message().top())
      assumed += cat(assumed.empty() ? "" : ",", top, "=SHAPE");
    if (p.layer() == "ProposalLayer" && bottoms.size() == 3) {
      native = cat("; ",
                   native_proposal(p.has_param_str_() ? p.param_str_() : p.param_str(), training()),
                   " in place of its type and python_param computes the same");
    }
    fail("it is class ", p.layer(), " of the Python module ", p.module(),
         ", and this build runs no Python layers", native,
         assumed.empty() ? "" : cat("; -assume ", assumed, " puts inputs in its place"));
  }

  void forward(Context&, const Forward&) override {}
};

}  // namespace
REGISTER_LAYER(Python, PythonLayer);
}  // namespace crema
