#include "net/prototxt/prototxt_hints.h"

#include <cctype>
#include <set>

#include "base/strings.h"
#include "layers/absent.h"
#include "net/prototxt/other_field_names.h"
#include "net/prototxt/upgrade_strip.h"
#include "proto/solver.pb.h"

namespace crema {

namespace pb = google::protobuf;

namespace {

std::vector<std::string> field_names(const pb::Descriptor& type) {
  std::vector<std::string> names;
  for (int i = 0; i < type.field_count(); ++i) names.push_back(type.field(i)->name());
  return names;
}

// Blocks of `type` that have the field: "convolution_param or pooling_param". Caffe's own come
// first; a fork's only when there is no other.
std::string inner_blocks(const pb::Descriptor& type, const std::string& word) {
  std::vector<std::string> own, fork;
  for (int i = 0; i < type.field_count(); ++i) {
    const pb::FieldDescriptor* field = type.field(i);
    const pb::Descriptor* inner = field->message_type();
    const pb::FieldDescriptor* found = inner ? inner->FindFieldByName(word) : nullptr;
    if (!found) continue;
    const bool is_own = field->number() < kFirstForkNumber && found->number() < kFirstForkNumber;
    (is_own ? own : fork).push_back(field->name());
  }
  std::vector<std::string>& names = own.empty() ? fork : own;
  if (names.size() > 3) names.resize(3);
  return join(names, " or ");
}

// The first message of the schema that has the field, other than `type`: one of a whole file, if possible.
const pb::Descriptor* elsewhere(const std::string& word, const pb::Descriptor& type) {
  std::vector<const pb::FileDescriptor*> files = {SolverParameter::descriptor()->file(),
                                                  NetParameter::descriptor()->file()};
  std::set<const pb::FileDescriptor*> seen(files.begin(), files.end());
  const pb::Descriptor* fork = nullptr;
  for (size_t i = 0; i < files.size(); ++i) {
    for (int j = 0; j < files[i]->message_type_count(); ++j) {
      const pb::Descriptor* other = files[i]->message_type(j);
      const pb::FieldDescriptor* field = other->FindFieldByName(word);
      // The old generations' messages have nearly every name, so they would not help.
      if (!field || other == &type || other->name() == "V0LayerParameter") continue;
      if (field->number() < kFirstForkNumber) return other;
      if (!fork) fork = other;
    }
    for (int j = 0; j < files[i]->dependency_count(); ++j) {
      if (seen.insert(files[i]->dependency(j)).second) files.push_back(files[i]->dependency(j));
    }
  }
  return fork;
}

std::string brace_hint(const std::vector<OpenBlock>& blocks, const pb::Descriptor& owner) {
  const OpenBlock& open = blocks.back();
  return cat("; it belongs to ", owner.name(), ": is a \"}\" missing before it? (\"", open.field,
             "\" of line ", open.line + 1, " is still open)");
}

}  // namespace

std::string unknown_field(std::string_view word, const std::vector<OpenBlock>& blocks,
                          const std::vector<OpenBlock>& closed) {
  const pb::Descriptor& type = *blocks.back().type;
  const std::string name(word);
  const std::string what = cat(type.name(), " has no field \"", word, '"');
  if (const char* instead = instead_of(cat(type.name(), ".", word)))
    return cat(what, ", which a fork has: ", instead);
  for (size_t i = blocks.size() - 1; i-- > 0;) {
    if (blocks[i].type != &type && blocks[i].type->FindFieldByName(name)) {
      return what + brace_hint(blocks, *blocks[i].type);
    }
  }
  for (const OpenBlock& block : closed) {
    if (block.type == &type || !block.type->FindFieldByName(name)) continue;
    return cat(what, "; it belongs to ", block.type->name(),
               ": is there one \"}\" too many before it? "
               "(\"",
               block.field, "\" of line ", block.line + 1, " is closed already)");
  }
  const std::string other_name = other_field_name(type, word);
  if (!other_name.empty()) return what + other_name;
  const std::string inside = inner_blocks(type, name);
  const std::string near = did_you_mean(word, field_names(type));
  // An exact match elsewhere says more than a similar name here; but a list of layers or nets
  // inside this block is no advice for a field of the file.
  if (!inside.empty() && blocks.size() > 1) return cat(what, "; write it inside ", inside, " { }");
  if (!near.empty()) return what + near;
  const pb::Descriptor* other = elsewhere(name, type);
  if (!other) return what;
  const bool solver = other->name() == "SolverParameter";
  if (blocks.size() == 1 && (solver || other->name() == "NetParameter")) {
    return cat(what, ": it belongs to ", other->name(), " (is this a ", solver ? "solver" : "net",
               " file?)");
  }
  return cat(what, "; it belongs to ", other->name());
}

std::string wanted(const pb::FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case pb::FieldDescriptor::CPPTYPE_INT32:
    case pb::FieldDescriptor::CPPTYPE_INT64:
      return "a whole number";
    case pb::FieldDescriptor::CPPTYPE_UINT32:
    case pb::FieldDescriptor::CPPTYPE_UINT64:
      return "a whole number, 0 or more";
    case pb::FieldDescriptor::CPPTYPE_FLOAT:
    case pb::FieldDescriptor::CPPTYPE_DOUBLE:
      return "a number";
    case pb::FieldDescriptor::CPPTYPE_BOOL:
      return "true or false";
    case pb::FieldDescriptor::CPPTYPE_STRING:
      return "a text in quotes";
    case pb::FieldDescriptor::CPPTYPE_MESSAGE:
      return cat("a block: ", field.name(), " { ... }");
    case pb::FieldDescriptor::CPPTYPE_ENUM:
      break;
  }
  std::vector<std::string> names;
  for (int i = 0; i < field.enum_type()->value_count(); ++i) {
    const pb::EnumValueDescriptor* value = field.enum_type()->value(i);
    if (value->number() < kFirstForkNumber) names.push_back(value->name());
  }
  constexpr size_t kListed = 8;
  if (names.size() > kListed) return cat("a name such as ", names[1], ", without quotes");
  const std::string last = names.back();
  names.pop_back();
  return names.empty() ? last : cat(join(names, ", "), " or ", last);
}

std::string unknown_value(std::string_view word, const pb::FieldDescriptor& field) {
  std::vector<std::string> names;
  for (int i = 0; i < field.enum_type()->value_count(); ++i) {
    names.push_back(field.enum_type()->value(i)->name());
  }
  // Lower case is the most common mistake, and too far away for did_you_mean.
  std::string upper(word);
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  const std::string near = field.enum_type()->FindValueByName(upper) ? did_you_mean(upper, {upper})
                                                                     : did_you_mean(word, names);
  return cat('"', field.name(), "\" has no value ", word, near, "; it takes ", wanted(field));
}

}  // namespace crema
