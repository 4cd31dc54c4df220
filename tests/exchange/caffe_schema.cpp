#include "exchange/caffe_schema.h"

#include <google/protobuf/descriptor.h>

#include <fstream>
#include <map>

#include "base/files.h"
#include "base/strings.h"

namespace crema {
namespace {

namespace pb = google::protobuf;

using Schema = std::map<std::string, int>;  // "Message.field" and its number

// fork: "" for the table of BVLC's schema, which has no column for it.
void add_table(const std::string& name, const std::string& fork, Schema* schema) {
  for (const std::string& line : split(read_text(CREMA_TEST_DATA "/compat/" + name), '\n')) {
    std::vector<std::string> words = split(line, '\t');
    if (line.empty() || line[0] == '#') continue;
    if (!fork.empty()) {
      if (words[0] != fork) continue;
      words.erase(words.begin());
    }
    if (words.size() < 3 || words[0] == "ENUM") continue;
    (*schema)[words[0] + "." + words[1]] = std::stoi(words[2]);
  }
}

const Schema* schema_of(const std::string& dialect) {
  static const std::map<std::string, Schema> schemas = [] {
    std::map<std::string, Schema> all;
    add_table("schema.tsv", "", &all["bvlc"]);
    all["ssd"] = all["nvcaffe"] = all["bvlc"];
    for (const char* name : {"ssd", "nvcaffe"})
      add_table("schema-forks.tsv", "nvcaffe", &all[name]);
    return all;
  }();
  const auto found = schemas.find(dialect);
  return found == schemas.end() ? nullptr : &found->second;
}

// binary: numbers count, too.
std::string outside(const Schema& schema, const pb::Message& message, bool binary) {
  const pb::Reflection* reflection = message.GetReflection();
  if (!reflection->GetUnknownFields(message).empty())
    return message.GetDescriptor()->name() + " has unknown fields";
  std::vector<const pb::FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const pb::FieldDescriptor* field : fields) {
    const std::string name = cat(message.GetDescriptor()->name(), ".", field->name());
    const auto known = schema.find(name);
    if (known == schema.end()) return name + " is not in the schema";
    if (binary && known->second != field->number())
      return cat(name, " is written with number ", field->number(), ", not ", known->second);
    if (!field->message_type()) continue;
    for (int i = 0; i < (field->is_repeated() ? reflection->FieldSize(message, field) : 1); ++i) {
      const std::string below =
          outside(schema,
                  field->is_repeated() ? reflection->GetRepeatedMessage(message, field, i)
                                       : reflection->GetMessage(message, field),
                  binary);
      if (!below.empty()) return below;
    }
  }
  return "";
}

}  // namespace

std::string field_outside(const std::string& dialect, const NetParameter& net) {
  const Schema* const schema = schema_of(dialect);
  return schema ? outside(*schema, net, false) : "";
}

std::string field_outside(const std::string& dialect, const std::string& path) {
  const Schema* const schema = schema_of(dialect);
  if (!schema) return "";
  NetParameter net;
  std::ifstream file(path, std::ios::binary);
  if (!net.ParseFromIstream(&file)) return path + " is no message";
  return outside(*schema, net, true);
}

}  // namespace crema
