#include "net/sources/source_files.h"

#include <google/protobuf/descriptor.h>

#include "base/strings.h"
#include "data/databases/tar/tar_shards.h"

namespace crema {

namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// `source` of the layer's own family.
std::string named_source(const LayerParameter& layer) {
  std::vector<const FieldDescriptor*> fields;
  layer.GetReflection()->ListFields(layer, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->is_repeated() || field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    const Message& family = layer.GetReflection()->GetMessage(layer, field);
    const FieldDescriptor* source = field->message_type()->FindFieldByName("source");
    if (source && !source->is_repeated() && source->cpp_type() == FieldDescriptor::CPPTYPE_STRING)
      return family.GetReflection()->GetString(family, source);
  }
  return "";
}

}  // namespace

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
