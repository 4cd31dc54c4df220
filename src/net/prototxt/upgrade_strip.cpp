#include "net/prototxt/upgrade_strip.h"

#include <google/protobuf/descriptor.h>

#include <vector>

namespace crema {

namespace pb = google::protobuf;

namespace {

bool has_fork_value(const pb::Message& message, const pb::FieldDescriptor* field) {
  if (!field->enum_type()) return false;
  const pb::Reflection* reflection = message.GetReflection();
  if (!field->is_repeated()) {
    return reflection->GetEnum(message, field)->number() >= kFirstForkNumber;
  }
  for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
    if (reflection->GetRepeatedEnum(message, field, i)->number() >= kFirstForkNumber) return true;
  }
  return false;
}

}  // namespace

void strip_fork_fields(pb::Message* message) {
  const pb::Reflection* reflection = message->GetReflection();
  std::vector<const pb::FieldDescriptor*> fields;
  reflection->ListFields(*message, &fields);
  for (const pb::FieldDescriptor* field : fields) {
    if (field->number() >= kFirstForkNumber || has_fork_value(*message, field)) {
      reflection->ClearField(message, field);
    } else if (!field->message_type()) {
      continue;
    } else if (!field->is_repeated()) {
      strip_fork_fields(reflection->MutableMessage(message, field));
    } else {
      for (int i = 0; i < reflection->FieldSize(*message, field); ++i) {
        strip_fork_fields(reflection->MutableRepeatedMessage(message, field, i));
      }
    }
  }
}

}  // namespace crema
