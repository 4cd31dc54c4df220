// libcrema_infer: programs in C compute what Model computes, bit for bit; its symbols and libraries.
// The programs in C are processes of their own, which have no other library of Crema.
#include <sys/wait.h>

#include <cstdio>
#include <sstream>

#include "crema.h"
#include "infer/run_net.h"
#include "net/prototxt/net_input.h"
#include "net/weights/weights.h"
#include "support.h"

namespace crema::tests {
namespace infer_test {

const std::string kPrograms = CREMA_INFER_PROGRAMS "/";

struct Outcome {
  int status;
  std::string output;
};

Outcome run(const std::string& command) {
  FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
  require(pipe != nullptr, "cannot run ", command);
  std::string output;
  char part[4096];
  for (size_t size; (size = fread(part, 1, sizeof part, pipe)) > 0;) output.append(part, size);
  const int status = pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, output};
}

// Writes weights that are not those of a new net.
void write_weights(const std::string& net_file, const std::string& to) {
  Lines log;
  Context context(Device::cpu);
  context.set_log(log);
  const NetInput input = read_net_input(net_file, TEST, {}, log);
  Net net(context, input.net, input.options);
  size_t seed = 1;
  for (const Parameter& parameter : net.parameters()) {
    std::vector<float> values(static_cast<size_t>(parameter.shape.count()));
    for (size_t i = 0; i < values.size(); ++i)
      values[i] =
          parameter.shape.axes() > 1 ? input_value(i, seed) / 4 : 0.5F + input_value(i, seed);
    from_floats(context, values.data(), parameter.data);
    ++seed;
  }
  net.parameters_changed();
  save_caffemodel(net, to);
}

// What run_net writes for a thread.
std::string expected(const std::string& net, const std::string& weights, size_t thread,
                     size_t passes) {
  Model model(net, {.weights = {weights}});
  std::ostringstream text;
  for (size_t pass = 0; pass < passes; ++pass) {
    for (const BlobInfo& input : model.inputs()) {
      const std::span<float> values = model.input(input.name);
      for (size_t i = 0; i < values.size(); ++i) values[i] = input_value(i, pass * 5 + thread);
    }
    model.forward();
    for (const BlobInfo& output : model.outputs()) {
      text << output.name;
      for (const int64_t extent : output.shape) text << ' ' << extent;
      text << ':';
      for (const float value : model.values(output.name)) {
        char number[64];
        std::snprintf(number, sizeof number, " %a", static_cast<double>(value));
        text << number;
      }
      text << '\n';
    }
  }
  return text.str();
}

// The layer that run_net.c makes in C.
class Slope final : public CustomLayer {
 public:
  explicit Slope(const CustomLayerSettings& settings) {
    if (std::sscanf(settings.text.c_str(), "factor: %f", &factor_) != 1)
      throw std::invalid_argument(settings.text);
  }
  std::vector<Parameter> parameters(const std::vector<Shape>& bottoms) override {
    return {{.shape = {bottoms[0][1]}}};
  }
  std::vector<Shape> tops(const std::vector<Shape>& bottoms) override { return bottoms; }
  void forward(const Forward& pass) override {
    const CustomInput& x = pass.bottoms[0];
    const size_t channels = pass.parameters[0].values.size(),
                 points = x.values.size() / channels / static_cast<size_t>(x.shape[0]);
    for (size_t i = 0; i < x.values.size(); ++i)
      pass.tops[0].values[i] =
          slope(x.values[i], pass.parameters[0].values[i / points % channels], factor_);
  }

