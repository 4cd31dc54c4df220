// `crema batch_find`: which batches it measures, what fits, and how the result is used.
#include "tools/program.h"

namespace crema::tests {
namespace batch_find_test {

// A sample takes about 800 kB: outputs, and their gradients.
constexpr const char* kNet =
    "layer { name: \"in\" type: \"DummyData\" top: \"x\" top: \"y\" dummy_data_param { shape { "
    "dim: 8 dim: 1 } shape { dim: 8 } } }\n"
    "layer { name: \"ip\" type: \"InnerProduct\" bottom: \"x\" top: \"z\" inner_product_param { "
    "num_output: 100000 } }\n"
    "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"z\" bottom: \"y\" top: \"loss\" "
    "}\n";

int64_t number_after(const std::string& text, const std::string& words) {
  const size_t at = text.find(words);
  return at == std::string::npos ? -1 : std::atoll(text.c_str() + at + words.size());
}

TEST(BatchFind, MeasuresPowersOfTwoAndTheLargestThatFits) {
  if (!memory_can_be_limited)
    GTEST_SKIP() << "a sanitizer or an emulator maps more memory than is allowed";
  const Folder folder;
  folder.write("net.prototxt", kNet);
  const Outcome outcome = run_shell(
      folder, limit_memory(650) + "\"$TOOLS\"/crema batch_find -model net.prototxt -iterations 1");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out.find("batch  ms an iteration  samples/s  waiting for data "), 0u);
  for (const char* row : {"\n    1  ", "\n    2  ", "\n    4  ", "\n    8  "})
    expect_part(outcome.out, row);
  expect_part(outcome.out, "  as the net has it\n");
  expect_part(outcome.out, "\nFastest batch: ");
  expect_part(outcome.out, "In layer \"in\" the first dim of each shape is the batch.\n");
  expect_part(outcome.out, ", as a trial showed; ");
  // Less than 700 MB at 800 kB a sample.
  const int64_t largest = number_after(outcome.out, "Largest batch: ");
  EXPECT_GT(largest, 16) << outcome.out;
  EXPECT_LT(largest, 900) << outcome.out;
}

// The batch is a field of the source, which -set sets; the run leaves no files.
TEST(BatchFind, SaysWhichSettingChangesTheBatch) {
  const Folder folder;
  folder.copy_golden("train", "train");
  std::vector<std::string> cases;
  for (const auto& entry : std::filesystem::directory_iterator(folder.file("train")))
    cases.push_back(entry.path().filename());
  ASSERT_FALSE(cases.empty());
  std::sort(cases.begin(), cases.end());
  const std::string within = "train/" + cases[0];
  const Outcome outcome = run_shell(
      folder,
      "OMP_NUM_THREADS=1 \"$TOOLS\"/crema batch_find -solver solver.prototxt -iterations 1 "
      "-set 'layer[conv1].convolution_param.num_output=200'",
      within);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_part(outcome.out, "\n    8  ");
  expect_part(outcome.out, "\nUse it: -set 'layer[data].hdf5_data_param.batch_size=");
  for (const auto& entry : std::filesystem::directory_iterator(folder.file(within)))
    EXPECT_EQ(entry.path().filename().string().find("metrics"), std::string::npos);
}

struct Refused {
  const char* flags;
  const char* message;
};

TEST(BatchFind, RefusesWhatTheTrainingRefuses) {
  const Folder folder;
  folder.write("net.prototxt", kNet);
  folder.write("bad.prototxt",
               std::string(kNet).replace(std::string(kNet).find("Inner"), 5, "Iner"));
  folder.write("s.prototxt", "net: \"net.prototxt\"\nlr_policy: \"fixed\"\n");
  for (const Refused& row : {
           Refused{"", "nothing to train: give -solver SOLVER.prototxt or -model NET.prototxt"},
           Refused{"-solver s.prototxt", "s.prototxt:2:1: base_lr is missing"},
           Refused{"-model net.prototxt -iterations 0", "-iterations 0: expected a positive"},
           Refused{"-model bad.prototxt", "bad.prototxt:2:1: "},
           Refused{"-model none.prototxt", "-model none.prototxt: there is no such file"},
           Refused{"-model net.prototxt -set nothing=3", "-set nothing=3: solver and net have no"},
       }) {
    const Outcome outcome = run(folder, std::string("crema batch_find ") + row.flags);
    EXPECT_EQ(outcome.code, 1) << row.flags;
    ASSERT_EQ(outcome.errors().size(), 1u) << row.flags << "\n" << outcome.err;
    expect_part(outcome.errors()[0], row.message);
  }
}

}  // namespace batch_find_test
}  // namespace crema::tests
