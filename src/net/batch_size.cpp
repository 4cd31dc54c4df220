#include "net/batch_size.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>

#include "base/error.h"

namespace crema {

namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// The family's message that holds batch_size: one that is set, else the one named after the type.
bool set_field(LayerParameter& layer, int samples) {
  const auto* reflection = layer.GetReflection();
  Message* holder = nullptr;
  for (int i = 0; i < LayerParameter::descriptor()->field_count(); ++i) {
    const FieldDescriptor* field = LayerParameter::descriptor()->field(i);
    if (field->is_repeated() || field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    const FieldDescriptor* size = field->message_type()->FindFieldByName("batch_size");
    if (!size || size->is_repeated()) continue;
    if (reflection->HasField(layer, field) ||
        (!holder && letters_of(field->name()) == letters_of(layer.type()))) {
      holder = reflection->MutableMessage(&layer, field);
    }
  }
  if (!holder) return false;
  const FieldDescriptor* size = holder->GetDescriptor()->FindFieldByName("batch_size");
  if (size->cpp_type() == FieldDescriptor::CPPTYPE_UINT32) {
    holder->GetReflection()->SetUInt32(holder, size, static_cast<uint32_t>(samples));
  } else {
    holder->GetReflection()->SetInt32(holder, size, samples);
  }
  return true;
}

template <typename Shapes>
void set_first(Shapes* shapes, int samples) {
  for (BlobShape& shape : *shapes) {
    if (shape.dim_size() > 0) shape.set_dim(0, samples);
  }
}

}  // namespace

bool is_source(const LayerParameter& layer) {
  return layer.bottom_size() == 0 && layer.top_size() > 0 && layer.type() != "Parameter";
}

void set_batch_size(LayerParameter& source, int samples) {
  if (source.type() == "Input") {
    set_first(source.mutable_input_param()->mutable_shape(), samples);
  } else if (source.type() == "DummyData") {
    DummyDataParameter* dummy = source.mutable_dummy_data_param();
    set_first(dummy->mutable_shape(), samples);
    std::fill(dummy->mutable_num()->begin(), dummy->mutable_num()->end(), samples);
  } else {
    require(set_field(source, samples), "layer \"", source.name(), "\" (", source.type(),
            ") has no batch_size that could be replaced");
  }
}

std::string letters_of(std::string name) {
  if (ends_with(name, "_param")) name.resize(name.size() - 6);
  name.erase(std::remove(name.begin(), name.end(), '_'), name.end());
  return lower_case(name);
}

}  // namespace crema
