// Writes the layer rows of tests/layers/rows as ONNX models, each with inputs and with the values that
// Crema computes from them, for onnx_rows.py to run:  onnx_rows FOLDER [OPSET [fold]]
//   FOLDER/NAME.onnx     the model
//   FOLDER/NAME.values   floats: its inputs, then the values of the net that it has
//   FOLDER/rows.tsv      a line for each row: NAME, then inputs=NAME:EXTENTS;..., values=..., or
//                        refused=WHY; failed=WHY
#include <filesystem>
#include <fstream>
#include <iostream>

#include "exchange/onnx/export.h"
#include "exchange/programs.h"
#include "exchange/row_nets.h"
#include "net/plan/plan.h"

namespace crema {
namespace {

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
    const std::unique_ptr<Net> net = net_of_row(context, row);
    if (!net) return;
    list_ << row.id() << '\t' << row.text.substr(0, row.text.find(' ', 6)) << '\t' << row.tolerance;
    try {
      const OnnxModel made = export_onnx(*net, options_);
      set_row_inputs(*net, row);
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

int run_onnx_rows(int argc, char** argv) {
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
  return 0;
}

}  // namespace crema
