#include "net/prototxt/no_effect.h"

#include <google/protobuf/descriptor.h>

#include "base/strings.h"
#include "proto/net.pb.h"
#include "proto/options.pb.h"

namespace crema {

namespace {

namespace pb = google::protobuf;

class Walk {
 public:
  explicit Walk(const Locate& where) : where_(where) {}

  void visit(const pb::Message& message, const std::string& path) {
    const pb::Reflection* reflection = message.GetReflection();
    std::vector<const pb::FieldDescriptor*> fields;
    reflection->ListFields(message, &fields);
    for (const pb::FieldDescriptor* field : fields) {
      const std::string at = path + field->name();
      if (field->options().HasExtension(no_effect)) {
        add(field->full_name(), at, field->name(), field->options().GetExtension(no_effect));
        continue;
      }
      const int count = field->is_repeated() ? reflection->FieldSize(message, field) : 1;
      for (int i = 0; i < count; ++i) {
        const std::string here = field->is_repeated() ? cat(at, "[", i, "]") : at;
        if (field->enum_type()) {
          visit_value(field, here,
                      field->is_repeated() ? reflection->GetRepeatedEnum(message, field, i)
                                           : reflection->GetEnum(message, field));
        } else if (field->message_type() && field->message_type() != NetParameter::descriptor()) {
          visit(field->is_repeated() ? reflection->GetRepeatedMessage(message, field, i)
                                     : reflection->GetMessage(message, field),
                here + ".");
        }
      }
    }
  }

  std::vector<Note> notes() const {
    std::vector<Note> notes;
    for (const Found& found : found_) {
      std::string line = cat(found.where, ": ", found.what, " has no effect here");
      if (!found.reason.empty()) line += ": " + found.reason;
      if (found.count > 1) line += cat(" (", found.count, " times)");
      notes.push_back({Severity::warning, line});
    }
    return notes;
  }

 private:
  struct Found {
    std::string key, where, what, reason;
    int count = 0;
  };

  void visit_value(const pb::FieldDescriptor* field, const std::string& at,
                   const pb::EnumValueDescriptor* value) {
    if (!value->options().HasExtension(value_no_effect)) return;
    add(cat(field->full_name(), ".", value->name()), at, cat(field->name(), ": ", value->name()),
        value->options().GetExtension(value_no_effect));
  }

  void add(const std::string& key, const std::string& path, const std::string& what,
           const std::string& reason) {
    for (Found& found : found_) {
      if (found.key == key) return void(++found.count);
    }
    found_.push_back({key, where_(path), what, reason, 1});
  }

  const Locate& where_;
  std::vector<Found> found_;
};

}  // namespace

std::vector<Note> notes_without_effect(const pb::Message& message, const Locate& where) {
  Walk walk(where);
  walk.visit(message, "");
  return walk.notes();
}

}  // namespace crema
