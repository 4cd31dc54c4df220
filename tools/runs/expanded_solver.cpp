#include "tools/runs/expanded_solver.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/text_format.h>

#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "net/net_text.h"
#include "solver/fields/solver_nets.h"

namespace crema {

namespace {

namespace pb = google::protobuf;

std::string found_from_here(const std::string& path, const std::string& folder) {
  return path.empty() ? path : find_file(path, folder);
}

// The values of a Python layer's dictionary that are paths: quoted texts with a slash.
std::string with_paths_from_here(const std::string& param_str, const std::string& folder) {
  std::string text;
  for (size_t at = 0; at < param_str.size();) {
    const size_t open = param_str.find_first_of("'\"", at);
    const size_t close =
        open == std::string::npos ? open : param_str.find(param_str[open], open + 1);
    if (close == std::string::npos) return text + param_str.substr(at);
    const std::string value = param_str.substr(open + 1, close - open - 1);
    const bool is_path = value.find('/') != std::string::npos;
    text += param_str.substr(at, open + 1 - at) +
            (is_path ? found_from_here(value, folder) : value) + param_str[close];
    at = close + 1;
  }
  return text;
}

void name_paths(pb::Message* message, const std::string& folder) {
  const pb::Reflection* reflection = message->GetReflection();
  std::vector<const pb::FieldDescriptor*> fields;
  reflection->ListFields(*message, &fields);
  for (const pb::FieldDescriptor* field : fields) {
    if (field->cpp_type() == pb::FieldDescriptor::CPPTYPE_MESSAGE) {
      const int count = field->is_repeated() ? reflection->FieldSize(*message, field) : 1;
      for (int i = 0; i < count; ++i)
        name_paths(field->is_repeated() ? reflection->MutableRepeatedMessage(message, field, i)
                                        : reflection->MutableMessage(message, field),
                   folder);
    } else if (field->cpp_type() == pb::FieldDescriptor::CPPTYPE_STRING && !field->is_repeated() &&
               path_fields().count(field->name())) {
      const std::string path = reflection->GetString(*message, field);
      reflection->SetString(message, field, found_from_here(path, folder));
    } else if (field->full_name() == "crema.PythonParameter.param_str") {
      const std::string text = reflection->GetString(*message, field);
      reflection->SetString(message, field, with_paths_from_here(text, folder));
    }
  }
}

std::string text_of(const SolverFile& file, const NetSource& source) {
  NetFile net = open_net(file, source);
  for (LayerParameter& layer : *net.net.mutable_layer()) name_paths(&layer, folder_of(net.path));
  return net_text(net.net);
}

std::string weights_from_here(const std::string& list, const std::string& folder) {
  std::vector<std::string> files;
  for (const std::string& path : split(list, ','))
    files.push_back(found_from_here(std::string(trim(path)), folder));
  return join(files, ",");
}

}  // namespace

const std::set<std::string>& path_fields() {
  static const std::set<std::string> names = {"source",         "mean_file",  "label_map_file",
                                              "name_size_file", "video_file", "root_folder",
                                              "root_dir",       "heatmap_dir"};
  return names;
}

ExpandedSolver expanded_solver(const SolverFile& file, const std::string& folder) {
  ExpandedSolver expanded{file.solver, {}};
  SolverParameter& solver = expanded.solver;
  const auto add = [&](const std::string& name, const NetSource& source) {
    expanded.nets.emplace_back(name, text_of(file, source));
    return cat(folder, "/", name);
  };
  for (std::string& weights : *solver.mutable_weights())
    weights = weights_from_here(weights, folder_of(file.path));
  solver.clear_net();
  solver.clear_net_param();
  solver.clear_train_net();
  solver.clear_train_net_param();
  solver.clear_test_net();
  solver.clear_test_net_param();
  const NetSource train = train_source(file);
  const bool shared = train.field == "net" || train.field == "net_param";
  if (shared) {
    solver.set_net(add("train_val.prototxt", train));
  } else {
    solver.set_train_net(add("train.prototxt", train));
  }
  std::vector<NetSource> tests;
  for (const NetSource& source : test_sources(file))
    if (source.field == "test_net" || source.field == "test_net_param") tests.push_back(source);
  for (size_t i = 0; i < tests.size(); ++i) {
    // A net that is never tested need not exist; it only keeps the numbers of the others.
    const bool used = tests[i].tested();
    const std::string name = tests.size() == 1 ? "test.prototxt" : cat("test_", i, ".prototxt");
    solver.add_test_net(used ? add(name, tests[i]) : cat(folder, "/", name));
  }
  return expanded;
}

void require_net_files(const SolverFile& file) {
  const SolverParameter& solver = file.solver;
  std::vector<std::string> paths = {solver.net(), solver.train_net()};
  paths.insert(paths.end(), solver.test_net().begin(), solver.test_net().end());
  for (const std::string& path : paths) {
    const std::string found = find_file(path, folder_of(file.path));
    // Missing files and folders are reported where they are read.
    require(
        !std::filesystem::is_fifo(found), found,
        ": -run keeps the text of the net, and a pipe can be read only once; write the net to a "
        "file");
  }
}

std::string solver_text(const SolverParameter& solver) {
  pb::TextFormat::Printer printer;
  printer.SetUseUtf8StringEscaping(true);
  std::string text;
  printer.PrintToString(solver, &text);
  return text;
}

}  // namespace crema
