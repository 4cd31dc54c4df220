#include <map>

#include "base/error.h"
#include "net/prototxt/upgrade_layers.h"

namespace crema {

namespace {

using V1 = V1LayerParameter;

const std::map<std::string, V1::LayerType>& v0_types() {
  static const std::map<std::string, V1::LayerType> types = {
      {"accuracy", V1::ACCURACY},
      {"bnll", V1::BNLL},
      {"cccp", V1::CONVOLUTION},  // of a fork: a kernel of 1, num_output for each group
      {"concat", V1::CONCAT},
      {"conv", V1::CONVOLUTION},
      {"data", V1::DATA},
      {"dropout", V1::DROPOUT},
      {"euclidean_loss", V1::EUCLIDEAN_LOSS},
      {"flatten", V1::FLATTEN},
      {"hdf5_data", V1::HDF5_DATA},
      {"hdf5_output", V1::HDF5_OUTPUT},
      {"im2col", V1::IM2COL},
      {"images", V1::IMAGE_DATA},
      {"infogain_loss", V1::INFOGAIN_LOSS},
      {"inner_product", V1::INNER_PRODUCT},  // of a fork
      {"innerproduct", V1::INNER_PRODUCT},
      {"lrn", V1::LRN},
      {"multinomial_logistic_loss", V1::MULTINOMIAL_LOGISTIC_LOSS},
      {"pool", V1::POOLING},
      {"relu", V1::RELU},
      {"sigmoid", V1::SIGMOID},
      {"softmax", V1::SOFTMAX},
      {"softmax_loss", V1::SOFTMAX_LOSS},
      {"split", V1::SPLIT},
      {"squaredhingeloss", V1::HINGE_LOSS},  // of a fork
      {"tanh", V1::TANH},
      {"window_data", V1::WINDOW_DATA},
  };
  return types;
}

// Converts one V0 layer to V1. Each field moves to where its layer's type has it today; fields that
// the type never had are listed in `ignored`.
class V0Layer {
 public:
  V0Layer(const V1LayerParameter& connection, V1LayerParameter* to, const Locate& where,
          const std::string& path)
      : from_(connection.layer()), to_(to) {
    *to_->mutable_bottom() = connection.bottom();
    *to_->mutable_top() = connection.top();
    if (from_.has_name()) to_->set_name(from_.name());
    if (from_.has_type()) {
      const auto found = v0_types().find(from_.type());
      if (found == v0_types().end()) {
        std::vector<std::string> names;
        for (const auto& entry : v0_types()) names.push_back(entry.first);
        fail(where(path + ".layer.type"), ": Unknown layer name: ", from_.type(),
             did_you_mean(from_.type(), names));
      }
      to_->set_type(found->second);
      if (found->second == V1::HINGE_LOSS)
        to_->mutable_hinge_loss_param()->set_norm(HingeLossParameter::L2);
    }
    *to_->mutable_blobs() = from_.blobs();
    *to_->mutable_blobs_lr() = from_.blobs_lr();
    *to_->mutable_weight_decay() = from_.weight_decay();
  }

  std::vector<std::string> move_fields() {
    weights();
    window();
    normalization();
    data();
    detection_window();
    if (from_.has_hdf5_output_param() && allowed("hdf5_output_param", {V1::HDF5_OUTPUT})) {
      *to_->mutable_hdf5_output_param() = from_.hdf5_output_param();
    }
    return ignored_;
  }

 private:
  bool is(V1::LayerType type) const { return to_->type() == type; }

  bool allowed(const char* field, std::initializer_list<V1::LayerType> types) {
    for (const V1::LayerType type : types) {
      if (is(type)) return true;
    }
    ignored_.push_back(cat("Unknown parameter ", field, " for layer type ", from_.type()));
    return false;
  }

  ConvolutionParameter* conv() { return to_->mutable_convolution_param(); }
  InnerProductParameter* dense() { return to_->mutable_inner_product_param(); }
  PoolingParameter* pool() { return to_->mutable_pooling_param(); }
  ImageDataParameter* images() { return to_->mutable_image_data_param(); }
  WindowDataParameter* windows() { return to_->mutable_window_data_param(); }

