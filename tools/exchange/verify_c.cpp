#include "tools/exchange/verify_c.h"

#include <filesystem>

#include "base/visible.h"
#include "net/plan/plan.h"
#include "tools/exchange/c_program.h"
#include "tools/inputs/random_inputs.h"

namespace crema {

namespace {

class CVerifier {
 public:
  CVerifier(Net& net, const CheckedC& checked, int draws)
      : net_(net), checked_(checked), draws_(draws) {}

  Verification run() {
    CompiledC program;
    Verification one;
    one.problem = program.problem();
    if (!one.problem.empty()) return one;
    one.runtime = program.compiler();
    one.version = program.version();
    program.compile(checked_.source, program_text());
    one.blobs = compared(program.run(compute(), checked_.weights_file ? checked_.weights : ""));
    return one;
  }

 private:
  int64_t count_of(int value) const { return checked_.program.values[value].shape.count(); }

  // Reads inputs, and writes results, for each draw.
  std::string program_text() const {
    const CProgram& program = checked_.program;
    const std::string name = std::filesystem::path(checked_.source).stem().string();
    std::string text = cat("#include <stdio.h>\n#include \"", name, ".h\"\n");
    std::string arguments, reads, writes;
    const auto add = [&](const char* letter, size_t i, int value) {
      const std::string array = cat(letter, i);
      text += cat("static float ", array, "[", count_of(value), "];\n");
      arguments += cat(arguments.empty() ? "" : ", ", array);
      return array;
    };
    if (checked_.weights_file) {
      text += c_weights_array(program.weights_bytes());
      arguments = "w";
    }
    for (size_t i = 0; i < program.inference.inputs.size(); ++i) {
      const std::string array = add("x", i, program.inference.inputs[i]);
      reads += cat("    if (fread(", array, ", sizeof ", array, ", 1, in) != 1) return 3;\n");
    }
    for (size_t i = 0; i < program.inference.outputs.size(); ++i) {
      const std::string array = add("y", i, program.inference.outputs[i]);
      writes += cat("    if (fwrite(", array, ", sizeof ", array, ", 1, out) != 1) return 4;\n");
    }
    text +=
        "int main(int argc, char **argv) {\n  if (argc < 3) return 2;\n"
        "  FILE *const in = fopen(argv[1], \"rb\"), *const out = fopen(argv[2], \"wb\");\n"
        "  if (!in || !out) return 5;\n";
    if (checked_.weights_file) text += kReadCWeights;
    return text + cat("  for (int i = 0; i < ", draws_, "; ++i) {\n", reads, "    ", program.prefix,
                      "_run(", arguments, ");\n", writes, "  }\n  return fclose(out);\n}\n");
  }

  std::map<std::string, int> ids() const {
    std::map<std::string, int> ids;
    const std::vector<std::string> names = onnx_names(net_.graph());
    for (size_t id = 0; id < names.size(); ++id) ids[names[id]] = static_cast<int>(id);
    return ids;
  }

  std::vector<float> values_of(int value) {
    return to_floats(net_.context(),
                     net_.plan().value(ids().at(checked_.program.values[value].blob)));
  }

  // Draws inputs, keeps what the net computes from them, and returns them.
  std::string compute() {
    const uint64_t seed = net_.context().seed;
    std::string inputs;
    for (int draw = 0; draw < draws_; ++draw) {
      net_.context().seed = seed + static_cast<uint64_t>(draw);
      fill_random_inputs(net_);
      for (const int value : checked_.program.inference.inputs) {
        const std::vector<float> values = values_of(value);
        inputs.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
      }
      net_.clear_carried();
      net_.forward(0);
      std::map<int, std::vector<float>>& ours = computed_.emplace_back();
      for (const int value : checked_.program.inference.outputs) ours[value] = values_of(value);
    }
    net_.context().seed = seed;
    return inputs;
  }

  std::vector<VerifiedBlob> compared(const std::string& bytes) {
    const CProgram& program = checked_.program;
    std::map<int, std::string> blobs;  // by the index in the net's graph, as BlobDifferences counts
    const std::map<std::string, int> all = ids();
    for (const int value : program.inference.outputs)
      blobs[all.at(program.values[value].blob)] = program.values[value].blob;
    BlobDifferences differences(net_, blobs);
    size_t at = 0;
    for (int draw = 0; draw < draws_; ++draw) {
      for (const int value : program.inference.outputs) {
        std::vector<float> theirs(static_cast<size_t>(count_of(value)));
        const size_t size = theirs.size() * sizeof(float);
        require(at + size <= bytes.size(), "the program of ", visible(checked_.source),
                " wrote too little");
        std::copy_n(bytes.data() + at, size, reinterpret_cast<char*>(theirs.data()));
        at += size;
        const auto found = blobs.find(all.at(program.values[value].blob));
        differences.add(static_cast<size_t>(std::distance(blobs.begin(), found)),
                        computed_[draw][value], theirs);
      }
    }
    return differences.take();
  }

  Net& net_;
  const CheckedC& checked_;
  const int draws_;
  std::vector<std::map<int, std::vector<float>>> computed_;  // by draw: values of the program
};

}  // namespace

Verification verify_c(Net& net, const CheckedC& checked, int draws) {
  return CVerifier(net, checked, draws).run();
}

}  // namespace crema
