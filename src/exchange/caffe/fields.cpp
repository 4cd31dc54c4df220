#include "exchange/caffe/fields.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/strings.h"
#include "layers/norm/batch_norm_fields.h"
#include "proto/filler.pb.h"
#include "proto/options.pb.h"
#include "proto/params/convolution.pb.h"
#include "proto/params/forks_detection.pb.h"
#include "proto/params/shape.pb.h"

namespace crema {

namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Nothing in inference reads them, in any layer that has them.
bool only_trains(const Message& message, const FieldDescriptor* field) {
  static const std::set<std::string> names = {"engine",
                                              "moving_average_fraction",
                                              "stats_batch_size",
                                              "sync_bn",
                                              "stable_prod_grad",
                                              "dropout_seed",
                                              "random_seed",
                                              "visualize",
                                              "visualize_threshold",
                                              "save_file",
                                              "save_output_param",
                                              "fix_gradient",
                                              "bp_norm"};
  if (names.count(field->name()) > 0) return true;
  if (field->options().HasExtension(no_effect)) return true;
  return field->message_type() == FillerParameter::descriptor() &&
         message.GetDescriptor()->name() != "DummyDataParameter" &&
         message.GetDescriptor()->name() != "NoiseLayerParameter";
}

bool is_default(const Message& message, const FieldDescriptor* field) {
  if (field->is_repeated() || field->message_type() || !field->has_default_value()) return false;
  const Reflection& reflection = *message.GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.GetBool(message, field) == field->default_value_bool();
    case FieldDescriptor::CPPTYPE_FLOAT:
      return reflection.GetFloat(message, field) == field->default_value_float();
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection.GetInt32(message, field) == field->default_value_int32();
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection.GetUInt32(message, field) == field->default_value_uint32();
    case FieldDescriptor::CPPTYPE_ENUM:
      return reflection.GetEnum(message, field) == field->default_value_enum();
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection.GetString(message, field) == field->default_value_string();
    default:
      return false;
  }
}

// A block of a layer's parameters.
void clean_block(const Dialect& dialect, const std::string& type, const std::string& block,
                 const Shape& bottom, Message* message) {
  const Reflection& reflection = *message->GetReflection();
  std::vector<const FieldDescriptor*> given;
  reflection.ListFields(*message, &given);
  for (const FieldDescriptor* field : given) {
    const bool is_axis = field->name() == "axis" || field->name() == "end_axis";
    if (is_axis && field->cpp_type() == FieldDescriptor::CPPTYPE_INT32 && !field->is_repeated() &&
        bottom.axes() > 0 && reflection.GetInt32(*message, field) < 0 &&
        !is_default(*message, field))
      reflection.SetInt32(
          message, field,
          reflection.GetInt32(*message, field) + bottom.axes() + (type == "Reshape" ? 1 : 0));
    if (only_trains(*message, field) ||
        (is_default(*message, field) && !dialect.has_field(type, block, field->name())))
      reflection.ClearField(message, field);
  }
}

// What readers would otherwise complete in ways of their own.
void spell_out(const Shape& bottom, CaffeLayer* layer) {
  LayerParameter& message = layer->message;
  if (message.type() == "Permute") {
    auto& order = *message.mutable_permute_param()->mutable_order();
    for (int axis = 0; axis < bottom.axes(); ++axis)
      if (std::find(order.begin(), order.end(), static_cast<uint32_t>(axis)) == order.end())
        order.Add(static_cast<uint32_t>(axis));
  }
  if (message.type() == "PriorBox") {
    // SSD reads the sizes as whole numbers.
    PriorBoxParameter& p = *message.mutable_prior_box_param();
    for (float& size : *p.mutable_min_size()) size = std::trunc(size);
    for (float& size : *p.mutable_max_size()) size = std::trunc(size);
    if (p.variance_size() == 0) p.add_variance(0.1f);
  }
  if (message.type() == "Slice" && message.slice_param().slice_point_size() == 0) {
    SliceParameter& p = *message.mutable_slice_param();
    const int axis =
        p.has_slice_dim() ? static_cast<int>(p.slice_dim()) : bottom.canonical_axis(p.axis());
    const auto tops = static_cast<int64_t>(layer->tops.size());
    for (int64_t i = 1; i < tops; ++i)
      p.add_slice_point(static_cast<uint32_t>(bottom[axis] / tops * i));
  }
}

}  // namespace