  void weights() {
    const auto both = {V1::CONVOLUTION, V1::INNER_PRODUCT};
    const bool is_conv = is(V1::CONVOLUTION);
    if (from_.has_num_output() && allowed("num_output", both)) {
      const uint32_t count = from_.num_output();
      is_conv ? conv()->set_num_output(count) : dense()->set_num_output(count);
    }
    if (from_.has_biasterm() && allowed("biasterm", both)) {
      const bool bias = from_.biasterm();
      is_conv ? conv()->set_bias_term(bias) : dense()->set_bias_term(bias);
    }
    if (from_.has_weight_filler() && allowed("weight_filler", both)) {
      *(is_conv ? conv()->mutable_weight_filler() : dense()->mutable_weight_filler()) =
          from_.weight_filler();
    }
    if (from_.has_bias_filler() && allowed("bias_filler", both)) {
      *(is_conv ? conv()->mutable_bias_filler() : dense()->mutable_bias_filler()) =
          from_.bias_filler();
    }
    if (from_.has_group() && allowed("group", {V1::CONVOLUTION})) conv()->set_group(from_.group());
    if (from_.type() == "cccp") {
      conv()->add_kernel_size(1);
      conv()->set_num_output(from_.num_output() * from_.group());
    }
  }

  void window() {
    const auto both = {V1::CONVOLUTION, V1::POOLING};
    const bool is_conv = is(V1::CONVOLUTION);
    if (from_.has_pad() && allowed("pad", both)) {
      is_conv ? conv()->add_pad(from_.pad()) : pool()->set_pad(from_.pad());
    }
    if (from_.has_kernelsize() && allowed("kernelsize", both)) {
      const uint32_t size = from_.kernelsize();
      is_conv ? conv()->add_kernel_size(size) : pool()->set_kernel_size(size);
    }
    if (from_.has_stride() && allowed("stride", both)) {
      is_conv ? conv()->add_stride(from_.stride()) : pool()->set_stride(from_.stride());
    }
    if (from_.has_pool() && allowed("pool", {V1::POOLING})) {
      pool()->set_pool(static_cast<PoolingParameter::PoolMethod>(from_.pool()));
    }
  }

  void normalization() {
    if (from_.has_dropout_ratio() && allowed("dropout_ratio", {V1::DROPOUT})) {
      to_->mutable_dropout_param()->set_dropout_ratio(from_.dropout_ratio());
    }
    if (from_.has_local_size() && allowed("local_size", {V1::LRN})) {
      to_->mutable_lrn_param()->set_local_size(from_.local_size());
    }
    if (from_.has_alpha() && allowed("alpha", {V1::LRN})) {
      to_->mutable_lrn_param()->set_alpha(from_.alpha());
    }
    if (from_.has_beta() && allowed("beta", {V1::LRN})) {
      to_->mutable_lrn_param()->set_beta(from_.beta());
    }
    if (from_.has_k() && allowed("k", {V1::LRN})) to_->mutable_lrn_param()->set_k(from_.k());
    if (from_.has_concat_dim() && allowed("concat_dim", {V1::CONCAT})) {
      to_->mutable_concat_param()->set_concat_dim(from_.concat_dim());
    }
  }

  void data() {
    if (from_.has_source() && allowed("source", {V1::DATA, V1::HDF5_DATA, V1::IMAGE_DATA,
                                                 V1::WINDOW_DATA, V1::INFOGAIN_LOSS})) {
      const std::string& source = from_.source();
      if (is(V1::DATA)) to_->mutable_data_param()->set_source(source);
      if (is(V1::HDF5_DATA)) to_->mutable_hdf5_data_param()->set_source(source);
      if (is(V1::IMAGE_DATA)) images()->set_source(source);
      if (is(V1::WINDOW_DATA)) windows()->set_source(source);
      if (is(V1::INFOGAIN_LOSS)) to_->mutable_infogain_loss_param()->set_source(source);
    }
    if (from_.has_batchsize() &&
        allowed("batchsize", {V1::DATA, V1::HDF5_DATA, V1::IMAGE_DATA, V1::WINDOW_DATA})) {
      const uint32_t size = from_.batchsize();
      if (is(V1::DATA)) to_->mutable_data_param()->set_batch_size(size);
      if (is(V1::HDF5_DATA)) to_->mutable_hdf5_data_param()->set_batch_size(size);
      if (is(V1::IMAGE_DATA)) images()->set_batch_size(size);
      if (is(V1::WINDOW_DATA)) windows()->set_batch_size(size);
    }
    if (from_.has_rand_skip() && allowed("rand_skip", {V1::DATA, V1::IMAGE_DATA})) {
      if (is(V1::DATA)) to_->mutable_data_param()->set_rand_skip(from_.rand_skip());
      if (is(V1::IMAGE_DATA)) images()->set_rand_skip(from_.rand_skip());
    }
    if (from_.has_shuffle_images() && allowed("shuffle", {V1::IMAGE_DATA})) {
      images()->set_shuffle(from_.shuffle_images());
    }
    if (from_.has_new_height() && allowed("new_height", {V1::IMAGE_DATA})) {
      images()->set_new_height(from_.new_height());
    }
    if (from_.has_new_width() && allowed("new_width", {V1::IMAGE_DATA})) {
      images()->set_new_width(from_.new_width());
    }
    // Any type may have these: Caffe never checked.
    if (from_.has_scale()) to_->mutable_transform_param()->set_scale(from_.scale());
    if (from_.has_meanfile()) to_->mutable_transform_param()->set_mean_file(from_.meanfile());
    if (from_.has_cropsize()) to_->mutable_transform_param()->set_crop_size(from_.cropsize());
    if (from_.has_mirror()) to_->mutable_transform_param()->set_mirror(from_.mirror());
  }

