// Leftovers of a run that is killed in the middle of a snapshot, and what removes them.
#include <gtest/gtest.h>

#include "tools/program.h"

namespace crema::tests {
namespace leftovers_test {

// Large enough that most of the time goes into writing its snapshots.
constexpr const char* net =
    "name: \"large\"\n"
    "layer { name: \"data\" type: \"DummyData\" top: \"data\" top: \"label\" dummy_data_param { "
    "shape { dim: 1 dim: 1000 } shape { dim: 1 dim: 500 } } }\n"
    "layer { name: \"ip\" type: \"InnerProduct\" bottom: \"data\" top: \"ip\" inner_product_param "
    "{ num_output: 500 } }\n"
    "layer { name: \"loss\" type: \"EuclideanLoss\" bottom: \"ip\" bottom: \"label\" top: "
    "\"loss\" }\n";

std::string solver(const std::string& prefix, const std::string& more) {
  return "net: \"net.prototxt\"\nbase_lr: 0\nlr_policy: \"fixed\"\nsolver_mode: CPU\nrandom_seed: "
         "1\nsnapshot_prefix: \"run/" +
         prefix + "\"\n" + more;
}

std::vector<std::string> temporary_files(const Folder& folder) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder.file("run"))) {
    const std::string name = entry.path().filename();
    if (name.find(".tmp.") != std::string::npos) found.push_back(name);
  }
  return found;
}

TEST(Leftovers, OfAKilledSnapshotGoWithTheNextStart) {
  for (const char* format : {"BINARYPROTO", "HDF5"}) {
    const Folder folder;
    folder.write("net.prototxt", net);
    folder.write("run/notes.tmp.txt", "precious");
    folder.write("solver.prototxt", solver("a", cat("max_iter: 100000000\nsnapshot: 1\n",
                                                    "snapshot_format: ", format, "\n")));
    folder.write("next.prototxt", solver("b", "max_iter: 1\n"));
    const std::string start = "\"$TOOLS\"/crema train -solver solver.prototxt & job=$!; ";
    const std::string kill_while_writing =
        "for i in $(seq 1000); do ls run/*.tmp.*-* >/dev/null 2>&1 && kill -9 $job && break; "
        "sleep 0.01; done; wait $job 2>/dev/null";
    // A kill may come just after the file has its name.
    for (int i = 0; i < 20 && temporary_files(folder).size() < 2; ++i)
      run_shell(folder, start + kill_while_writing);
    ASSERT_GE(temporary_files(folder).size(), 2u);  // the note and a leftover
    // Files that a live run is about to write stay.
    const Outcome outcome = run_shell(
        folder,
        "\"$TOOLS\"/crema train -solver next.prototxt; ls run > before; " + start +
            "for i in $(seq 1000); do ls run/*.tmp.*-* >/dev/null 2>&1 && break; sleep 0.01; done; "
            "for i in 1 2 3; do \"$TOOLS\"/crema train -solver next.prototxt; done; kill -INT "
            "$job; "
            "wait $job");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err.find("could not be written"), std::string::npos) << outcome.err;
    expect_part(outcome.err, "] Removed run/a_iter_");
    expect_part(outcome.err, ", which a run that was killed has left.");
    EXPECT_EQ(folder.read("before").find("-"), std::string::npos) << folder.read("before");
    EXPECT_EQ(temporary_files(folder), std::vector<std::string>{"notes.tmp.txt"});
    EXPECT_EQ(folder.read("run/notes.tmp.txt"), "precious");
  }
}

// Caffe tries a file of this name, which may be somebody's, or a link to something.
TEST(Leftovers, NothingThatLiesInTheSnapshotsFolderIsTouched) {
  const Folder folder;
  folder.write("net.prototxt", net);
  folder.write("solver.prototxt", solver("a", "max_iter: 1\nsnapshot: 1\n"));
  folder.write("victim", "precious");
  folder.write("run/a_iter_0.tempfile", "mine");
  ASSERT_EQ(run(folder, "crema train -solver solver.prototxt").code, 0);
  EXPECT_EQ(folder.read("run/a_iter_0.tempfile"), "mine");
  std::filesystem::remove(folder.file("run/a_iter_0.tempfile"));
  std::filesystem::create_symlink("../victim", folder.file("run/a_iter_0.tempfile"));
  ASSERT_EQ(run(folder, "crema train -solver solver.prototxt").code, 0);
  EXPECT_EQ(folder.read("victim"), "precious");
  EXPECT_TRUE(std::filesystem::is_symlink(folder.file("run/a_iter_0.tempfile")));
}

}  // namespace leftovers_test
}  // namespace crema::tests