void clean_fields(const Dialect& dialect, const Shape& bottom, CaffeLayer* layer) {
  LayerParameter& message = layer->message;
  // Its presence decides which of two layers a Normalize is.
  const bool is_normalize = message.type() == "Normalize";
  // Its blobs say what it learns; the fields of forks for that differ.
  if (message.type() == "BatchNorm") {
    BatchNormParameter& p = *message.mutable_batch_norm_param();
    p.clear_bias_term();
    p.clear_scale_bias();
    p.clear_use_weight_bias();
    if (layer->blobs.size() == 4) p.set_use_weight_bias(true);  // no dialect has a factor alone
    if (layer->blobs.size() > 4) p.set_scale_bias(true);
  }
  spell_out(bottom, layer);
  message.clear_phase();
  message.clear_loss_weight();
  message.clear_param();
  message.clear_blobs();
  message.clear_propagate_down();
  message.clear_include();
  message.clear_exclude();
  message.clear_precision();
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> given;
  reflection.ListFields(message, &given);
  for (const FieldDescriptor* field : given) {
    if (field->options().HasExtension(no_effect) || field->name() == "engine" ||
        field->name() == "transform_param" || field->name() == "loss_param") {
      reflection.ClearField(&message, field);
      continue;
    }
    if (!field->message_type()) continue;
    Message* const block = field->is_repeated()
                               ? reflection.MutableRepeatedMessage(&message, field, 0)
                               : reflection.MutableMessage(&message, field);
    clean_block(dialect, message.type(), field->name(), bottom, block);
    std::vector<const FieldDescriptor*> left;
    block->GetReflection()->ListFields(*block, &left);
    if (left.empty() && !is_normalize) reflection.ClearField(&message, field);
  }
}

namespace {

void add_default(const FieldDescriptor* one, Message* block) {
  const Reflection& reflection = *block->GetReflection();
  if (one->message_type()) {
    Message* const inner = reflection.MutableMessage(block, one);
    for (int i = 0; i < one->message_type()->field_count(); ++i)
      if (one->message_type()->field(i)->has_default_value())
        add_default(one->message_type()->field(i), inner);
    return;
  }
  if (reflection.HasField(*block, one)) return;
  switch (one->cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      reflection.SetBool(block, one, one->default_value_bool());
      break;
    case FieldDescriptor::CPPTYPE_FLOAT:
      reflection.SetFloat(block, one, one->default_value_float());
      break;
    case FieldDescriptor::CPPTYPE_INT32:
      reflection.SetInt32(block, one, one->default_value_int32());
      break;
    case FieldDescriptor::CPPTYPE_UINT32:
      reflection.SetUInt32(block, one, one->default_value_uint32());
      break;
    case FieldDescriptor::CPPTYPE_ENUM:
      reflection.SetEnum(block, one, one->default_value_enum());
      break;
    default:
      fail(one->full_name(), ": a dialect asks for its default, but it is no number");
  }
}

}  // namespace

void add_defaults(const Dialect& dialect, LayerParameter* layer) {
  for (const DialectField& field : dialect.always(layer->type())) {
    Message* const block = layer->GetReflection()->MutableMessage(
        layer, LayerParameter::descriptor()->FindFieldByName(field.block));
    add_default(block->GetDescriptor()->FindFieldByName(field.name), block);
  }
}

void set_kernel(const std::vector<int64_t>& kernel, const std::vector<int64_t>& stride,
                const std::vector<int64_t>& pad, const std::vector<int64_t>& dilation,
                ConvolutionParameter* p) {
  for (const char* name : {"kernel_size", "stride", "pad", "dilation", "kernel_h", "kernel_w",
                           "stride_h", "stride_w", "pad_h", "pad_w", "kernel_depth", "temporal_pad",
                           "temporal_stride", "kernel_shape", "pad_shape", "stride_shape"})
    p->GetReflection()->ClearField(p, p->GetDescriptor()->FindFieldByName(name));
  const auto alike = [](const std::vector<int64_t>& values) {
    return std::all_of(values.begin(), values.end(),
                       [&](int64_t value) { return value == values[0]; });
  };
  const bool plane = kernel.size() == 2;
  const auto set = [&](const std::vector<int64_t>& values, int64_t otherwise, auto add, auto high,
                       auto wide) {
    if (alike(values)) {
      if (values[0] != otherwise) add(static_cast<uint32_t>(values[0]));
    } else if (plane) {
      high(static_cast<uint32_t>(values[0]));
      wide(static_cast<uint32_t>(values[1]));
    } else {
      for (const int64_t value : values) add(static_cast<uint32_t>(value));
    }
  };
  set(
      kernel, -1, [&](uint32_t v) { p->add_kernel_size(v); },
      [&](uint32_t v) { p->set_kernel_h(v); }, [&](uint32_t v) { p->set_kernel_w(v); });
  set(
      stride, 1, [&](uint32_t v) { p->add_stride(v); }, [&](uint32_t v) { p->set_stride_h(v); },
      [&](uint32_t v) { p->set_stride_w(v); });
  set(
      pad, 0, [&](uint32_t v) { p->add_pad(v); }, [&](uint32_t v) { p->set_pad_h(v); },
      [&](uint32_t v) { p->set_pad_w(v); });
  if (alike(dilation)) {
    if (dilation[0] != 1) p->add_dilation(static_cast<uint32_t>(dilation[0]));
  } else {
    for (const int64_t value : dilation) p->add_dilation(static_cast<uint32_t>(value));
  }
}

}  // namespace crema
