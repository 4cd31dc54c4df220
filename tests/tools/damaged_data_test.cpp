// Files that change while a program works with them, seen from the outside.
#include <gtest/gtest.h>

#include "data/databases/database_writer.h"
#include "tools/program.h"

namespace crema::tests {
namespace damaged_data_test {

void prepare(const Folder& folder, const std::string& backend, const std::string& more) {
  folder.write("net.prototxt",
               "layer { name: \"data\" type: \"Data\" top: \"data\" top: \"label\" data_param { "
               "source: \"records\" batch_size: 10 backend: " +
                   backend +
                   " } }\n"
                   "layer { name: \"ip\" type: \"InnerProduct\" bottom: \"data\" top: \"ip\" "
                   "inner_product_param { num_output: 4 weight_filler { type: \"xavier\" } } }\n"
                   "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"ip\" bottom: "
                   "\"label\" top: \"loss\" }\n");
  folder.write("solver.prototxt",
               "net: \"net.prototxt\"\nbase_lr: 0.01\nlr_policy: \"fixed\"\nsolver_mode: CPU\n"
               "random_seed: 1\n" +
                   more);
  const std::unique_ptr<DatabaseWriter> writer = create_database(
      folder.file("records"), backend == "LMDB" ? DataParameter::LMDB : DataParameter::LEVELDB);
  // More than LevelDB keeps in memory: earlier data are not read from the file again.
  for (int i = 0; i < 30000; ++i) {
    Datum datum;
    datum.set_channels(1);
    datum.set_height(20);
    datum.set_width(20);
    std::string pixels(400, '\0');
    for (size_t k = 0; k < pixels.size(); ++k) pixels[k] = static_cast<char>(i * 31 + k * k * 7);
    datum.set_data(pixels);
    datum.set_label(i % 4);
    writer->put(numbered_key(i, 8), datum);
  }
  writer->finish();
}

TEST(DamagedData, TrainingEndsWithAnErrorWhenItsDatabaseIsCutOff) {
  for (const std::string backend : {"LMDB", "LEVELDB"}) {
#ifndef CREMA_LEVELDB
    if (backend == "LEVELDB") continue;
#endif
    SCOPED_TRACE(backend);
    const Folder folder;
    prepare(folder, backend, "max_iter: 1000000\ndisplay: 100\nsnapshot_prefix: \"n\"\n");
    const Outcome outcome =
        run_shell(folder,
                  "\"$TOOLS\"/crema train -solver solver.prototxt & "
                  "until grep -q 'Iteration 100' .stderr || ! kill -0 $!; do sleep 0.05; done; "
                  "for file in records/data.mdb records/*.ldb; do "
                  "if [ -e $file ]; then truncate -s 100000 $file; fi; done; wait $!");
    EXPECT_EQ(outcome.code, 1) << outcome.err;
    ASSERT_EQ(outcome.errors().size(), 1u) << outcome.err;
    expect_part(outcome.errors()[0], " record ");
    expect_part(outcome.errors()[0], "the database is damaged");
  }
}

TEST(DamagedData, EqualRunsWriteEqualHdf5Snapshots) {
  const Folder folder;
  prepare(folder, "LMDB",
          "max_iter: 3\ndisplay: 1\nsnapshot_format: HDF5\nsnapshot_prefix: \"run/n\"\n");
  folder.write("run/.here", "");
  const std::string names[] = {"n_iter_3.caffemodel.h5", "n_iter_3.solverstate.h5"};
  std::vector<std::string> first;
  for (const bool again : {false, true}) {
    const Outcome outcome = run(folder, "crema train -solver solver.prototxt");
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    for (int i = 0; i < 2; ++i) {
      if (again) {
        EXPECT_TRUE(folder.read("run/" + names[i]) == first[i]) << names[i];
      } else {
        first.push_back(folder.read("run/" + names[i]));
      }
    }
  }
}

}  // namespace damaged_data_test
}  // namespace crema::tests
