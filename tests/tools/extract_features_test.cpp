// extract_features: it writes what the net computes, and a Data layer can read it.
#include <gtest/gtest.h>

#include "data/databases/hdf5/hdf5_file.h"
#include "data/databases/source.h"
#include "device/device.h"
#include "tools/program.h"

namespace crema::tests {
namespace extract_features_test {

// Six images of 2 x 3 in an LMDB, and a net that was trained on them for two iterations.
void make_trained_net(const Folder& folder) {
  std::string images("\0\0\x08\x03\0\0\0\x06\0\0\0\x02\0\0\0\x03", 16),
      labels("\0\0\x08\x01\0\0\0\x06", 8);
  for (int i = 0; i < 36; ++i) images += static_cast<char>(i * i % 251);
  for (int i = 0; i < 6; ++i) labels += static_cast<char>(i % 2);
  folder.write("images", images);
  folder.write("labels", labels);
  ASSERT_EQ(run(folder, "convert_mnist_data images labels digits_lmdb").code, 0);
  const std::string text =
      "layer { name: \"data\" type: \"Data\" top: \"data\" top: \"label\" transform_param { scale: "
      "0.01 } data_param { source: \"digits_lmdb\" batch_size: 3 backend: LMDB } }\n"
      "layer { name: \"conv\" type: \"Convolution\" bottom: \"data\" top: \"conv\" "
      "convolution_param { num_output: 4 kernel_size: 2 weight_filler { type: \"xavier\" } } }\n"
      "layer { name: \"relu\" type: \"ReLU\" bottom: \"conv\" top: \"conv\" }\n"
      "layer { name: \"ip\" type: \"InnerProduct\" bottom: \"conv\" top: \"ip\" "
      "inner_product_param { num_output: 2 weight_filler { type: \"xavier\" } } }\n";
  folder.write("net.prototxt", text);
  folder.write("train.prototxt",
               text +
                   "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"ip\" bottom: "
                   "\"label\" top: \"loss\" }\n");
  folder.write("solver.prototxt",
               "net: \"train.prototxt\" base_lr: 0.1 lr_policy: \"fixed\" max_iter: 2 random_seed: "
               "3 snapshot_prefix: \"trained\"\n");
  ASSERT_EQ(run(folder, "train -solver solver.prototxt").code, 0);
}

// A blob as `crema test` prints it: "Batch 0, ip = 0.5" without the blob's name.
std::vector<double> values_of(const Outcome& outcome, const std::string& blob) {
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  std::vector<double> values;
  const std::string part = ", " + blob + " = ";
  for (const std::string& line : outcome.messages()) {
    const size_t at = line.find(part);
    if (at != std::string::npos) values.push_back(std::stod(line.substr(at + part.size())));
  }
  return values;
}

TEST(ExtractFeatures, WritesWhatADataLayerReads) {
  const Folder folder;
  make_trained_net(folder);
  // `test` prints blobs that no layer reads: the convolution's top without the layer after it.
  const std::string text = folder.read("net.prototxt");
  folder.write("conv.prototxt", text.substr(0, text.find("layer { name: \"ip\"")));
  const char* const weights = "trained_iter_2.caffemodel";
  const auto computed = [&](const std::string& net, const std::string& blob) {
    return values_of(
        run(folder, "test -iterations 2 -weights " + std::string(weights) + " -model " + net),
        blob);
  };

  for (const std::string backend : {"lmdb", "leveldb"}) {
#ifndef CREMA_LEVELDB
    if (backend != "lmdb") continue;
#endif
    const std::string name = "conv_" + backend + ",ip_" + backend;
    // The ending that Caffe's makefile gives its programs.
    const Outcome outcome =
        run(folder, std::string("extract_features.bin ") + weights + " net.prototxt conv,ip " +
                        name + " 2 " + backend + " CPU DEVICE_ID=0");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    expect_part(outcome.err, "Extracted features of 6 query images for feature blob ip");
    EXPECT_EQ(outcome.messages().back(), "Successfully extracted the features!");
    for (const std::string blob : {"conv", "ip"}) {
      folder.write("read.prototxt", "layer { name: \"again\" type: \"Data\" top: \"" + blob +
                                        "\" data_param { source: \"" + blob + "_" + backend +
                                        "\" batch_size: 3 backend: " +
                                        (backend == "lmdb" ? "LMDB" : "LEVELDB") + " } }\n");
      const std::vector<double> expected =
          computed(blob == "conv" ? "conv.prototxt" : "net.prototxt", blob);
      EXPECT_EQ(expected.size(), blob == "conv" ? 2u * 3 * 4 * 2 : 2u * 3 * 2);
      const std::vector<double> read = computed("read.prototxt", blob);
      ASSERT_EQ(read.size(), expected.size());
      // `test` fuses layers, whose sums may be rounded in another order.
      for (size_t k = 0; k < read.size(); ++k)
        EXPECT_NEAR(read[k], expected[k], 1e-5) << blob << " from " << backend << ", " << k;
    }
  }
}

// HDF5 files also have the labels of the net, so a net that reads them can be trained.
TEST(ExtractFeatures, WritesHdf5ThatIsTrainedFrom) {
  const Folder folder;
  make_trained_net(folder);
  const std::string extract = "extract_features trained_iter_2.caffemodel net.prototxt ";
  const Outcome outcome = run(folder, extract + "conv,label db,classes 2 hdf5");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(folder.read("db.txt"), "db/0000.h5\n");
  {
    const Hdf5File file(folder.file("db/0000.h5")), classes(folder.file("classes/0000.h5"));
    EXPECT_EQ(file.shape("data"), (Shape{6, 4, 1, 2}));
    EXPECT_EQ(file.floats("label"), (std::vector<float>{0, 1, 0, 1, 0, 1}));
    EXPECT_EQ(classes.floats("data"), file.floats("label"));
    EXPECT_FALSE(classes.has("label"));
  }
  folder.write("features.prototxt",
               "layer { name: \"d\" type: \"HDF5Data\" top: \"data\" top: \"label\" "
               "hdf5_data_param { source: \"db.txt\" batch_size: 6 } } "
               "layer { name: \"i\" type: \"InnerProduct\" bottom: \"data\" top: \"i\" "
               "inner_product_param { num_output: 2 } } layer { name: \"l\" type: "
               "\"SoftmaxWithLoss\" bottom: \"i\" bottom: \"label\" top: \"l\" }");
  folder.write("fit.prototxt",
               "net: \"features.prototxt\" base_lr: 0.1 lr_policy: \"fixed\" max_iter: 3 "
               "snapshot_after_train: false snapshot_prefix: \"fit\"");
  EXPECT_EQ(run(folder, "train -solver fit.prototxt").code, 0);
}

TEST(ExtractFeatures, WritesNumpyFiles) {
  const Folder folder;
  make_trained_net(folder);
  const std::string extract = "extract_features trained_iter_2.caffemodel net.prototxt ";
  const Outcome outcome = run(folder, extract + "conv,label conv,classes.npy 2 npy");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  expect_part(folder.read("conv.npy"), "'shape': (6, 4, 1, 2), }");
  const std::string classes = folder.read("classes.npy");
  expect_part(classes, "'shape': (6,), }");
  const std::string zero(4, '\0'), one("\0\0\x80\x3F", 4);
  EXPECT_EQ(classes.substr(classes.size() - 24), zero + one + zero + one + zero + one);
  // The values of Caffe's records, which have no label.
  ASSERT_EQ(run(folder, extract + "conv db 2 lmdb").code, 0);
  const auto source = open_database(folder.file("db"), DataParameter::LMDB);
  std::vector<float> values;
  for (int64_t i = 0; i < source->size(); ++i) {
    Datum datum;
    source->read(i, datum);
    EXPECT_FALSE(datum.has_label() || datum.labels_size() > 0);
    values.insert(values.end(), datum.float_data().begin(), datum.float_data().end());
  }
  const std::string array = folder.read("conv.npy");
  const std::string bytes(reinterpret_cast<const char*>(values.data()),
                          values.size() * sizeof(float));
  EXPECT_EQ(array.substr(array.size() - bytes.size()), bytes);
}

// Only -overwrite replaces existing files, and only with the same kind.
TEST(ExtractFeatures, ReplacesWhatItIsToldTo) {
  const Folder folder;
  make_trained_net(folder);
  const std::string extract = "extract_features trained_iter_2.caffemodel net.prototxt ip ";
  for (const std::string kind : {"lmdb", "leveldb", "hdf5", "npy"}) {
#ifndef CREMA_LEVELDB
    if (kind == "leveldb") continue;
#endif
    SCOPED_TRACE(kind);
    ASSERT_EQ(run(folder, extract + "db 1 " + kind).code, 0);
    const std::vector<std::string> before = folder.names();
    const Outcome again = run(folder, extract + "db 1 " + kind);
    EXPECT_EQ(again.code, 1);
    ASSERT_EQ(again.errors().size(), 1u) << again.err;
    expect_part(again.errors()[0], kind == "npy" ? "db.npy: exists already" : "db: exists already");
    const Outcome replaced =
        run(folder, "extract_features -overwrite" + extract.substr(16) + "db 2 " + kind);
    EXPECT_EQ(replaced.code, 0) << replaced.err;
    expect_part(replaced.err, "Extracted features of 6 query images for feature blob ip");
    EXPECT_EQ(folder.names(), before);
    std::filesystem::remove_all(folder.file("db"));
    std::filesystem::remove(folder.file("db.txt"));
  }
  folder.write("words.npy", "words");
  const Outcome words =
      run(folder, "extract_features -overwrite" + extract.substr(16) + "words 1 npy");
  EXPECT_EQ(words.code, 1);
  expect_part(words.errors().at(0), "words.npy: is no NumPy file, so it is not replaced");
  EXPECT_EQ(folder.read("words.npy"), "words");
}

TEST(ExtractFeatures, SaysWhatIsWrongAndLeavesNothing) {
  const Folder folder;
  make_trained_net(folder);
  struct Row {
    const char* arguments;
    const char* message;
  };
  for (const Row& row :
       {Row{"net.prototxt cnv db 2 lmdb", "has no blob \"cnv\" (did you mean \"conv\"?)"},
        Row{"net.prototxt conv,ip db 2 lmdb", "there are 2 blobs and 1 databases"},
        Row{"net.prototxt conv,ip db,db 2 lmdb", "db: is named twice"},
        Row{"net.prototxt conv,ip db,./db// 2 lmdb", "./db//: is named twice"},
        Row{"net.prototxt conv db 0 lmdb", "number of batches \"0\""},
        Row{"net.prototxt conv db two lmdb", "number of batches \"two\""},
        Row{"net.prototxt conv db 2 hdf6", "did you mean \"hdf5\"?"},
        Row{"net.prototxt conv db 2 numpy", "there are lmdb, leveldb, hdf5 and npy"},
        Row{"net.prototxt conv,ip db,db.npy 2 npy", "db.npy: is named twice"},
        Row{"net.prototxt conv db 2 lmdb TPU", "\"TPU\": expected CPU or GPU"},
        Row{"net.prototxt conv db 2 lmdb GPU one", "the GPU behind GPU \"one\": expected a whole"},
        Row{"train.prototxt loss db 2 lmdb", "\"loss\" is a single number"},
        Row{"net.prototxt conv db", "too few arguments (4)"}}) {
    const Outcome outcome =
        run(folder, std::string("extract_features trained_iter_2.caffemodel ") + row.arguments);
    EXPECT_EQ(outcome.code, 1) << row.arguments;
    ASSERT_EQ(outcome.errors().size(), 1u) << outcome.err;
    expect_part(outcome.errors()[0], row.message);
    for (const std::string& name : folder.names())
      EXPECT_FALSE(starts_with(name, "db")) << name << " of " << row.arguments;
  }
  if (gpu_count() > 0) return;
  for (const std::string number : {"", " 0", " DEVICE_ID=0"}) {
    const Outcome outcome =
        run(folder,
            "extract_features trained_iter_2.caffemodel net.prototxt conv db 2 lmdb GPU" + number);
    ASSERT_EQ(outcome.errors().size(), 1u) << outcome.err;
    expect_part(outcome.errors()[0], "GPU: ");
    expect_part(outcome.errors()[0], "; give CPU to compute on the CPU");
  }
}

}  // namespace extract_features_test
}  // namespace crema::tests
