#include "net/graph/engine_note.h"

#include <google/protobuf/descriptor.h>

#include <vector>

#include "base/strings.h"

namespace crema {
namespace {

namespace pb = google::protobuf;

// Each family's params have their own engine field.
bool asks_for_cudnn(const LayerParameter& layer) {
  std::vector<const pb::FieldDescriptor*> fields;
  layer.GetReflection()->ListFields(layer, &fields);
  for (const pb::FieldDescriptor* field : fields) {
    if (field->is_repeated() || !field->message_type()) continue;
    const pb::FieldDescriptor* engine = field->message_type()->FindFieldByName("engine");
    if (!engine || engine->is_repeated() || !engine->enum_type()) continue;
    const pb::Message& params = layer.GetReflection()->GetMessage(layer, field);
    if (params.GetReflection()->GetEnum(params, engine)->name() == "CUDNN") return true;
  }
  return false;
}

}  // namespace

std::string note_on_cudnn_engine(const NetParameter& net,
                                 const std::function<std::string(int layer)>& where) {
  int first = -1, count = 0;
  for (int i = 0; i < net.layer_size(); ++i) {
    if (!asks_for_cudnn(net.layer(i))) continue;
    if (count++ == 0) first = i;
  }
  if (count == 0) return "";
  return cat(where ? where(first) + ": " : "",
             "engine: CUDNN has no effect here: this build has no ",
             "cuDNN, so our own kernels and cuBLAS compute",
             count > 1 ? cat(" (", count, " layers)") : "");
}

}  // namespace crema
