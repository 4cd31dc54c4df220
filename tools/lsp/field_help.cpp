#include "tools/lsp/field_help.h"

#include <algorithm>

#include "base/strings.h"
#include "layers/layer_types.h"
#include "net/prototxt/upgrade_strip.h"
#include "tools/docs/layer_text.h"

namespace crema {
namespace {

// "layer.convolution_param" of a place, as help_on_fields() takes it.
std::string path_of(const TypedPlace& place) {
  std::string path;
  for (size_t i = 1; i < place.blocks.size(); ++i)
    path += cat(path.empty() ? "" : ".", place.blocks[i].field);
  if (!path.empty())
    return place.blocks[0].type->name() == "LayerParameter" ? "layer." + path : path;
  const std::string& type = place.blocks[0].type->name();
  return type == "SolverParameter" ? "solver" : type == "NetParameter" ? "net" : "layer";
}

// Fields that most files have, in the order in which these are written.
constexpr std::string_view kUsual[][2] = {
    {"NetParameter", "layer name"},
    {"LayerParameter", "name type bottom top include param"},
    {"SolverParameter",
     "net base_lr lr_policy max_iter max_epoch type momentum weight_decay display test_iter "
     "test_interval snapshot snapshot_prefix solver_mode gamma stepsize power random_seed"},
    {"ConvolutionParameter", "num_output kernel_size pad stride weight_filler bias_term group"},
    {"InnerProductParameter", "num_output weight_filler bias_term"},
    {"DataParameter", "source backend batch_size"},
    {"TransformationParameter", "mirror crop_size mean_value scale mean_file"},
};

// Forms of Caffe's first years, which are read as today's.
constexpr std::string_view kOld[][2] = {
    {"NetParameter", "layers input input_shape input_dim"},
    {"SolverParameter", "solver_type train_net_param test_net_param train_net test_net net_param"},
    {"LayerParameter", "blobs"},
    {"DataParameter", "scale mean_file crop_size mirror"},
};

template <size_t rows>
std::vector<std::string> words_of(const std::string_view (&table)[rows][2],
                                  const std::string& type) {
  for (const auto& row : table)
    if (row[0] == type) return split(std::string(row[1]), ' ');
  return {};
}

}  // namespace

MessageHelp help_on_block(const TypedPlace& place) { return help_on_fields(path_of(place)); }

FieldOrder::FieldOrder(const google::protobuf::Descriptor& type, const std::string& layer_type)
    : type_(type), first_(words_of(kUsual, type.name())) {
  const std::vector<std::string> types = layer_types();
  has_type_ = type.name() == "LayerParameter" &&
              std::find(types.begin(), types.end(), layer_type) != types.end();
  if (!has_type_) return;
  for (const MessageHelp& help :
       help_on_parameters(layer_type, types, documentation_of(layer_type)))
    first_.push_back(help.field);
}

std::string FieldOrder::key_of(const google::protobuf::FieldDescriptor& field) const {
  const std::string& name = field.name();
  const auto position = [&](const std::vector<std::string>& words) {
    return std::find(words.begin(), words.end(), name) - words.begin();
  };
  const std::vector<std::string> old = words_of(kOld, type_.name());
  const auto first = position(first_);
  const bool is_first = first < std::ssize(first_);
  const bool is_of_layers = type_.name() == "LayerParameter" && ends_with(name, "_param");
  const int rank = is_first                             ? 0
                   : position(old) < std::ssize(old)    ? 4
                   : is_of_layers                       ? has_type_ ? 3 : 2
                   : field.number() >= kFirstForkNumber ? 2
                                                        : 1;
  const auto place = is_first ? first : field.index();
  const std::string digits = cat(place);
  return cat(rank, std::string(digits.size() < 4 ? 4 - digits.size() : 0, '0'), digits);
}

}  // namespace crema
