// run.lock: what it has, and that it tells runs apart.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tools/program.h"

namespace crema::tests {
namespace run_lock_test {

using Json = nlohmann::json;

// A mean file for a database, and a list of images.
constexpr const char* net =
    "name: \"small\"\n"
    "layer { name: \"data\" type: \"Data\" top: \"data\" top: \"label\" data_param { source: "
    "\"records\" backend: LMDB batch_size: 5 } transform_param { mean_file: \"mean.binaryproto\" } "
    "}\n"
    "layer { name: \"listed\" type: \"ImageData\" top: \"listed\" top: \"class\" image_data_param "
    "{ source: \"list.txt\" root_folder: \"images/\" batch_size: 2 } }\n"
    "layer { name: \"ip\" type: \"InnerProduct\" bottom: \"data\" top: \"ip\" inner_product_param "
    "{ num_output: 21 weight_filler { type: \"xavier\" } } }\n"
    "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"ip\" bottom: \"label\" top: "
    "\"loss\" }\n"
    "layer { name: \"unused\" type: \"Silence\" bottom: \"listed\" bottom: \"class\" }\n";

constexpr const char* solver =
    "net: \"net.prototxt\"\nbase_lr: 0.00001\nlr_policy: \"fixed\"\nrandom_seed: 3\n"
    "solver_mode: CPU\nmax_iter: 6\nsnapshot: 4\n";

constexpr const char* start = "crema train -solver solver.prototxt -run ";

void prepare(const Folder& folder) {
  folder.write("net.prototxt", net);
  folder.write("solver.prototxt", solver);
  folder.copy_golden("formats/lmdb_raw", "records");
  folder.copy_golden("formats/mean.binaryproto", "mean.binaryproto");
  folder.copy_golden("formats/images", "images");
  folder.write("list.txt", "img00.png 0\nimg01.png 1\n");
}

Json lock_of(const Folder& folder, const std::string& run) {
  return Json::parse(folder.read(run + "/run.lock"), nullptr, false);
}

// The paths of the values that differ: "/machine/threads".
std::vector<std::string> differing(const Json& a, const Json& b) {
  std::vector<std::string> paths;
  for (const Json& change : Json::diff(a, b)) paths.push_back(change.at("path"));
  return paths;
}

void change_byte(const Folder& folder, const std::string& file, size_t at) {
  std::string bytes = folder.read(file);
  ASSERT_LT(at, bytes.size());
  bytes[at] = static_cast<char>(bytes[at] ^ 1);
  folder.write(file, bytes);
}

TEST(RunLock, HasAllThatARunDependsOn) {
  const Folder folder;
  prepare(folder);
  const Outcome outcome = run(folder, cat(start, "first -deterministic"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json lock = lock_of(folder, "first");
  ASSERT_TRUE(lock.is_object());
  for (const char* path :
       {"/net", "/solver", "/seed", "/weights/hash", "/program/version", "/program/built_with",
        "/libraries/protobuf", "/libraries/LMDB", "/machine/host", "/machine/processor",
        "/machine/threads", "/machine/device", "/flags/precision", "/environment"})
    EXPECT_TRUE(lock.contains(Json::json_pointer(path))) << path;
  EXPECT_EQ(lock["seed"], 3);
  EXPECT_EQ(lock["flags"]["deterministic"], true);
  ASSERT_EQ(lock["data"].size(), 3u);
  struct Row {
    const char *layer, *field, *kind, *path;
    int files;
  };
  const std::vector<Row> rows = {
      {"data", "transform_param.mean_file", "file", "./mean.binaryproto", 1},
      {"data", "data_param.source", "LMDB", "./records", 1},
      {"listed", "image_data_param.source", "list", "./list.txt", 3}};
  for (const Row& row : rows) {
    const auto set = std::find_if(lock["data"].begin(), lock["data"].end(), [&](const Json& one) {
      return one["layer"] == row.layer && one["field"] == row.field;
    });
    ASSERT_NE(set, lock["data"].end()) << row.field;
    EXPECT_EQ((*set)["kind"], row.kind);
    EXPECT_EQ(std::filesystem::path(set->at("path")).lexically_normal(),
              std::filesystem::path(row.path).lexically_normal());
    EXPECT_EQ((*set)["files"], row.files) << row.field;
    EXPECT_GT((*set)["bytes"], 0);
    EXPECT_EQ((*set)["hash"].get<std::string>().size(), 16u);
    EXPECT_FALSE(set->contains("sampled"));
  }
  ASSERT_EQ(run(folder, cat(start, "again -deterministic")).code, 0);
  EXPECT_EQ(differing(lock, lock_of(folder, "again")), std::vector<std::string>());
}

struct Change {
  const char* name;
  const char* flags;        // of the second run
  const char* environment;  // likewise
  void (*change)(const Folder&);
  std::string member;      // that differs
  std::string reproduced;  // what reproduce says about the first run then; "": nothing to say
};

const std::vector<Change>& changes() {
  static const std::vector<Change> all = {
      {"threads", "", "OMP_NUM_THREADS=1", nullptr, "machine", ""},
      {"record", "", "", [](const Folder& f) { change_byte(f, "records/data.mdb", 0x3f00); },
       "data", "records has other content (was "},
      {"order", "", "", [](const Folder& f) { f.write("list.txt", "img01.png 1\nimg00.png 0\n"); },
       "data", "list.txt has other content (was "},
      {"image", "", "",
       [](const Folder& f) { f.write("images/img01.png", f.read("images/img01.png") + "more"); },
       "data", "list.txt has other content (was "},
      {"another image", "", "",
       [](const Folder& f) { f.write("images/img04.png", "not in the list"); }, "", ""},
      {"mean", "", "", [](const Folder& f) { change_byte(f, "mean.binaryproto", 200); }, "data",
       "the file mean.binaryproto has other content (was "},
      {"weights", "-weights first/snapshots/solver_iter_6.caffemodel", "", nullptr, "weights", ""},
      {"precision", "-precision tf32", "", nullptr, "flags", ""},
      {"off", "-off fuse", "", nullptr, "flags", ""},
      {"recompute", "-recompute all", "", nullptr, "flags", ""},
      {"instructions", "", "ONEDNN_MAX_CPU_ISA=AVX2", nullptr, "environment", ""},
      {"rate", "-set base_lr=0.00002", "", nullptr, "solver", ""},
      {"seed", "-set random_seed=4", "", nullptr, "seed,weights", ""},
  };
  return all;
}

TEST(RunLock, TellsRunsApart) {
  for (const Change& change : changes()) {
    SCOPED_TRACE(change.name);
    const Folder folder;
    prepare(folder);
    const std::string threads = "OMP_NUM_THREADS=2 ";
    const std::string train = "\"$TOOLS\"/" + std::string(start);
    ASSERT_EQ(run_shell(folder, threads + train + "first").code, 0);
    if (change.change) change.change(folder);
    const Outcome second =
        run_shell(folder, cat(threads, change.environment, " ", train, "second ", change.flags));
    ASSERT_EQ(second.code, 0) << second.err;
    std::string members;
    for (const std::string& path : differing(lock_of(folder, "first"), lock_of(folder, "second"))) {
      const std::string member = path.substr(1, path.find('/', 1) - 1);
      if (!ends_with(members, member)) members += (members.empty() ? "" : ",") + member;
    }
    // Several members may depend on one change.
    std::vector<std::string> expected = split(change.member, ','), found = split(members, ',');
    std::sort(expected.begin(), expected.end());
    std::sort(found.begin(), found.end());
    EXPECT_EQ(found, expected);
    if (change.reproduced.empty()) continue;
    const Outcome again = run_shell(folder, threads + "\"$TOOLS\"/crema reproduce first");
    expect_part(again.err, change.reproduced);
    EXPECT_LT(again.err.find(change.reproduced), again.err.find("From the start of the run"));
  }
}

TEST(RunLock, NamesDifferencesWhereBitsDiffer) {
  const Folder folder;
  prepare(folder);
  const auto with_threads = [&](int threads, const std::string& command) {
    return run_shell(folder, cat("OMP_NUM_THREADS=", threads, " \"$TOOLS\"/", command));
  };
  ASSERT_EQ(with_threads(2, cat(start, "first")).code, 0);
  ASSERT_EQ(with_threads(1, cat(start, "second -set random_seed=4")).code, 0);
  const Outcome bisect = with_threads(2, "crema bisect first second");
  expect_part(bisect.err, "threads is 1 (was 2)");
  expect_part(bisect.err, "the weights at the start have other values (was ");
  change_byte(folder, "mean.binaryproto", 203);
  for (const char* command : {"crema reproduce first", "crema replay -run first -iteration 2"}) {
    const Outcome outcome = with_threads(1, command);
    expect_part(outcome.err, "Not the run's bits");
    expect_part(outcome.err, "threads is 1 (was 2)");
    expect_part(outcome.err, "mean.binaryproto has other content (was ");
  }
  // As before there was such a file.
  std::filesystem::remove(folder.file("first/run.lock"));
  std::filesystem::remove(folder.file("second/run.lock"));
  const Outcome older = with_threads(2, "crema reproduce first");
  EXPECT_EQ(older.code, 1);
  expect_part(older.err, "different: Not the run's bits");
  EXPECT_EQ(older.err.find("has other content"), std::string::npos);
  EXPECT_EQ(with_threads(2, "crema bisect first second").code, 0);
}

TEST(RunLock, AResumedRunAddsItsStart) {
  const Folder folder;
  prepare(folder);
  ASSERT_EQ(run(folder, cat(start, "first")).code, 0);
  const Json before = lock_of(folder, "first");
  const std::string again = cat(start, "first -snapshot auto -off fuse -set max_iter=8");
  ASSERT_EQ(run(folder, again).code, 0);
  Json lock = lock_of(folder, "first");
  ASSERT_EQ(lock["resumed"].size(), 1u);
  EXPECT_EQ(lock["resumed"][0]["iteration"], 6);
  EXPECT_EQ(lock["resumed"][0]["flags"]["off"], "fuse");
  EXPECT_NE(lock["resumed"][0]["weights"], before["weights"]);
  lock.erase("resumed");
  EXPECT_EQ(lock, before);
  // A damaged one does not keep a run from going on.
  folder.write("first/run.lock", "{");
  ASSERT_EQ(run(folder, cat(start, "first -snapshot auto -set max_iter=9")).code, 0);
  EXPECT_EQ(lock_of(folder, "first")["resumed"].size(), 1u);
}

TEST(RunLock, ARunGoesOnWithDataThatHaveNoHash) {
  const Folder folder;
  prepare(folder);
  std::string text = net;
  text.replace(text.find("list.txt"), 8, "/dev/stdin");
  folder.write("net.prototxt", text);
  const Outcome outcome = run_shell(folder, cat("cat list.txt | \"$TOOLS\"/", start, "first"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json lock = lock_of(folder, "first");
  const auto set = std::find_if(lock["data"].begin(), lock["data"].end(),
                                [](const Json& one) { return one["path"] == "/dev/stdin"; });
  ASSERT_NE(set, lock["data"].end());
  EXPECT_FALSE(set->contains("hash"));
  EXPECT_EQ(set->value("problem", ""), "/dev/stdin: is not a regular file");
}

}  // namespace run_lock_test
}  // namespace crema::tests
