// Writes the layer rows of tests/layers/rows as ONNX models, each with inputs and with the values that
// Crema computes from them, for onnx_rows.py to run:  onnx_rows FOLDER [OPSET [fold]]
//   FOLDER/NAME.onnx     the model
//   FOLDER/NAME.values   floats: its inputs, then the values of the net that it has
//   FOLDER/rows.tsv      a line for each row: NAME, then inputs=NAME:EXTENTS;..., values=..., or
//                        refused=WHY; failed=WHY
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "base/random.h"
#include "base/strings.h"
#include "data/lists/message_text.h"
#include "exchange/onnx/export.h"
#include "layers/row.h"
#include "net/plan/plan.h"
#include "net/prototxt/upgrade.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

// The row's layer behind an Input for each bottom.
std::string net_of(const Row& row, int tops) {
  std::string text = "name: \"row\"\n";
  for (size_t i = 0; i < row.bottoms.size(); ++i) {
    text += cat("layer { name: \"input", i, "\" type: \"Input\" top: \"bottom", i,
                "\" input_param { shape {");
    for (const int64_t extent : row.bottoms[i].shape.dims()) text += cat(" dim: ", extent);
    text += " } } }\n";
  }
  text += cat("layer { name: \"", row.name, "\" ", row.text);
  for (size_t i = 0; i < row.bottoms.size(); ++i) text += cat(" bottom: \"bottom", i, "\"");
  for (int i = 0; i < tops; ++i) text += cat(" top: \"top", i, "\"");
  return text + " }\n";
}

int tops_of(const Row& row) {
  LayerParameter message;
  if (!parse_message(row.text, &message).empty()) return 1;
  if (message.top_size() > 0) return 0;  // the row names them
  const std::unique_ptr<Layer> layer = make_layer(message, false, CREMA_TEST_DATA);
  return layer->as_many_tops_as_bottoms() ? static_cast<int>(row.bottoms.size())
                                          : std::max(layer->tops().minimum, 1);
}

// Parameters that no filler makes interesting, as statistics: positive and different.
void fill_parameters(Net& net) {
  uint64_t seed = 1;
  for (Parameter& parameter : net.parameters()) {
    std::vector<float> values = to_floats(net.context(), parameter.data);
    for (float& value : values) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      const float unit = static_cast<float>(seed >> 40) / static_cast<float>(1 << 24);
      if (!parameter.learned)
        value = 0.5f + unit;
      else
        value += 0.3f * (unit - 0.5f);
    }
    from_floats(net.context(), values.data(), parameter.data);
  }
  net.parameters_changed();
}

std::string extents_of(const Shape& shape) {
  std::string text;
  for (const int64_t extent : shape.dims()) text += cat(text.empty() ? "" : ",", extent);
  return text;
}

std::string one_line(std::string text) {
  for (char& c : text)
    if (c == '\n' || c == '\t') c = ' ';
  return text;
}

class RowWriter {
 public:
  RowWriter(std::string folder, OnnxOptions options)
      : folder_(std::move(folder)), options_(options), list_(folder_ + "/rows.tsv") {}

  void write(const Row& row) {
    Context context(Device::cpu);
    context.set_log(silent_log());
    NetParameter message;
    NetOptions options;
    options.state.set_phase(TEST);
    options.keep_blobs = options.row_major = true;
    options.fuse = false;
    options.folder = CREMA_TEST_DATA;
    std::unique_ptr<Net> net;
    try {
      require(parse_message(net_of(row, tops_of(row)), &message).empty(), "not text of a net");
      if (message.layer(message.layer_size() - 1).type().find('+') != std::string::npos)
        return;  // a type that only the planner makes
      net = std::make_unique<Net>(context, message, options);
      fill_parameters(*net);
    } catch (const Error&) {
      return;  // a row for training, or for an error
    }
    list_ << row.id() << '\t' << row.text.substr(0, row.text.find(' ', 6)) << '\t' << row.tolerance;
    try {
      const OnnxModel made = export_onnx(*net, options_);
      for (size_t i = 0; i < row.bottoms.size(); ++i) {
        const std::vector<double> values = make_values(row, static_cast<int>(i));
        const std::vector<float> floats(values.begin(), values.end());
        if (net->has_blob(cat("bottom", i))) net->set_input(cat("bottom", i), floats.data());
      }
      net->forward(0);
      std::ofstream(folder_ + "/" + row.id() + ".onnx", std::ios::binary)
          << made.model.SerializeAsString();
      std::ofstream values(folder_ + "/" + row.id() + ".values", std::ios::binary);
      const auto add = [&](int id) {
        const std::vector<float> floats = to_floats(context, net->plan().value(id));
        values.write(reinterpret_cast<const char*>(floats.data()),
                     static_cast<std::streamsize>(floats.size() * sizeof(float)));
      };
      list_ << "\tinputs=";
      const Graph& graph = net->graph();
      for (const Node& node : graph.nodes) {
        if (node.message.type() != "Input") continue;
        for (const int id : node.tops) {
          list_ << graph.values[id].blob << ':' << extents_of(graph.values[id].shape) << ';';
          add(id);
        }
      }
      list_ << "\tvalues=";
      for (const auto& [id, name] : made.values) {
        list_ << name << ':' << extents_of(net->plan().value(id).shape()) << ';';
        add(id);
      }
      for (const std::string& note : made.notes) list_ << "\tnote=" << one_line(note);
    } catch (const Error& error) {
      list_ << "\trefused=" << one_line(error.what());
    }
    list_ << '\n';
  }

 private:
  const std::string folder_;
  const OnnxOptions options_;
  std::ofstream list_;
};

}  // namespace
}  // namespace crema

int main(int argc, char** argv) {
  using namespace crema;
  if (argc < 2) {
    std::cerr << "onnx_rows FOLDER [OPSET [nofold]]\n";
    return 2;
  }
  OnnxOptions options;
  if (argc > 2) options.opset = std::stoi(argv[2]);
  options.fold = argc < 4;
  std::filesystem::create_directories(argv[1]);
  RowWriter writer(argv[1], options);
  for (const Row& row : read_rows(CREMA_TEST_DATA "/layers/rows"))
    if (row.error.empty()) writer.write(row);
}
