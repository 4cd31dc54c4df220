#include "tools/docs/schema.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <set>
#include <utility>

#include "base/error.h"
#include "net/sources/batch_size.h"

namespace crema {

namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;

std::unique_ptr<DescriptorPool> load_schema() {
  google::protobuf::FileDescriptorSet files;
  const std::string_view bytes = schema_bytes();
  require(files.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())),
          "the schema inside the program is damaged");
  auto pool = std::make_unique<DescriptorPool>();
  for (const auto& file : files.file()) pool->BuildFile(file);
  return pool;
}

// Made once: it takes milliseconds, and the manual asks for hundreds of messages.
const DescriptorPool& schema() {
  static const std::unique_ptr<const DescriptorPool> pool = load_schema();
  return *pool;
}

// A comment as continuous text.
template <typename Element>
std::string comment_of(const Element* element) {
  google::protobuf::SourceLocation location;
  if (!element->GetSourceLocation(&location)) return "";
  std::string text;
  for (const std::string& line :
       split(location.leading_comments.empty() ? location.trailing_comments
                                               : location.leading_comments,
             '\n')) {
    const std::string_view part = trim(line);
    if (!part.empty()) text += (text.empty() ? "" : " ") + std::string(part);
  }
  return text;
}

// "NetState"; of a message in another one "CoSDataParameter.Top".
std::string name_of(const Descriptor* message) {
  const std::string& outer = message->file()->package();
  return outer.empty() ? message->full_name() : message->full_name().substr(outer.size() + 1);
}

std::string choices_of(const EnumDescriptor* type) {
  std::vector<std::string> names;
  for (int i = 0; i < type->value_count(); ++i) names.push_back(type->value(i)->name());
  return join(names, " | ");
}

// "repeated uint32", "bool, default true", "MAX | AVE | STOCHASTIC, default MAX".
std::string type_of(const FieldDescriptor* field) {
  std::string text = field->is_repeated() ? "repeated " : field->is_required() ? "required " : "";
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
    text += choices_of(field->enum_type());
  } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
    text += field->message_type()->name();
  } else {
    text += field->type_name();
  }
  if (!field->has_default_value()) return text;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return cat(text, ", default ", field->default_value_bool() ? "true" : "false");
    case FieldDescriptor::CPPTYPE_INT32:
      return cat(text, ", default ", field->default_value_int32());
    case FieldDescriptor::CPPTYPE_UINT32:
      return cat(text, ", default ", field->default_value_uint32());
    case FieldDescriptor::CPPTYPE_INT64:
      return cat(text, ", default ", field->default_value_int64());
    case FieldDescriptor::CPPTYPE_UINT64:
      return cat(text, ", default ", field->default_value_uint64());
    case FieldDescriptor::CPPTYPE_FLOAT:
      return cat(text, ", default ", field->default_value_float());
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return cat(text, ", default ", field->default_value_double());
    case FieldDescriptor::CPPTYPE_ENUM:
      return cat(text, ", default ", field->default_value_enum()->name());
    default:
      return cat(text, ", default \"", field->default_value_string(), '"');
  }
}

bool stands_in(const std::string& text, const std::string& word) {
  const auto inside = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  };
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const bool begins = at == 0 || !inside(text[at - 1]);
    const bool ends = at + word.size() == text.size() || !inside(text[at + word.size()]);
    if (begins && ends) return true;
  }
  return false;
}

// Selects the fields of LayerParameter that concern a type, by their names and by mentions in the
// documentation.
class Choice {
 public:
  Choice(const Descriptor* layer, const std::string& type, const std::vector<std::string>& types)
      : type_(letters_of(type)) {
    for (const std::string& other : types) others_.push_back(letters_of(other));
    for (int i = 0; i < layer->field_count(); ++i) {
      const std::string name = letters_of(layer->field(i)->name());
      named_ |= name == type_;
      // Deconvolution reads convolution_param.
      const bool kin =
          ends_with(type_, name) && std::count(others_.begin(), others_.end(), name) > 0;
      if (kin && name.size() > kin_.size()) kin_ = name;
    }
  }

  bool takes(const std::string& field, const std::string& text) const {
    const std::string name = letters_of(field);
    if (name == type_ || (!named_ && name == kin_)) return true;
    // A type with its own message mentions those of other types only to say what may be fused with
    // it.
    const bool of_another = named_ && std::count(others_.begin(), others_.end(), name) > 0;
    return !of_another && stands_in(text, field);
  }

 private:
  std::string type_, kin_;
  std::vector<std::string> others_;
  bool named_ = false;
};

