#include "tools/pages/runs/run_settings.h"

#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/strings.h"
#include "data/lists/message_text.h"
#include "proto/net.pb.h"
#include "proto/solver.pb.h"

namespace crema {

namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::TextFormat;

constexpr size_t kMostOfNets = 8;

struct RunSettings {
  std::map<std::string, std::string> solver, net;
  std::string net_name;
};

// A list has its values side by side.
std::string value_of(const Message& message, const FieldDescriptor* field) {
  const int count = field->is_repeated() ? message.GetReflection()->FieldSize(message, field) : 1;
  std::vector<std::string> values(count);
  for (int i = 0; i < count; ++i) {
    TextFormat::PrintFieldValueToString(message, field, field->is_repeated() ? i : -1, &values[i]);
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING && values[i].size() >= 2)
      values[i] = values[i].substr(1, values[i].size() - 2);
  }
  return join(values, ", ");
}

// The defaults of solver fields that are not in the text.
const std::map<std::string, std::string>& default_settings() {
  static const auto settings = [] {
    std::map<std::string, std::string> all;
    const SolverParameter solver;
    for (int i = 0; i < SolverParameter::descriptor()->field_count(); ++i) {
      const FieldDescriptor* field = SolverParameter::descriptor()->field(i);
      if (field->has_default_value()) all[field->name()] = value_of(solver, field);
    }
    return all;
  }();
  return settings;
}

void add_settings(const std::string& prefix, const Message& message,
                  std::map<std::string, std::string>* settings) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const std::string path = prefix + field->name();
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
      (*settings)[path] = value_of(message, field);
    } else if (!field->is_repeated()) {
      add_settings(path + ".", message.GetReflection()->GetMessage(message, field), settings);
    } else {
      const FieldDescriptor* name = field->message_type()->FindFieldByName("name");
      for (int i = 0; i < message.GetReflection()->FieldSize(message, field); ++i) {
        const Message& one = message.GetReflection()->GetRepeatedMessage(message, field, i);
        const std::string key = field->name() == "layer" && name ? value_of(one, name) : cat(i);
        add_settings(cat(path, "[", key, "]."), one, settings);
      }
    }
  }
}

template <typename File>
std::map<std::string, std::string> settings_of_text(const std::string& text, File* file) {
  std::map<std::string, std::string> settings;
  if (parse_message(text, file).empty()) add_settings("", *file, &settings);
  return settings;
}

RunSettings settings_of(const RunTexts& texts) {
  RunSettings settings;
  SolverParameter solver;
  NetParameter net;
  settings.solver = settings_of_text(texts.solver, &solver);
  for (const char* file : {"net", "train_net", "test_net", "snapshot_prefix", "device_id"})
    settings.solver.erase(file);
  settings.net = settings_of_text(texts.net, &net);
  settings.net_name = net.name();
  return settings;
}

std::vector<SettingColumn> columns_of(
    const std::vector<const std::map<std::string, std::string>*>& runs,
    const std::map<std::string, std::string>& defaults) {
  std::set<std::string> paths;
  for (const auto* run : runs) {
    for (const auto& [path, value] : *run) paths.insert(path);
  }
  std::vector<SettingColumn> columns;
  for (const std::string& path : paths) {
    SettingColumn column{setting_title(path), {}};
    std::set<std::string> different;
    for (const auto* run : runs) {
      const auto at = run->find(path), meant = defaults.find(path);
      column.values.push_back(at != run->end()                           ? at->second
                              : meant != defaults.end() && !run->empty() ? meant->second
                                                                         : "");
      if (!run->empty()) different.insert(column.values.back());
    }
    if (different.size() > 1) columns.push_back(column);
  }
  return columns;
}

// Runs that differ in more than their seeds most likely drew these at random: each has its own.
bool drew_seeds(const std::vector<SettingColumn>& columns) {
  const auto seeds = std::find_if(columns.begin(), columns.end(), [](const SettingColumn& column) {
    return column.name == "random_seed";
  });
  if (seeds == columns.end() || columns.size() == 1) return false;
  const std::set<std::string> different(seeds->values.begin(), seeds->values.end());
  return different.size() == seeds->values.size();
}

}  // namespace

std::string setting_title(const std::string& path) {
  const size_t layer = path.find("layer["), end = path.find(']'), dot = path.rfind('.');
  if (layer != 0 || end == std::string::npos || dot == std::string::npos || dot < end) return path;
  return path.substr(6, end - 6) + " " + path.substr(dot + 1);
}

std::vector<SettingColumn> differing_settings(const std::vector<RunTexts>& runs) {
  std::vector<RunSettings> all;
  for (const RunTexts& texts : runs) all.push_back(settings_of(texts));
  std::vector<const std::map<std::string, std::string>*> solvers, nets;
  for (const RunSettings& one : all) {
    solvers.push_back(&one.solver);
    nets.push_back(&one.net);
  }
  std::vector<SettingColumn> columns = columns_of(solvers, default_settings()),
                             of_nets = columns_of(nets, {});
  if (of_nets.size() > kMostOfNets) {
    SettingColumn names{"net", {}};
    for (const RunSettings& one : all) names.values.push_back(one.net_name);
    of_nets = {names};
  }
  columns.insert(columns.end(), of_nets.begin(), of_nets.end());
  if (drew_seeds(columns)) {
    std::erase_if(columns,
                  [](const SettingColumn& column) { return column.name == "random_seed"; });
  }
  return columns;
}

}  // namespace crema
