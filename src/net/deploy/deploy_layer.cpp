#include "net/deploy/deploy_layer.h"

#include <google/protobuf/descriptor.h>

#include <vector>

#include "layers/norm/batch_norm_fields.h"
#include "proto/filler.pb.h"

namespace crema {

namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// At any depth; a message with no other content is also removed.
void clear_fillers(Message* message) {
  const auto* reflection = message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (field->message_type() == FillerParameter::descriptor()) {
      reflection->ClearField(message, field);
    } else if (!field->is_repeated()) {
      Message* inner = reflection->MutableMessage(message, field);
      const bool held = inner->ByteSizeLong() > 0;
      clear_fillers(inner);
      if (held && inner->ByteSizeLong() == 0) reflection->ClearField(message, field);
    }
  }
}

// Says what fillers alone have said so far: which blobs the layer has.
void name_blobs(LayerParameter* layer) {
  if (layer->type() == "BatchNorm" && learns_scale(layer->batch_norm_param()))
    layer->mutable_batch_norm_param()->set_scale_bias(true);
  const BNParameter& p = layer->bn_param();
  if (layer->type() == "BN" && (p.has_scale_filler() || p.has_shift_filler()))
    layer->mutable_bn_param()->set_bn_mode(p.bn_mode());
}

// Keeps the names of shared parameters and pads the list with empty names in front of them.
void keep_names(LayerParameter* layer) {
  int used = 0;
  for (int i = 0; i < layer->param_size(); ++i) {
    ParamSpec kept;
    const ParamSpec& param = layer->param(i);
    if (!param.name().empty()) kept.set_name(param.name());
    if (param.has_share_mode()) kept.set_share_mode(param.share_mode());
    if (kept.ByteSizeLong() > 0) used = i + 1;
    *layer->mutable_param(i) = kept;
  }
  layer->mutable_param()->DeleteSubrange(used, layer->param_size() - used);
}

}  // namespace

LayerParameter without_training(const LayerParameter& layer) {
  LayerParameter kept = layer;
  kept.clear_include();
  kept.clear_exclude();
  kept.clear_phase();
  kept.clear_loss_weight();
  kept.clear_propagate_down();
  name_blobs(&kept);
  // These make numbers with their fillers.
  if (layer.type() != "DummyData") clear_fillers(&kept);
  keep_names(&kept);
  // Where the program would write its findings in the images of a test.
  if (kept.has_detection_output_param())
    kept.mutable_detection_output_param()->clear_save_output_param();
  return kept;
}

LayerParameter hidden_units(const LayerParameter& rbm) {
  LayerParameter layer = rbm;
  layer.set_type("InnerProduct");
  layer.mutable_inner_product_param()->set_num_output(rbm.rbm_param().num_output());
  layer.clear_rbm_param();
  layer.clear_top();
  layer.add_top(rbm.top(1));
  while (layer.param_size() > 2) layer.mutable_param()->RemoveLast();
  return layer;
}

LayerParameter activation_layer(const LayerParameter& loss, const std::string& type) {
  LayerParameter layer;
  layer.set_type(type);
  if (type != "Softmax") return layer;
  if (loss.type() == "InfogainLoss" && loss.infogain_loss_param().has_axis()) {
    layer.mutable_softmax_param()->set_axis(loss.infogain_loss_param().axis());
  } else if (loss.softmax_param().has_axis()) {
    layer.mutable_softmax_param()->set_axis(loss.softmax_param().axis());
  }
  return layer;
}

}  // namespace crema