 private:
  float factor_ = 0;
};

struct NetCase {
  std::string name, file;
};

class InferredNets : public testing::TestWithParam<NetCase> {};

TEST_P(InferredNets, ComputeWhatModelComputes) {
  const Folder folder;
  [[maybe_unused]] static const bool registered = [] {
    register_layer("Slope", [](const auto& settings) { return std::make_unique<Slope>(settings); });
    return true;
  }();
  const std::string net = CREMA_TEST_DATA "/" + GetParam().file;
  const std::string weights = folder.file("net.caffemodel"), out = folder.file("out");
  write_weights(net, weights);
  constexpr size_t kPasses = 4;
  std::vector<std::string> wanted;
  for (size_t t = 0; t < 4; ++t) wanted.push_back(expected(net, weights, t, kPasses));
  EXPECT_NE(wanted[0], wanted[1]);
  for (const char* how : {"files set 1", "memory in_place 1", "memory set 2", "files in_place 4"}) {
    SCOPED_TRACE(how);
    const Outcome outcome =
        run(cat(kPrograms, "infer_run_net ", net, " ", weights, " ", out, " ", how, " ", kPasses));
    ASSERT_EQ(outcome.status, 0) << outcome.output;
    EXPECT_EQ(outcome.output, "");
    const size_t threads = static_cast<size_t>(how[std::string(how).size() - 1] - '0');
    for (size_t t = 0; t < threads; ++t)
      EXPECT_EQ(folder.read(cat("out.", t)), wanted[t]) << "thread " << t;
  }
}

INSTANTIATE_TEST_SUITE_P(Nets, InferredNets,
                         testing::Values(NetCase{"LeNet", "infer/lenet.prototxt"},
                                         NetCase{"TwoInputs", "infer/two_inputs.prototxt"},
                                         NetCase{"Detections", "infer/detections.prototxt"},
                                         NetCase{"Integers", "exchange/c_integers.prototxt"},
                                         NetCase{"OwnLayer", "infer/own_layer.prototxt"}),
                         [](const auto& info) { return info.param.name; });

TEST(Infer, WorksInOneProcessWithTheLibrary) {
  const Folder folder;
  std::string nets;
  for (const char* name : {"lenet", "two_inputs", "detections"}) {
    const std::string net = cat(CREMA_TEST_DATA "/infer/", name, ".prototxt"),
                      weights = folder.file(cat(name, ".caffemodel"));
    write_weights(net, weights);
    nets += cat(" ", net, " ", weights);
  }
  for (const char* program : {"infer_both_infer_first", "infer_both_crema_first"}) {
    SCOPED_TRACE(program);
    const Outcome outcome = run(cat(kPrograms, program, nets));
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.output, "both work\n");
  }
}

TEST(Infer, ReportsErrors) {
  const Folder folder;
  folder.write("net.prototxt", read_file(CREMA_TEST_DATA "/infer/lenet.prototxt"));
  write_weights(folder.file("net.prototxt"), folder.file("net.caffemodel"));
  write_weights(CREMA_TEST_DATA "/infer/two_inputs.prototxt", folder.file("other.caffemodel"));
  const Outcome outcome = run(cat("cd ", folder.path(), " && ", kPrograms, "infer_errors"));
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.output, "all errors are reported\n");
}

TEST(Infer, ExportsItsOwnNamesOnly) {
  const Outcome outcome = run("nm -D --defined-only " CREMA_INFER_LIBRARY);
  ASSERT_EQ(outcome.status, 0) << outcome.output;
  std::istringstream lines(outcome.output);
  const std::string header = read_file(CREMA_TEST_DATA "/../src/crema_infer.h");
  int count = 0;
  for (std::string address, kind, name; lines >> address >> kind >> name; ++count)
    EXPECT_NE(header.find(name + "("), std::string::npos) << name;
  EXPECT_EQ(count, 24);
}

TEST(Infer, NeedsNoLibrariesOfTraining) {
  const Outcome outcome = run("readelf -d " CREMA_INFER_LIBRARY);
  ASSERT_EQ(outcome.status, 0) << outcome.output;
  expect_part(outcome.output, "Library soname: [libcrema_infer.so.0]");
  for (const char* other : {"lmdb", "leveldb", "hdf5", "opencv", "pugixml", "re2", "glog", "mpi"})
    EXPECT_EQ(outcome.output.find(other), std::string::npos) << other;
}

}  // namespace infer_test
}  // namespace crema::tests