  void detection_window() {
    if (from_.has_det_fg_threshold() && allowed("det_fg_threshold", {V1::WINDOW_DATA})) {
      windows()->set_fg_threshold(from_.det_fg_threshold());
    }
    if (from_.has_det_bg_threshold() && allowed("det_bg_threshold", {V1::WINDOW_DATA})) {
      windows()->set_bg_threshold(from_.det_bg_threshold());
    }
    if (from_.has_det_fg_fraction() && allowed("det_fg_fraction", {V1::WINDOW_DATA})) {
      windows()->set_fg_fraction(from_.det_fg_fraction());
    }
    if (from_.has_det_context_pad() && allowed("det_context_pad", {V1::WINDOW_DATA})) {
      windows()->set_context_pad(from_.det_context_pad());
    }
    if (from_.has_det_crop_mode() && allowed("det_crop_mode", {V1::WINDOW_DATA})) {
      windows()->set_crop_mode(from_.det_crop_mode());
    }
  }

  const V0LayerParameter& from_;
  V1LayerParameter* to_;
  std::vector<std::string> ignored_;
};

// A padding layer becomes the pad of each convolution or pooling that reads it.
void merge_padding(NetParameter* net, std::vector<std::string>* origins, const Locate& where) {
  const auto old = net->layers();
  const std::vector<std::string> old_origins = *origins;
  std::map<std::string, int> last_writer;
  for (const std::string& input : net->input()) last_writer[input] = -1;
  net->clear_layers();
  origins->clear();
  for (int i = 0; i < old.size(); ++i) {
    V1LayerParameter layer = old[i];
    for (std::string& bottom : *layer.mutable_bottom()) {
      const auto writer = last_writer.find(bottom);
      if (writer == last_writer.end()) {
        fail(where(old_origins[i]), ": Unknown blob input ", bottom, " to layer ",
             layer.layer().name());
      }
      if (writer->second < 0 || old[writer->second].layer().type() != "padding") continue;
      const V1LayerParameter& padding = old[writer->second];
      const std::string& type = layer.layer().type();
      require((type == "conv" || type == "pool") && layer.bottom_size() == 1 &&
                  padding.bottom_size() == 1 && padding.top_size() == 1,
              where(old_origins[writer->second]),
              ": a padding layer has one bottom and one top and comes before conv or pool");
      layer.mutable_layer()->set_pad(padding.layer().pad());
      bottom = padding.bottom(0);
    }
    for (const std::string& top : layer.top()) last_writer[top] = i;
    if (layer.layer().type() == "padding") continue;
    *net->add_layers() = std::move(layer);
    origins->push_back(old_origins[i]);
  }
}

}  // namespace

std::string layer_type(const std::string& v0_type) {
  const auto found = v0_types().find(v0_type);
  return found == v0_types().end() ? "" : layer_type(found->second);
}

std::vector<std::string> upgrade_v0_layers(NetParameter* net, std::vector<std::string>* origins,
                                           const Locate& where) {
  merge_padding(net, origins, where);
  std::vector<std::string> ignored;
  for (int i = 0; i < net->layers_size(); ++i) {
    if (!net->layers(i).has_layer()) continue;  // already of a later generation
    V1LayerParameter upgraded;
    V0Layer layer(net->layers(i), &upgraded, where, (*origins)[i]);
    for (std::string& line : layer.move_fields()) ignored.push_back(std::move(line));
    *net->mutable_layers(i) = std::move(upgraded);
  }
  return ignored;
}

}  // namespace crema
