// Writes the layer rows of tests/layers/rows as files of a Caffe dialect, reads these again, and
// compares what they compute:  caffe_rows [DIALECT [FOLDER [NAME...]]]
// Without arguments it does so for all dialects. Prints a line for each row that differs, and how many
// there are; exit code 1 if one differs, has a field that the dialect's schema lacks, or is not
// rewritten as caffe_rewrites.rows says. With a FOLDER the files stay there, for caffe_rows.py:
//   NAME.prototxt, NAME.caffemodel
//   NAME.values   floats: the inputs, then the values of the net that the files have
//   rows.tsv      NAME, TYPE, TOLERANCE, then inputs=NAME:EXTENTS;... values=LAYER|BLOB|INDEX:EXTENTS;...
//                 or refused=WHY
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <set>

#include "base/files.h"
#include "exchange/caffe/export.h"
#include "exchange/caffe_schema.h"
#include "exchange/programs.h"
#include "exchange/row_nets.h"
#include "net/net_text.h"
#include "net/plan/plan.h"
#include "net/prototxt/net_input.h"
#include "net/weights/weights.h"

namespace crema {
namespace {

std::string in_one_line(std::string text) {
  for (char& c : text)
    if (c == '\n' || c == '\t') c = ' ';
  return text;
}

std::string type_of(const Row& row) {
  const size_t from = row.text.find('"') + 1;
  return row.text.substr(from, row.text.find('"', from) - from);
}

// Of caffe_rewrites.rows: rows with the types that they become, or "refused: " and a part of the
// message.
std::map<std::string, std::string> expected_of(const std::string& dialect) {
  std::map<std::string, std::string> expected;
  for (const std::string& line :
       split(read_text(CREMA_TEST_DATA "/exchange/caffe_rewrites.rows"), '\n')) {
    const std::vector<std::string> parts = split(line, '|');
    if (line.empty() || line[0] == '#' || trim(parts[0]) != dialect) continue;
    expected[std::string(trim(parts[1]))] = trim(parts[2]);
  }
  return expected;
}

// Files that have been compared already: most rows are written alike for several dialects.
std::set<std::string> compared;

bool is_new(const Row& row, const CaffeModel& model) {
  std::string key = row.id() + net_text(model.net);
  for (const std::vector<CaffeBlob>& blobs : model.weights)
    for (const CaffeBlob& blob : blobs)
      key.append(reinterpret_cast<const char*>(blob.values.data()),
                 blob.values.size() * sizeof(float));
  return compared.insert(std::move(key)).second;
}

class CaffeRows {
 public:
  CaffeRows(const Dialect& dialect, std::string folder)
      : dialect_(dialect),
        folder_(std::move(folder)),
        list_(folder_ + "/rows.tsv"),
        expected_(expected_of(dialect.name)) {}

  void run(const Row& row) {
    Context context(Device::cpu);
    context.set_log(silent_log());
    const std::unique_ptr<Net> net = net_of_row(context, row);
    if (!net) return;
    list_ << row.id() << '\t' << type_of(row) << '\t' << row.tolerance;
    CaffeModel model;
    try {
      model = export_caffe(*net, dialect_);
    } catch (const Error& error) {
      list_ << "\trefused=" << in_one_line(error.what()) << '\n';
      ++refused_;
      expect(row, "", error.what());
      if (std::string(error.what()).find("please report") != std::string::npos)
        complain(row, error.what());
      return;
    }
    std::string types;
    for (const LayerParameter& layer : model.net.layer())
      if (layer.type() != "Input") types += (types.empty() ? "" : " ") + layer.type();
    expect(row, types, "");
    try {
      compare(row, *net, model);
    } catch (const Error& error) {
      complain(row, error.what());
    }
    list_ << '\n';
  }

  int finish(bool all) {
    for (const auto& [row, types] : expected_) {
      if (!all) break;
      std::cout << dialect_.name << ": caffe_rewrites.rows names " << row << ", which is no row\n";
      ++differ_;
    }
    std::cout << dialect_.name << ": " << agree_ << " agree, " << rewritten_
              << " of them rewritten, " << refused_ << " are refused, " << differ_ << " differ\n";
    return differ_ > 0;
  }

 private:
  void complain(const Row& row, const std::string& why) {
    std::cout << dialect_.name << ": " << row.id() << " (" << type_of(row)
              << "): " << in_one_line(why) << '\n';
    ++differ_;
  }

