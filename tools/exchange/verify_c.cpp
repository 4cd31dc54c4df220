#include "tools/exchange/verify_c.h"

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>

#include "base/files.h"
#include "base/temporary.h"
#include "base/visible.h"
#include "net/plan/plan.h"
#include "tools/flags/shell_words.h"
#include "tools/inputs/random_inputs.h"

namespace crema {

namespace {

class CVerifier {
 public:
  CVerifier(Net& net, const CheckedC& checked, int draws)
      : net_(net),
        checked_(checked),
        draws_(draws),
        folder_(make_temporary((std::filesystem::temp_directory_path() / "crema_export").string(),
                               TemporaryEntry::Kind::folder)
                    .path) {}
  ~CVerifier() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  CVerifier(const CVerifier&) = delete;
  CVerifier& operator=(const CVerifier&) = delete;

  Verification run() {
    const char* const named = std::getenv("CC");
    const std::string compiler = named != nullptr && *named != '\0' ? named : "cc";
    Verification one;
    if (shell(cat(compiler, " --version > ", quoted("version"), " 2>&1")) != 0) {
      one.problem = cat("there is no C compiler ", compiler, "; set CC to one");
      return one;
    }
    one.runtime = compiler;
    const std::string version = read_file(file("version"));
    one.version = version.substr(0, version.find('\n'));
    if (starts_with(one.version, compiler + " "))
      one.version = one.version.substr(compiler.size() + 1);
    write_file_atomically(file("run.c"), program_text());
    const std::string compile = cat(compiler, " -std=c99 -O2 -I ", shell_quoted(source_folder()),
                                    " ", shell_quoted(checked_.source), " ", quoted("run.c"),
                                    " -o ", quoted("run"), " -lm > ", quoted("log"), " 2>&1");
    if (shell(compile) != 0)
      fail(compiler, " cannot compile ", visible(checked_.source), ":\n", read_file(file("log")));
    compute();
    const int code = shell(cat(quoted("run"), " ", quoted("in"), " ", quoted("out"), " ",
                               checked_.weights_file ? shell_quoted(checked_.weights) : ""));
    require(code == 0, "the program of ", visible(checked_.source), " ended with code ", code);
    one.blobs = compared();
    return one;
  }

 private:
  std::string file(const char* name) const { return folder_ + "/" + name; }
  std::string quoted(const char* name) const { return shell_quoted(file(name)); }
  std::string source_folder() const {
    return std::filesystem::absolute(folder_of(checked_.source)).string();
  }

  static int shell(const std::string& command) {
    const int status = std::system(command.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

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
      text += cat("static float w[", program.weights_bytes() / 4, "];\n");
      arguments = "w";
    }
    for (size_t i = 0; i < program.inputs.size(); ++i) {
      const std::string array = add("x", i, program.inputs[i]);
      reads += cat("    if (fread(", array, ", sizeof ", array, ", 1, in) != 1) return 3;\n");
    }
    for (size_t i = 0; i < program.outputs.size(); ++i) {
      const std::string array = add("y", i, program.outputs[i]);
      writes += cat("    if (fwrite(", array, ", sizeof ", array, ", 1, out) != 1) return 4;\n");
    }
    text +=
        "int main(int argc, char **argv) {\n  if (argc < 3) return 2;\n"
        "  FILE *const in = fopen(argv[1], \"rb\"), *const out = fopen(argv[2], \"wb\");\n"
        "  if (!in || !out) return 5;\n";
    if (checked_.weights_file)
      text +=
          "  FILE *const weights = fopen(argv[3], \"rb\");\n"
          "  if (!weights || fread(w, sizeof w, 1, weights) != 1) return 6;\n";
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

  // Draws inputs, and keeps what the net computes from them.
  void compute() {
    const uint64_t seed = net_.context().seed;
    std::string inputs;
    for (int draw = 0; draw < draws_; ++draw) {
      net_.context().seed = seed + static_cast<uint64_t>(draw);
      fill_random_inputs(net_);
      for (const int value : checked_.program.inputs) {
        const std::vector<float> values = values_of(value);
        inputs.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
      }
      net_.clear_carried();
      net_.forward(0);
      std::map<int, std::vector<float>>& ours = computed_.emplace_back();
      for (const int value : checked_.program.outputs) ours[value] = values_of(value);
    }
    net_.context().seed = seed;
    write_file_atomically(file("in"), inputs);
  }

  std::vector<VerifiedBlob> compared() {
    const CProgram& program = checked_.program;
    std::map<int, std::string> blobs;  // by the index in the net's graph, as BlobDifferences counts
    const std::map<std::string, int> all = ids();
    for (const int value : program.outputs)
      blobs[all.at(program.values[value].blob)] = program.values[value].blob;
    BlobDifferences differences(net_, blobs);
    const std::string bytes = read_file(file("out"));
    size_t at = 0;
    for (int draw = 0; draw < draws_; ++draw) {
      for (const int value : program.outputs) {
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
  const std::string folder_;
  std::vector<std::map<int, std::vector<float>>> computed_;  // by draw: values of the program
};

}  // namespace

Verification verify_c(Net& net, const CheckedC& checked, int draws) {
  return CVerifier(net, checked, draws).run();
}

}  // namespace crema
