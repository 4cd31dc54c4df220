// `crema extract_features WEIGHTS NET BLOB,... DB,... BATCHES lmdb|leveldb|hdf5|npy [CPU|GPU
// [N|DEVICE_ID=N]]`: writes blobs that a trained net computes from its data to databases of Datums,
// which a Data layer can read, to HDF5 files, which HDF5Data can, or to NumPy files.
#include <charconv>
#include <filesystem>
#include <set>

#include "net/graph/unfed_inputs.h"
#include "net/records.h"
#include "tools/db/feature_writer.h"
#include "tools/devices.h"
#include "tools/flags/net_flags.h"
#include "tools/inputs/random_inputs.h"
#include "tools/verb.h"

namespace crema {
namespace {

using ExtractFeaturesFlags =
    FlagsOf<"weights_mode", "gpu", "phase", "level", "stage", "batch", "assume", "implementation",
            "precision", "gpu_memory", "tune", "deterministic", "overwrite">;

struct Feature {
  std::string blob;
  std::unique_ptr<FeatureWriter> writer;
};

int number_in(const std::string& text, const std::string& what, int minimum) {
  int number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, number);
  require(problem == std::errc() && rest == end && number >= minimum, what, " \"", text,
          "\": expected a whole number from ", minimum, " on");
  return number;
}

// The value of -gpu for Caffe's last arguments: CPU or GPU, and the number of the GPU, N or
// DEVICE_ID=N. They override a -gpu of the environment; together with one on the command line
// (`both`) they are refused.
std::string gpu_of_words(const std::vector<std::string>& words, const std::string& flag,
                         bool both) {
  if (words.empty()) return flag;
  require(words[0] == "CPU" || words[0] == "GPU", "\"", words[0], "\": expected CPU or GPU");
  require(!both, words[0], " and -gpu ", flag, ": give one of them");
  int id = 0;
  if (words.size() > 1) {
    const std::string name = "DEVICE_ID=";
    id = number_in(starts_with(words[1], name) ? words[1].substr(name.size()) : words[1],
                   "the GPU behind " + words[0], 0);
  }
  if (words[0] == "CPU") return "";
  require(gpu_count() > 0, "GPU: ", gpu_problem(), "; give CPU to compute on the CPU");
  return std::to_string(id);
}

// HDF5Data needs labels next to the data: those of the net, if it has a blob of this name.
constexpr const char* kLabel = "label";

std::vector<Feature> features_of(Net& net, const std::string& blobs, const std::string& databases,
                                 const FeatureFormat& format, Log& log) {
  const std::vector<std::string> names = split(blobs, ','), paths = split(databases, ',');
  require(!names.empty() && names.size() == paths.size(), blobs, " and ", databases,
          ": expected a database for each blob, but there are ", names.size(), " blobs and ",
          paths.size(), " databases");
  for (const std::string& name : names) {
    const Shape shape = net.blob(name).shape();
    require(shape.axes() > 0, "blob \"", name, "\" is a single number, not one for each sample");
  }
  // DB and DB/ are the same folder.
  std::set<std::filesystem::path> folders;
  for (const std::string& path : paths) {
    const std::filesystem::path named(name_of_features(path, format) + "/");
    require(folders.insert(named.lexically_normal()).second, path,
            ": is named twice; each blob needs a database of its own");
  }
  std::vector<Feature> features;
  for (size_t i = 0; i < names.size(); ++i) {
    log.info("Opening dataset " + paths[i]);
    features.push_back({names[i], create_features(paths[i], format)});
  }
  return features;
}

// The labels of a blob's rows; none if the net has none, or not one per row.
std::vector<float> labels_of(Net& net, const Feature& feature, const Shape& shape) {
  if (!feature.writer->takes_labels() || feature.blob == kLabel || !net.has_blob(kLabel)) return {};
  const Tensor labels = net.blob(kLabel);
  if (labels.shape().axes() == 0 || labels.shape()[0] != shape[0]) return {};
  return to_floats(net.context(), labels);
}

// Writes the samples of a batch, in Caffe's order.
void put_samples(Net& net, const Feature& feature, Log& log) {
  const Tensor blob = net.blob(feature.blob);
  const int64_t before = feature.writer->count();
  feature.writer->put(blob.shape(), to_floats(net.context(), blob),
                      labels_of(net, feature, blob.shape()));
  constexpr int64_t kSaid = 1000;
  for (int64_t count = (before / kSaid + 1) * kSaid; count <= feature.writer->count();
       count += kSaid) {
    log.info(cat("Extracted features of ", count, " query images for feature blob ", feature.blob));
  }
}

int run_extract_features(const VerbCall& call, const ExtractFeaturesFlags& flags) {
  const std::vector<std::string>& words = call.arguments;
  ModelFlags model = ModelFlags::without<"model", "set", "off", "recompute">(flags);
  model.model = words[1];
  WeightFlags weights = WeightFlags::without<"weights">(flags);
  weights.weights = words[0];
  DeviceFlags device = DeviceFlags::without<"off">(flags);
  const int batches = number_in(words[4], "number of batches", 1);
  // Caffe of 2014 wrote LevelDBs and took no kind.
  const bool has_kind = words.size() > 5 && words[5] != "CPU" && words[5] != "GPU";
  const FeatureFormat format = feature_format(has_kind ? words[5] : "leveldb", flags.overwrite);
  device.gpu = gpu_of_words({words.begin() + (has_kind ? 6 : 5), words.end()}, flags.gpu,
                            call.given.count("gpu") > 0);

  const std::unique_ptr<Context> context = make_context(call.log, device);
  call.log.info(context->device() == Device::gpu ? cat("Using GPU ", context->ordinal())
                                                 : "Using CPU");
  const Precision precision = precision_of_flag(*context, flags.precision);
  log_device(call.log, device, *context, precision);
  NetInput input = read_model(call.log, model, phase_of_flag(flags.phase, TEST));
  input.options.keep_blobs = true;
  input.options.precision = precision;
  input.options.weights_follow = !weights.weights.empty();
  Net net(*context, input.net, input.options);
  if (flags.assume.empty())
    refuse_unfed_inputs(input.net, input.options.state, input.options.where);
  load_weights_of_flags(weights, net);
  fill_random_inputs(net);
  const std::vector<Feature> features = features_of(net, words[2], words[3], format, call.log);
  const int64_t records = records_of(net), samples = batches * batch_of(net);
  if (records > 0 && samples > records) {
    call.log.warning(cat(batches, " batches are ", samples, " samples, but the net's source has ",
                         records, ": it starts over after them"));
  }

  call.log.info("Extracting Features");
  for (int i = 0; i < batches; ++i) {
    net.forward(i);
    net.check();
    for (const Feature& feature : features) put_samples(net, feature, call.log);
  }
  for (const Feature& feature : features) feature.writer->complete();
  for (const Feature& feature : features) {
    feature.writer->finish();
    call.log.info(cat("Extracted features of ", feature.writer->count(),
                      " query images for feature blob ", feature.blob));
  }
  call.log.info("Successfully extracted the features!");
  return 0;
}

REGISTER_VERB(
    extract_features,
    {.summary = "writes blobs of a trained net as databases or NumPy files",
     .usage = "[flags] WEIGHTS NET.prototxt BLOB[,BLOB...] DB[,DB...] BATCHES "
              "[lmdb|leveldb|hdf5|npy] [CPU|GPU [N|DEVICE_ID=N]]",
     .example = "crema extract_features lenet.caffemodel "
                "models/lenet/digits_train_val.prototxt ip1 features_lmdb 10 lmdb",
     .meanings =
         {{"gpu", "The number of the GPU to run on. Empty: the CPU."},
          {"precision",
           "The precision: fp32, tf32, bf16 or fp16. Empty: tf32 on a GPU, fp32 on a CPU."}},
     .min_arguments = 5,
     .max_arguments = 8,
     .run = run_extract_features});

}  // namespace
}  // namespace crema