  void expect(const Row& row, const std::string& types, const std::string& error) {
    const auto found = expected_.find(row.id());
    if (found == expected_.end()) return;
    const std::string expected = found->second, refused = "refused: ";
    expected_.erase(found);
    if (!starts_with(expected, refused)) {
      if (types != expected) complain(row, cat("becomes ", types, error, ", expected ", expected));
    } else if (error.find(expected.substr(refused.size())) == std::string::npos) {
      complain(row, cat("becomes ", types, error, ", expected to be ", expected));
    }
  }

  void compare(const Row& row, Net& net, const CaffeModel& model) {
    const std::string outside = field_outside(dialect_.name, model.net);
    if (!outside.empty()) return complain(row, outside);
    if (!is_new(row, model)) return count(model);
    const std::string path = folder_ + "/" + row.id();
    write_file_atomically(path + ".prototxt", net_text(model.net));
    write_caffe_weights(net.context(), model, path + ".caffemodel");
    const std::string unknown = field_outside(dialect_.name, path + ".caffemodel");
    if (!unknown.empty()) return complain(row, unknown);
    NetInput input = read_net_input(path + ".prototxt", TEST, {}, net.context().log());
    input.options.keep_blobs = input.options.row_major = true;
    Net again(net.context(), input.net, input.options);
    if (!again.parameters().empty()) load_weights(again, path + ".caffemodel", {.table = false});
    set_row_inputs(net, row);
    set_row_inputs(again, row);
    net.forward(0);
    again.forward(0);
    std::ofstream values(path + ".values", std::ios::binary);
    write_inputs(net, values);
    list_ << "\tvalues=";
    for (const auto& [id, top] : model.values) {
      const Tensor expected = net.plan().value(id), found = again.blob(top.blob);
      list_ << top.layer << '|' << top.blob << '|' << top.index << ':'
            << extents_of(expected.shape()) << ';';
      add(to_floats(net.context(), expected), values);
      if (expected.shape() != found.shape())
        return complain(row, cat(top.blob, " has shape ", found.shape().brief(), ", not ",
                                 expected.shape().brief()));
      const std::string difference =
          difference_of(to_floats(net.context(), expected), to_floats(net.context(), found),
                        std::max(1e-5, row.tolerance));
      if (!difference.empty()) return complain(row, cat(top.blob, " ", difference));
    }
    count(model);
  }

  void count(const CaffeModel& model) {
    ++agree_;
    if (!model.changes.empty()) ++rewritten_;
  }

  void write_inputs(Net& net, std::ofstream& values) {
    list_ << "\tinputs=";
    for (const Node& node : net.graph().nodes) {
      if (node.message.type() != "Input") continue;
      for (const int id : node.tops) {
        list_ << net.graph().values[id].blob << ':' << extents_of(net.graph().values[id].shape)
              << ';';
        add(to_floats(net.context(), net.plan().value(id)), values);
      }
    }
  }

  static void add(const std::vector<float>& floats, std::ofstream& to) {
    to.write(reinterpret_cast<const char*>(floats.data()),
             static_cast<std::streamsize>(floats.size() * sizeof(float)));
  }

  const Dialect& dialect_;
  const std::string folder_;
  std::ofstream list_;
  std::map<std::string, std::string> expected_;  // of rows that have not run yet
  int agree_ = 0, rewritten_ = 0, refused_ = 0, differ_ = 0;
};

}  // namespace

int run_caffe_rows(int argc, char** argv) {
  const std::vector<std::string> dialects =
      argc > 1 ? std::vector<std::string>{argv[1]} : dialect_names();
  const std::string folder =
      argc > 2 ? argv[2]
               : (std::filesystem::temp_directory_path() / cat("caffe_rows_", getpid())).string();
  std::filesystem::create_directories(folder);
  const std::vector<std::string> only(argv + std::min(argc, 3), argv + argc);
  const std::vector<Row> all = read_rows(CREMA_TEST_DATA "/layers/rows");
  int status = 0;
  for (const std::string& dialect : dialects) {
    CaffeRows rows(find_dialect(dialect, "caffe_rows"), folder);
    for (const Row& row : all) {
      const bool chosen =
          only.empty() || std::find(only.begin(), only.end(), row.id()) != only.end();
      if (row.error.empty() && chosen) rows.run(row);
    }
    status |= rows.finish(only.empty());
  }
  if (argc < 3) std::filesystem::remove_all(folder);
  return status;
}

}  // namespace crema
