// Writes the reference cases of tests/goldens as ONNX models, each with its inputs and with the values
// that BVLC Caffe computed, for onnx_rows.py to run:  onnx_goldens FOLDER [OPSET]
// Files as onnx_rows writes them. A case of the training phase is left out if inference gives other
// values.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>

#include "base/files.h"
#include "base/strings.h"
#include "data/databases/hdf5/hdf5_file.h"
#include "exchange/onnx/export.h"
#include "exchange/programs.h"
#include "exchange/row_nets.h"
#include "net/plan/plan.h"
#include "net/prototxt/prototxt.h"

namespace crema {
namespace {

constexpr double kTolerance = 1e-5, kOfLongSums = 1e-4;

bool close(const std::vector<float>& ours, const std::vector<double>& reference) {
  double largest = 0, worst = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    largest = std::max(largest, std::abs(reference[i]));
    worst = std::max(worst, std::abs(ours[i] - reference[i]));
  }
  return worst <= kOfLongSums * largest + 1e-6;
}

class GoldenWriter {
 public:
  GoldenWriter(std::string folder, int opset)
      : folder_(std::move(folder)), list_(folder_ + "/rows.tsv") {
    options_.opset = opset;
  }

  void write(const std::string& stem) {
    const Hdf5File file(stem + ".h5");
    if (file.attribute("forward_passes", 1) != 1) return;
    Context context(Device::cpu);
    context.set_log(silent_log());
    NetOptions options;
    options.state.set_phase(TEST);
    options.keep_blobs = options.row_major = true;
    options.fuse = false;
    options.folder = folder_of(stem);
    std::unique_ptr<Net> net;
    try {
      net = std::make_unique<Net>(context, read_net_file(stem + ".prototxt").net, options);
      set_parameters(file, *net);
    } catch (const Error&) {
      return;  // for training only
    }
    const std::string name = std::filesystem::path(stem).filename().string();
    const std::string type = file.attribute("layer_type", "");
    const bool long_sums =
        type == "LRN" || type == "MVN" || type == "RNN" || type == "LSTM" || type == "Net";
    std::string line = cat(name, "\t", type, "\t", long_sums ? kOfLongSums : kTolerance);
    try {
      const OnnxModel made = export_onnx(*net, options_);
      for (const auto& blob : file.children("in")) {
        const std::vector<double> values = file.doubles("in/" + blob.name);
        net->set_input(blob.name, std::vector<float>(values.begin(), values.end()).data());
      }
      net->forward(0);
      if (!write_values(file, name, *net, made, &line)) return;
      std::ofstream(cat(folder_, "/", name, ".onnx"), std::ios::binary)
          << made.model.SerializeAsString();
    } catch (const Error& error) {
      line += cat("\trefused=", error.what());
    }
    list_ << line << '\n';
  }

 private:
  static void set_parameters(const Hdf5File& file, Net& net) {
    for (int i = 0; i < net.graph().net.layer_size(); ++i) {
      const std::vector<int>& parameters = net.graph().views[i].parameters;
      for (size_t k = 0; k < parameters.size(); ++k) {
        const std::string path = cat("param/", net.graph().net.layer(i).name(), "/", k);
        const Tensor& data = net.parameters()[parameters[k]].data;
        if (file.has(path)) from_doubles(net.context(), file.doubles(path).data(), data);
      }
    }
    net.parameters_changed();
  }

  // False: inference gives other values than the reference has.
  bool write_values(const Hdf5File& file, const std::string& name, Net& net, const OnnxModel& made,
                    std::string* line) {
    std::string inputs = "\tinputs=", values = "\tvalues=";
    std::vector<float> all;
    for (const Node& node : net.graph().nodes) {
      if (node.message.type() != "Input") continue;
      for (const int id : node.tops) {
        const std::string& blob = net.graph().values[id].blob;
        inputs += cat(blob, ":", extents_of(net.graph().values[id].shape), ";");
        const std::vector<double> given = file.doubles("in/" + blob);
        all.insert(all.end(), given.begin(), given.end());
      }
    }
    std::map<std::string, int> last;
    for (size_t id = 0; id < net.graph().values.size(); ++id)
      last[net.graph().values[id].blob] = static_cast<int>(id);
    for (const auto& [id, name_of_value] : made.values) {
      const std::string& blob = net.graph().values[id].blob;
      if (last[blob] != id || !file.has("out/" + blob)) continue;
      const std::vector<double> reference = file.doubles("out/" + blob);
      if (!close(to_floats(net.context(), net.plan().value(id)), reference)) return false;
      values += cat(name_of_value, ":", extents_of(net.plan().value(id).shape()), ";");
      all.insert(all.end(), reference.begin(), reference.end());
    }
    std::ofstream(cat(folder_, "/", name, ".values"), std::ios::binary)
        .write(reinterpret_cast<const char*>(all.data()),
               static_cast<std::streamsize>(all.size() * sizeof(float)));
    *line += inputs + values;
    return true;
  }

  const std::string folder_;
  OnnxOptions options_;
  std::ofstream list_;
};

}  // namespace

int run_onnx_goldens(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "onnx_goldens FOLDER [OPSET]\n";
    return 2;
  }
  std::filesystem::create_directories(argv[1]);
  GoldenWriter writer(argv[1], argc > 2 ? std::stoi(argv[2]) : 17);
  const std::string goldens = CREMA_TEST_DATA "/goldens/";
  for (const std::string& file : list_folder(goldens))
    if (ends_with(file, ".prototxt") &&
        file_exists(goldens + file.substr(0, file.size() - 9) + ".h5"))
      writer.write(goldens + file.substr(0, file.size() - 9));
  return 0;
}

}  // namespace crema
