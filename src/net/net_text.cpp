#include "net/net_text.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/text_format.h>

#include <vector>

#include "proto/net.pb.h"

namespace crema {

namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::TextFormat;

constexpr size_t kWidth = 80;
constexpr int kMaxLines = 16;  // of one field; more values are a list

class Writer {
 public:
  Writer() {
    printer_.SetSingleLineMode(true);
    printer_.SetUseUtf8StringEscaping(true);
  }

  // The fields of a message, each from a line of its own on.
  void write(const Message& message, const std::string& indent) {
    const auto* reflection = message.GetReflection();
    std::vector<const FieldDescriptor*> fields;
    reflection->ListFields(message, &fields);
    for (const FieldDescriptor* field : fields) {
      const int count = field->is_repeated() ? reflection->FieldSize(message, field) : 1;
      if (count > kMaxLines && field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
        write_list(message, field, count, indent);
        continue;
      }
      for (int i = 0; i < count; ++i) {
        const int index = field->is_repeated() ? i : -1;
        if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
          std::string value;
          printer_.PrintFieldValueToString(message, field, index, &value);
          text += indent + field->name() + ": " + value + "\n";
        } else {
          write_block(field->is_repeated() ? reflection->GetRepeatedMessage(message, field, i)
                                           : reflection->GetMessage(message, field),
                      field->name(), indent);
        }
      }
    }
  }

  std::string text;

 private:
  void write_list(const Message& message, const FieldDescriptor* field, int count,
                  const std::string& indent) {
    text += indent + field->name() + ": [";
    for (int i = 0; i < count; ++i) {
      std::string value;
      printer_.PrintFieldValueToString(message, field, i, &value);
      text += (i > 0 ? ", " : "") + value;
    }
    text += "]\n";
  }

  void write_block(const Message& message, const std::string& name, const std::string& indent) {
    std::string line;
    printer_.PrintToString(message, &line);
    while (!line.empty() && line.back() == ' ') line.pop_back();
    line = indent + name + (line.empty() ? " {}" : " { " + line + " }");
    if (line.size() <= kWidth && message.GetDescriptor() != LayerParameter::descriptor()) {
      text += line + "\n";
      return;
    }
    text += indent + name + " {\n";
    write(message, indent + "  ");
    text += indent + "}\n";
  }

  TextFormat::Printer printer_;
};

}  // namespace

std::string net_text(const Message& net) {
  Writer writer;
  writer.write(net, "");
  return writer.text;
}

}  // namespace crema
