// Imports test cases in the layout of ONNX's backend tests, and compares what the nets compute:
//   import_cases FOLDER [-v]     FOLDER/test_NAME/model.onnx, test_data_set_0/{input,output}_0.pb
// Names that begin with test_folded_ are for cases of constants. Each case is imported twice: with
// all inputs as blobs, and with all but the first as constants, as weights and shapes are in real
// models. Prints a line for each case that differs, with -v also for each that is refused, and how
// many there are; exit code 1 if one differs.
#include <cmath>
#include <iostream>
#include <map>

#include "base/files.h"
#include "exchange/onnx/import.h"
#include "exchange/programs.h"
#include "exchange/row_nets.h"
#include "net/net.h"

namespace crema {
namespace {

// Cases whose results cannot agree, and why.
const std::map<std::string, std::string> kKnownCases = {
    {"test_argmax_keepdims_example", "of equal values ArgMax takes the last one"},
    {"test_argmax_negative_axis_keepdims_example", "of equal values ArgMax takes the last one"},
    {"test_argmax_no_keepdims_example", "of equal values ArgMax takes the last one"},
    {"test_attention_causal_boolmask_nan_robustness_expanded",
     "Where is arithmetic: nan stays nan"},
    {"test_attention_23_boolmask_fullymasked_row_nan_robustness_expanded",
     "Where is arithmetic: nan stays nan"},
    {"test_attention_23_fullymasked_qk_matmul_output_mode3_zero_expanded",
     "Where is arithmetic: nan stays nan"},
    {"test_attention_24_fullymasked_qk_matmul_output_mode3_zero_expanded",
     "Where is arithmetic: nan stays nan"},
    {"test_attention_4d_causal_nonpad_negative_offset_structural_empty_expanded",
     "Where is arithmetic: nan stays nan"},
    {"test_attention_local_window_gqa_rank4_mask_expanded", "Where is arithmetic: nan stays nan"},
    {"test_averagepool_2d_ceil_last_window_starts_on_pad", "its outputs have four digits"},
    {"test_roialign_aligned_false", "its outputs have four digits"},
    {"test_top_k_same_values", "of equal values ArgMax takes the last one"},
    {"test_top_k_same_values_2d", "of equal values ArgMax takes the last one"},
    {"test_top_k_same_values_largest", "of equal values ArgMax takes the last one"}};

std::vector<OnnxTensor> read_tensors(const std::string& folder, const char* kind) {
  std::vector<OnnxTensor> tensors;
  for (int i = 0;; ++i) {
    const std::string path = cat(folder, "/test_data_set_0/", kind, "_", i, ".pb");
    if (!file_exists(path)) return tensors;
    onnx::TensorProto tensor;
    require(tensor.ParseFromString(read_file(path)), path, ": not a tensor");
    tensors.push_back(read_onnx_tensor(tensor, folder, path));
  }
}

class CaseRunner {
 public:
  explicit CaseRunner(const std::string& folder)
      : folder_(folder),
        inputs_(read_tensors(folder, "input")),
        outputs_(read_tensors(folder, "output")) {}

  // "": it agrees; Error: it is refused.
  std::string run(bool constants) {
    OnnxFile file = read_onnx(folder_ + "/model.onnx");
    require(file.graph.input_size() == static_cast<int>(inputs_.size()),
            "the model has other inputs than the case");
    require(file.graph.output_size() == static_cast<int>(outputs_.size()),
            "the model has other outputs than the case");
    for (int i = 1; constants && i < file.graph.input_size(); ++i)
      file.constants[file.graph.input(i).name()] = std::make_shared<OnnxTensor>(inputs_[i]);
    Context context(Device::cpu);
    context.set_log(silent_log());
    const ImportedNet imported = import_onnx(context, file, {});
    NetOptions options;
    options.state.set_phase(TEST);
    options.keep_blobs = options.row_major = true;
    Net net(context, imported.net, options);
    set_imported_weights(imported, &net);
    for (int i = 0; i < file.graph.input_size(); ++i) {
      if (file.constants.count(file.graph.input(i).name()) > 0) continue;
      const std::vector<float> values = inputs_[i].as_floats();
      net.set_input(file.graph.input(i).name(), values.data());
    }
    net.forward(0);
    for (int i = 0; i < file.graph.output_size(); ++i) {
      const std::string& name = file.graph.output(i).name();
      const Tensor found = net.blob(imported.outputs.at(name));
      if (found.shape() != outputs_[i].shape)
        return cat(name, " has shape ", found.shape().brief(), ", not ", outputs_[i].shape.brief());
      const std::string difference =
          difference_of(outputs_[i].as_floats(), to_floats(context, found), 2e-5);
      if (!difference.empty()) return cat(name, " ", difference);
    }
    return "";
  }

 private:
  const std::string folder_;
  const std::vector<OnnxTensor> inputs_, outputs_;
};

}  // namespace

int run_import_cases(int argc, char** argv) {
  std::cout << std::unitbuf;
  if (argc < 2) {
    std::cerr << "import_cases FOLDER [-v]\n";
    return 2;
  }
  const bool verbose = argc > 2;
  int agree = 0, differ = 0, refused = 0;
  for (const std::string& name : list_folder(argv[1])) {
    const std::string folded = "test_folded_";
    const bool of_constants = name.rfind(folded, 0) == 0;
    if (kKnownCases.count(of_constants ? "test_" + name.substr(folded.size()) : name) > 0) continue;
    bool agrees = false, differs = false;
    std::string why;
    for (const bool constants : {false, true}) {
      try {
        const std::string difference = CaseRunner(cat(argv[1], "/", name)).run(constants);
        if (difference.empty()) {
          agrees = true;
        } else {
          differs = true;
          std::cout << "differs: " << name << (constants ? " with constants: " : ": ") << difference
                    << '\n';
        }
      } catch (const Error& error) {
        why = error.what();
      }
    }
    if (!agrees && !differs && verbose)
      std::cout << "refused: " << name << ": " << why.substr(why.find("model.onnx: ") + 12) << '\n';
    ++(differs ? differ : agrees ? agree : refused);
  }
  std::cout << agree << " agree, " << differ << " differ, " << refused << " are refused\n";
  return differ > 0;
}

}  // namespace crema
