#include "net/sources/batch_size.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>

#include "base/error.h"
#include "layers/layer_facts.h"

namespace crema {

namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// The field of the family that has batch_size: one that is set, otherwise the one named after the
// type; null if there is none.
const FieldDescriptor* batch_holder(const LayerParameter& layer) {
  const FieldDescriptor* holder = nullptr;
  for (int i = 0; i < LayerParameter::descriptor()->field_count(); ++i) {
    const FieldDescriptor* field = LayerParameter::descriptor()->field(i);
    if (field->is_repeated() || field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    const FieldDescriptor* size = field->message_type()->FindFieldByName("batch_size");
    if (!size || size->is_repeated()) continue;
    if (layer.GetReflection()->HasField(layer, field) ||
        (!holder && letters_of(std::string(field->name())) == letters_of(layer.type())))
      holder = field;
  }
  return holder;
}

bool set_field(LayerParameter& layer, int samples) {
  const FieldDescriptor* const field = batch_holder(layer);
  if (!field) return false;
  Message* const holder = layer.GetReflection()->MutableMessage(&layer, field);
  const FieldDescriptor* size = field->message_type()->FindFieldByName("batch_size");
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

std::set<int64_t> stated_batches(const LayerParameter& source) {
  std::set<int64_t> batches;
  const auto first = [&](const auto& shapes) {
    for (const BlobShape& shape : shapes) {
      if (shape.dim_size() > 0) batches.insert(shape.dim(0));
    }
  };
  if (source.type() == "Input") {
    first(source.input_param().shape());
  } else if (source.type() == "DummyData") {
    first(source.dummy_data_param().shape());
    batches.insert(source.dummy_data_param().num().begin(), source.dummy_data_param().num().end());
  } else if (const FieldDescriptor* const field = batch_holder(source)) {
    const Message& holder = source.GetReflection()->GetMessage(source, field);
    const FieldDescriptor* size = field->message_type()->FindFieldByName("batch_size");
    batches.insert(size->cpp_type() == FieldDescriptor::CPPTYPE_UINT32
                       ? int64_t{holder.GetReflection()->GetUInt32(holder, size)}
                       : int64_t{holder.GetReflection()->GetInt32(holder, size)});
  }
  return batches;
}

int64_t divided_batch(const NetParameter& net) {
  int64_t made_up = 0;
  for (const LayerParameter& layer : net.layer()) {
    if (!is_source(layer) || layer.type() == "ContinuationIndicator") continue;
    if (facts_of(layer.type()).content == SourceContent::given) return 0;
    if (layer.type() != "DummyData") {
      const std::set<int64_t> batches = stated_batches(layer);
      return batches.empty() ? 0 : *batches.begin();
    }
    const DummyDataParameter& dummy = layer.dummy_data_param();
    if (made_up > 0) continue;
    if (dummy.shape_size() > 0 && dummy.shape(0).dim_size() > 0) {
      made_up = dummy.shape(0).dim(0);
    } else if (dummy.num_size() > 0) {
      made_up = dummy.num(0);
    }
  }
  return made_up;
}

void follow_batch_size(LayerParameter& layer, const std::set<int64_t>& before, int samples) {
  const auto repeats = [&](int64_t number) { return before.count(number) > 0; };
  const auto number = static_cast<uint32_t>(samples);
  if (layer.has_proposal_target_param() &&
      repeats(layer.proposal_target_param().num_img_per_batch()))
    layer.mutable_proposal_target_param()->set_num_img_per_batch(number);
  if (layer.type() == "Lstm" && repeats(layer.lstm_param().batch_size()))
    layer.mutable_lstm_param()->set_batch_size(number);
  if (layer.has_continuation_indicator_param() &&
      repeats(layer.continuation_indicator_param().batch_size()))
    layer.mutable_continuation_indicator_param()->set_batch_size(number);
  BlobShape* const shape = layer.has_reshape_param() && layer.reshape_param().axis() == 0
                               ? layer.mutable_reshape_param()->mutable_shape()
                               : nullptr;
  if (shape && shape->dim_size() > 0 && shape->dim(0) > 1 && repeats(shape->dim(0)))
    shape->set_dim(0, samples);
}

std::string letters_of(std::string name) {
  if (ends_with(name, "_param")) name.resize(name.size() - 6);
  name.erase(std::remove(name.begin(), name.end(), '_'), name.end());
  return lower_case(name);
}

}  // namespace crema