MessageHelp help_on(const std::string& name, const Descriptor* message) {
  MessageHelp help{name, name_of(message), comment_of(message), {}, message->file()->name()};
  for (int i = 0; i < message->field_count(); ++i) {
    const FieldDescriptor* field = message->field(i);
    help.fields.push_back({field->name(), type_of(field), comment_of(field), field->number(),
                           field->message_type() ? name_of(field->message_type()) : std::string()});
  }
  return help;
}

// Adds the message and those in its fields.
void collect(const Descriptor* message, std::set<const Descriptor*>* found) {
  if (!found->insert(message).second) return;
  for (int i = 0; i < message->field_count(); ++i) {
    if (const Descriptor* inner = message->field(i)->message_type()) collect(inner, found);
  }
}

// The message in the field `name` of one of `owners`.
const Descriptor* message_in(const std::vector<const Descriptor*>& owners, const std::string& name,
                             const std::string& path) {
  std::vector<std::string> names;
  std::string single;  // what such a field is that is no block
  for (const Descriptor* owner : owners) {
    const FieldDescriptor* field = owner->FindFieldByName(name);
    if (field && field->message_type()) return field->message_type();
    if (field) single = cat(" of ", owner->name(), ", not a block of fields: ", type_of(field));
    for (int i = 0; i < owner->field_count(); ++i) {
      if (owner->field(i)->message_type()) names.push_back(owner->field(i)->name());
    }
  }
  if (!single.empty()) fail(path, ": \"", name, "\" is a single field", single);
  fail(path, ": there is no block \"", name, "\"", did_you_mean(name, names),
       "; expected solver, net or a path such as layer.convolution_param");
}

}  // namespace

MessageHelp help_on_fields(const std::string& path) {
  const DescriptorPool& pool = schema();
  const Descriptor* const solver = pool.FindMessageTypeByName("crema.SolverParameter");
  const Descriptor* const net = pool.FindMessageTypeByName("crema.NetParameter");
  require(solver && net, "the schema inside the program has no solver or no net");
  if (path == "solver") return help_on(path, solver);
  if (path == "net") return help_on(path, net);
  std::vector<const Descriptor*> owners = {net, solver};
  for (const std::string& part : split(path, '.'))
    owners = {message_in(owners, part.substr(0, part.find('[')), path)};
  return help_on(path, owners[0]);
}

std::vector<MessageHelp> help_on_parameters(const std::string& type,
                                            const std::vector<std::string>& types,
                                            const std::string& text) {
  const DescriptorPool& pool = schema();
  const Descriptor* layer = pool.FindMessageTypeByName("crema.LayerParameter");
  require(layer != nullptr, "the schema inside the program has no LayerParameter");
  const Choice choice(layer, type, types);
  std::vector<MessageHelp> help;
  for (int i = 0; i < layer->field_count(); ++i) {
    const FieldDescriptor* parameter = layer->field(i);
    if (!ends_with(parameter->name(), "_param") || parameter->message_type() == nullptr) continue;
    if (!choice.takes(parameter->name(), text)) continue;
    const Descriptor* message = parameter->message_type();
    help.push_back(help_on(parameter->name(), message));
    help.back().number = parameter->number();
  }
  return help;
}

std::vector<MessageHelp> help_on_all_messages() {
  const DescriptorPool& pool = schema();
  std::set<const Descriptor*> found;
  for (const char* root : {"crema.SolverParameter", "crema.NetParameter"}) {
    const Descriptor* message = pool.FindMessageTypeByName(root);
    require(message != nullptr, "the schema inside the program has no ", root);
    collect(message, &found);
  }
  const Descriptor* layer = pool.FindMessageTypeByName("crema.LayerParameter");
  std::vector<MessageHelp> all;
  for (const Descriptor* message : found) {
    all.push_back(help_on("", message));
    for (int i = 0; i < layer->field_count(); ++i) {
      const FieldDescriptor* field = layer->field(i);
      if (field->message_type() != message || !ends_with(field->name(), "_param")) continue;
      // An older name of the block, or a fork's, comes after Caffe's.
      if (!all.back().field.empty() && all.back().number < field->number()) continue;
      all.back().field = field->name();
      all.back().number = field->number();
    }
  }
  const auto line_of = [&](const MessageHelp& help) {
    google::protobuf::SourceLocation location;
    const Descriptor* message = pool.FindMessageTypeByName("crema." + help.message);
    return message && message->GetSourceLocation(&location) ? location.start_line : 0;
  };
  std::sort(all.begin(), all.end(), [&](const MessageHelp& a, const MessageHelp& b) {
    return std::pair(a.file, line_of(a)) < std::pair(b.file, line_of(b));
  });
  return all;
}

}  // namespace crema
