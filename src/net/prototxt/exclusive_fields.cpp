#include "net/prototxt/exclusive_fields.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <string_view>

#include "base/strings.h"

namespace crema {

namespace pb = google::protobuf;

namespace {

using Names = std::vector<std::string>;

// A field of one form excludes those of the other forms.
struct Alternatives {
  const char* message;
  std::vector<Names> forms;
};

const std::vector<Alternatives>& alternatives() {
  static const std::vector<Alternatives> all = {
      {"SolverParameter", {{"max_iter"}, {"max_epoch"}}},
      {"SolverParameter", {{"test_interval"}, {"test_interval_epoch"}}},
      {"SolverParameter", {{"test_iter"}, {"test_epoch"}}},
      {"SolverParameter", {{"snapshot"}, {"snapshot_epoch"}}},
      {"SolverParameter", {{"stepsize"}, {"stepsize_epoch"}}},
      {"SolverParameter", {{"stepvalue"}, {"stepvalue_epoch"}}},
      {"SolverParameter", {{"warmup_iter"}, {"warmup_epoch"}, {"rampup_interval"}}},
      {"SolverParameter", {{"net"}, {"net_param"}, {"train_net"}, {"train_net_param"}}},
      {"SolverParameter", {{"larc"}, {"local_lr_auto"}}},
      {"SolverParameter", {{"type"}, {"solver_type"}}},
      {"LayerParameter", {{"include"}, {"exclude"}}},
      {"TransformationParameter", {{"mean_file"}, {"mean_value"}}},
      {"TransformationParameter", {{"force_color"}, {"force_gray"}}},
      {"TransformationParameter", {{"crop_size"}, {"crop_height", "crop_width"}}},
      {"ImageDataParameter", {{"short_side"}, {"new_height", "new_width"}}},
      {"DummyDataParameter", {{"shape"}, {"num", "channels", "height", "width"}}},
      {"LossParameter", {{"normalization"}, {"normalize"}}},
      {"PoolingParameter", {{"global_pooling"}, {"kernel_size", "kernel_h", "kernel_w"}}},
      {"PoolingParameter", {{"round_mode"}, {"ceil_mode"}}},
      {"ConcatParameter", {{"axis"}, {"concat_dim"}}},
      {"SliceParameter", {{"axis"}, {"slice_dim"}}},
      {"CenterLossParameter", {{"num_output"}, {"cluster_num"}}},
  };
  return all;
}

bool is_there(const pb::Message& message, const pb::FieldDescriptor& field) {
  const pb::Reflection* reflection = message.GetReflection();
  return field.is_repeated() ? reflection->FieldSize(message, &field) > 0
                             : reflection->HasField(message, &field);
}

bool says_so(const pb::Message& message, const pb::FieldDescriptor& field) {
  if (!is_there(message, field)) return false;
  if (field.is_repeated()) return true;
  const pb::Reflection* reflection = message.GetReflection();
  switch (field.cpp_type()) {
    case pb::FieldDescriptor::CPPTYPE_BOOL:
      // normalize: false is one of two ways to divide a loss.
      return field.name() == "normalize" || reflection->GetBool(message, &field);
    case pb::FieldDescriptor::CPPTYPE_INT32:
      return reflection->GetInt32(message, &field) != 0;
    case pb::FieldDescriptor::CPPTYPE_UINT32:
      return reflection->GetUInt32(message, &field) != 0;
    case pb::FieldDescriptor::CPPTYPE_FLOAT:
      return reflection->GetFloat(message, &field) != 0;
    case pb::FieldDescriptor::CPPTYPE_STRING:
      return !reflection->GetString(message, &field).empty();
    default:
      return true;
  }
}

class Clearing {
 public:
  explicit Clearing(pb::Message* message) : message_(message) {}

  const pb::FieldDescriptor* find(const std::string& name) const {
    return message_->GetDescriptor()->FindFieldByName(name);
  }

  void clear(const std::string& name) {
    const pb::FieldDescriptor* field = find(name);
    if (!field || !is_there(*message_, *field)) return;
    message_->GetReflection()->ClearField(message_, field);
    cleared.push_back(name);
  }

  // One number for both sides becomes that of `other`, the side that was not set.
  void hand_over(const std::string& both, const std::string& other) {
    const pb::FieldDescriptor *from = find(both), *to = find(other);
    if (!from || !to || !is_there(*message_, *from)) return;
    const pb::Reflection* reflection = message_->GetReflection();
    const bool numbers = from->cpp_type() == to->cpp_type() && !to->is_repeated();
    if (numbers && !is_there(*message_, *to)) copy(reflection, *from, to);
    clear(both);
  }

  Names cleared;

 private:
  // A list has a number for each axis, the last two being height and width.
  void copy(const pb::Reflection* reflection, const pb::FieldDescriptor& from,
            const pb::FieldDescriptor* to) {
    const int last = from.is_repeated() ? reflection->FieldSize(*message_, &from) - 1 : 0;
    const int at = ends_with(to->name(), "_h") ? std::max(0, last - 1) : last;
    if (from.cpp_type() == pb::FieldDescriptor::CPPTYPE_UINT32) {
      reflection->SetUInt32(message_, to,
                            from.is_repeated() ? reflection->GetRepeatedUInt32(*message_, &from, at)
                                               : reflection->GetUInt32(*message_, &from));
    } else if (from.cpp_type() == pb::FieldDescriptor::CPPTYPE_FLOAT && !from.is_repeated()) {
      reflection->SetFloat(message_, to, reflection->GetFloat(*message_, &from));
    }
  }

  pb::Message* message_;
};

void clear_other_forms(const std::string& name, Clearing* clearing, const std::string& message) {
  for (const Alternatives& each : alternatives()) {
    if (message != each.message) continue;
    const auto own = std::find_if(each.forms.begin(), each.forms.end(), [&](const Names& form) {
      return std::count(form.begin(), form.end(), name) > 0;
    });
    if (own == each.forms.end()) continue;
    for (auto form = each.forms.begin(); form != each.forms.end(); ++form) {
      if (form == own) continue;
      for (const std::string& other : *form) clearing->clear(other);
    }
  }
}

// Windows, steps, crops: X_h and X_w, or one number for both, called X or X_size.
void clear_other_sides(const std::string& name, Clearing* clearing) {
  const std::string_view text = name;
  const bool high = ends_with(text, "_h"), wide = ends_with(text, "_w");
  if (high || wide) {
    const std::string stem(text.substr(0, text.size() - 2));
    for (const std::string& both : {stem, stem + "_size"})
      clearing->hand_over(both, stem + (high ? "_w" : "_h"));
    return;
  }
  const std::string stem(ends_with(text, "_size") ? text.substr(0, text.size() - 5) : text);
  if (!clearing->find(stem + "_h") || !clearing->find(stem + "_w")) return;
  clearing->clear(stem + "_h");
  clearing->clear(stem + "_w");
}

}  // namespace

std::vector<std::string> clear_alternatives(pb::Message* message,
                                            const pb::FieldDescriptor* field) {
  Clearing clearing(message);
  if (!says_so(*message, *field)) return {};
  clear_other_forms(field->name(), &clearing, message->GetDescriptor()->name());
  clear_other_sides(field->name(), &clearing);
  return clearing.cleared;
}

}  // namespace crema
