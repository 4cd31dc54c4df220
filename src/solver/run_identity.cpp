#include "solver/run_identity.h"

#include <google/protobuf/text_format.h>

#include <cstdio>
#include <ctime>

#include "solver/checksum.h"
#include "solver/optimizer.h"

namespace crema {

std::string hex_of(uint64_t number) {
  char text[20];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
  return text;
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm fields{};
  gmtime_r(&now, &fields);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &fields);
  return text;
}

std::string hash_of_text(const NetParameter& net) {
  const std::string bytes = net.SerializeAsString();
  return hex_of(Checksum().add(bytes.data(), bytes.size()).value());
}

std::string hash_of_recipe(const NetParameter& net, const SolverParameter& solver) {
  const std::string of_net = net.SerializeAsString(), of_solver = solver.SerializeAsString();
  return hex_of(
      Checksum().add(of_net.data(), of_net.size()).add(of_solver.data(), of_solver.size()).value());
}

std::string hash_of_weights(Net& net) { return hex_of(weights_checksum(net)); }

std::vector<std::pair<std::string, std::string>> settings_in(SolverParameter solver) {
  using google::protobuf::FieldDescriptor;
  const std::string type = solver.type();
  solver.set_type(type);
  for (const char* name :
       {"net", "train_net", "snapshot", "snapshot_prefix", "snapshot_format", "snapshot_minutes",
        "snapshot_after_train", "keep_last", "keep_every", "display", "debug_info", "test_interval",
        "test_initialization", "test_compute_loss", "solver_mode", "device_id", "snapshot_epoch",
        "test_interval_epoch", "epoch_log"}) {
    if (const FieldDescriptor* field = SolverParameter::descriptor()->FindFieldByName(name))
      solver.GetReflection()->ClearField(&solver, field);
  }
  std::vector<const FieldDescriptor*> fields;
  solver.GetReflection()->ListFields(solver, &fields);
  std::vector<std::pair<std::string, std::string>> settings;
  for (const FieldDescriptor* field : fields) {
    if (field->is_repeated() || field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) continue;
    std::string text;
    google::protobuf::TextFormat::PrintFieldValueToString(solver, field, -1, &text);
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING)
      text = solver.GetReflection()->GetString(solver, field);
    settings.emplace_back(field->name(), text);
  }
  return settings;
}

}  // namespace crema
