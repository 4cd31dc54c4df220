#include "layers/layer.h"

#include "base/other_names.h"
#include "layers/absent.h"
#include "layers/custom_types.h"
#include "layers/layer_types.h"
#include "layers/python_hook.h"
#include "proto/layer.pb.h"

namespace crema {

void Layer::setup(Context&, const std::vector<Shape>&) {}
Prepared Layer::prepare(Context&, const Preparation&) const {
  Prepared prepared;
  if (traits().dynamic) prepared.make_state<DynamicTops>();
  return prepared;
}
void Layer::check(Context&, const Forward&) const {}
void Layer::backward(Context&, const Backward&) const {
  fail("type ", type(), " has no gradient: nothing that learns may depend on its output");
}

// Allocates nothing, because layers call it in each pass.
bool Layer::fuses(std::string_view member) const {
  std::string_view rest = type_;
  if (rest.find('+') == rest.npos) return false;
  while (true) {
    const size_t end = rest.find('+');
    if (rest.substr(0, end) == member) return true;
    if (end == rest.npos) return false;
    rest.remove_prefix(end + 1);
  }
}

const google::protobuf::FieldDescriptor* params_field(const google::protobuf::Descriptor* type) {
  const google::protobuf::Descriptor* layer = LayerParameter::descriptor();
  const google::protobuf::FieldDescriptor* found = nullptr;
  for (int i = 0; i < layer->field_count(); ++i) {
    const google::protobuf::FieldDescriptor* field = layer->field(i);
    if (field->message_type() != type || field->is_repeated()) continue;
    require(!found, "LayerParameter has two fields of type ", type->name(),
            ": a layer would see one of them only");
    found = field;
  }
  require(found, "LayerParameter has no field of type ", type->name());
  return found;
}

const google::protobuf::Message& Layer::params_of(
    const google::protobuf::FieldDescriptor* field) const {
  return message_->GetReflection()->GetMessage(*message_, field);
}

bool Layer::has_params_of(const google::protobuf::FieldDescriptor* field) const {
  return message_->GetReflection()->HasField(*message_, field);
}

std::unique_ptr<Layer> make_layer(const LayerParameter& message, bool training,
                                  const std::string& folder) {
  require(!message.type().empty(),
          "the type is missing: say what the layer computes, for example type: \"Convolution\"");
  const LayerMaker* maker = LayerRegistry::find(message.type());
  const auto copy = std::make_shared<LayerParameter>(message);
  std::unique_ptr<Layer> layer;
  if (!maker) layer = make_custom_layer(message, training);
  if (!maker && !layer) {
    require(
        !is_absent_type(message.type()), "layer type ", message.type(),
        " is for training and tests, which this library leaves out: `crema deploy` writes a net "
        "for use");
    if (const char* instead = instead_of(message.type()))
      fail("layer type ", message.type(), " is not here: ", instead);
    fail("unknown layer type \"", message.type(), "\"",
         suggestion(Vocabulary::layers, message.type(), layer_types()),
         "; `crema layers` lists the known ones, and -layers FILE.so brings your own");
  }
  const LayerChooser* choose = ChooserRegistry::find(message.type());
  const OverridingModule* const overriding = OverridingRegistry::find(message.type());
  if (choose && !(overriding && !(*overriding)(message, folder).empty()))
    layer = (*choose)(*copy, training);
  if (!layer) layer = maker->make();
  layer->message_ = copy;
  layer->name_ = message.name();
  layer->type_ = copy->type();
  layer->training_ = training;
  layer->folder_ = folder;
  uint64_t hash = 1469598103934665603ull;  // FNV-1a
  for (unsigned char c : message.name()) hash = (hash ^ c) * 1099511628211ull;
  layer->id_ = hash;
  return layer;
}

}  // namespace crema
