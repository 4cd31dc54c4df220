#include <cctype>
#include <map>

#include "base/strings.h"
#include "net/prototxt/upgrade_layers.h"

namespace crema {

namespace pb = google::protobuf;

namespace {

// The old fields of one data layer, for any of the three messages that have them.
template <typename Parameter>
void move_fields(Parameter* from, TransformationParameter* to) {
  if (from->has_scale()) to->set_scale(from->scale());
  if (from->has_mean_file()) to->set_mean_file(from->mean_file());
  if (from->has_crop_size()) to->set_crop_size(from->crop_size());
  if (from->has_mirror()) to->set_mirror(from->mirror());
  from->clear_scale();
  from->clear_mean_file();
  from->clear_crop_size();
  from->clear_mirror();
}

bool has_transform_fields(const V1LayerParameter& layer) {
  const auto any = [](const auto& p) {
    return p.has_scale() || p.has_mean_file() || p.has_crop_size() || p.has_mirror();
  };
  switch (layer.type()) {
    case V1LayerParameter::DATA:
      return any(layer.data_param());
    case V1LayerParameter::IMAGE_DATA:
    case V1LayerParameter::VIDEO_DATA:
      return any(layer.image_data_param());
    case V1LayerParameter::WINDOW_DATA:
      return any(layer.window_data_param());
    default:
      return false;
  }
}

// The i-th param block, created when missing.
ParamSpec* param(LayerParameter* layer, int i) {
  while (layer->param_size() <= i) layer->add_param();
  return layer->mutable_param(i);
}

// Parameters of the layer types have the same name in both generations.
void copy_type_parameters(const V1LayerParameter& from, LayerParameter* to) {
  std::vector<const pb::FieldDescriptor*> fields;
  from.GetReflection()->ListFields(from, &fields);
  for (const pb::FieldDescriptor* field : fields) {
    if (!ends_with(field->name(), "_param")) continue;
    const auto* target = LayerParameter::descriptor()->FindFieldByName(field->name());
    to->GetReflection()
        ->MutableMessage(to, target)
        ->CopyFrom(from.GetReflection()->GetMessage(from, field));
  }
}

void upgrade_layer(const V1LayerParameter& from, LayerParameter* to) {
  *to->mutable_bottom() = from.bottom();
  *to->mutable_top() = from.top();
  if (from.has_name()) to->set_name(from.name());
  if (from.has_type()) to->set_type(layer_type(from.type()));
  *to->mutable_include() = from.include();
  *to->mutable_exclude() = from.exclude();
  *to->mutable_blobs() = from.blobs();
  *to->mutable_loss_weight() = from.loss_weight();
  for (int i = 0; i < from.param_size(); ++i) param(to, i)->set_name(from.param(i));
  for (int i = 0; i < from.blob_share_mode_size(); ++i) {
    param(to, i)->set_share_mode(static_cast<ParamSpec::DimCheckMode>(from.blob_share_mode(i)));
  }
  for (int i = 0; i < from.blobs_lr_size(); ++i) param(to, i)->set_lr_mult(from.blobs_lr(i));
  for (int i = 0; i < from.weight_decay_size(); ++i) {
    param(to, i)->set_decay_mult(from.weight_decay(i));
  }
  copy_type_parameters(from, to);
}

// "IMAGE_DATA" -> "ImageData".
std::string camel_case(const std::string& name) {
  std::string out;
  for (const std::string& word : split(name, '_')) {
    for (size_t i = 0; i < word.size(); ++i) {
      const auto letter = static_cast<unsigned char>(word[i]);
      out += static_cast<char>(i == 0 ? letter : std::tolower(letter));
    }
  }
  return out;
}

}  // namespace

std::string layer_type(V1LayerParameter::LayerType type) {
  static const std::map<V1LayerParameter::LayerType, std::string> kIrregular = {
      {V1LayerParameter::NONE, ""},
      {V1LayerParameter::ABSVAL, "AbsVal"},
      {V1LayerParameter::ARGMAX, "ArgMax"},
      {V1LayerParameter::BN, "BN"},
      {V1LayerParameter::BNLL, "BNLL"},
      {V1LayerParameter::DENSE_CRF, "DenseCRF"},
      {V1LayerParameter::HDF5_DATA, "HDF5Data"},
      {V1LayerParameter::HDF5_OUTPUT, "HDF5Output"},
      {V1LayerParameter::IM2COL, "Im2col"},
      {V1LayerParameter::LRN, "LRN"},
      {V1LayerParameter::LSTM, "LSTM"},
      {V1LayerParameter::LSTM_UNIT, "LSTMUnit"},
      {V1LayerParameter::MCWINDOW_DATA, "McWindowData"},
      {V1LayerParameter::MVN, "MVN"},
      {V1LayerParameter::PRELU, "PReLU"},
      {V1LayerParameter::RELU, "ReLU"},
      {V1LayerParameter::SOFTMAX_LOSS, "SoftmaxWithLoss"},
      {V1LayerParameter::TANH, "TanH"},
      {V1LayerParameter::CONVOLUTION3D, "Convolution"},
      {V1LayerParameter::POOLING3D, "Pooling"},
      {V1LayerParameter::DECONVOLUTION3D, "Deconvolution"},
  };
  const auto irregular = kIrregular.find(type);
  if (irregular != kIrregular.end()) return irregular->second;
  return camel_case(V1LayerParameter::LayerType_Name(type));
}

int move_transform_fields(NetParameter* net) {
  int first = -1;
  for (int i = 0; i < net->layers_size(); ++i) {
    V1LayerParameter& layer = *net->mutable_layers(i);
    if (!has_transform_fields(layer)) continue;
    if (first < 0) first = i;
    TransformationParameter* to = layer.mutable_transform_param();
    if (layer.type() == V1LayerParameter::DATA) move_fields(layer.mutable_data_param(), to);
    if (layer.type() == V1LayerParameter::IMAGE_DATA ||
        layer.type() == V1LayerParameter::VIDEO_DATA) {
      move_fields(layer.mutable_image_data_param(), to);
    }
    if (layer.type() == V1LayerParameter::WINDOW_DATA) {
      move_fields(layer.mutable_window_data_param(), to);
    }
  }
  return first;
}

void upgrade_v1_layers(NetParameter* net) {
  for (const V1LayerParameter& layer : net->layers()) upgrade_layer(layer, net->add_layer());
  net->clear_layers();
}

}  // namespace crema
