#include "net/sources/source_files.h"

#include <google/protobuf/descriptor.h>

#include "base/strings.h"
#include "data/databases/tar/tar_shards.h"

namespace crema {

namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// `source` of the layer's own family: calls body(field of the family, its `source`).
template <typename Body>
void at_source(const LayerParameter& layer, const Body& body) {
  std::vector<const FieldDescriptor*> fields;
  layer.GetReflection()->ListFields(layer, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->is_repeated() || field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    const FieldDescriptor* source = field->message_type()->FindFieldByName("source");
    if (source && !source->is_repeated() && source->cpp_type() == FieldDescriptor::CPPTYPE_STRING)
      return body(field, source);
  }
}

}  // namespace

std::string named_source(const LayerParameter& layer) {
  std::string path;
  at_source(layer, [&](const FieldDescriptor* family, const FieldDescriptor* source) {
    const Message& message = layer.GetReflection()->GetMessage(layer, family);
    path = message.GetReflection()->GetString(message, source);
  });
  return path;
}

void set_source(const std::string& path, LayerParameter* layer) {
  at_source(*layer, [&](const FieldDescriptor* family, const FieldDescriptor* source) {
    Message* const message = layer->GetReflection()->MutableMessage(layer, family);
    message->GetReflection()->SetString(message, source, path);
  });
}

std::string source_of(const LayerParameter& layer, const std::string& folder) {
  const std::string source = named_source(layer);
  return source.empty() ? "" : find_source(source, folder);
}

std::string class_names_file_of(const NetParameter& net, const std::string& folder) {
  for (const LayerParameter& layer : net.layer()) {
    if (layer.bottom_size() > 0) continue;
    const std::string file = class_names_file(source_of(layer, folder));
    if (!file.empty()) return file;
  }
  return "";
}

ClassNames class_names_of(const NetParameter& net, const std::string& folder) {
  const std::string file = class_names_file_of(net, folder);
  return file.empty() ? ClassNames() : read_class_names(file);
}

}  // namespace crema
