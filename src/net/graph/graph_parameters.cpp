#include "net/graph/graph_parameters.h"

#include "base/error.h"
#include "layers/filler.h"
#include "net/graph/given_blobs.h"
#include "tensor/shape_limits.h"

namespace crema {

void check_extents(const std::string& what, const Shape& shape) {
  for (const int64_t extent : shape.dims()) {
    if (extent <= 0)
      fail(what, " would have the shape ", shape.brief(),
           ", but each extent must be at least 1: check the sizes that this layer is given, and "
           "the shapes of its bottoms");
  }
  if (!at_most(shape, kMaxValues))
    fail(what, " would have the shape ", shape.brief(),
         ", more than 2^48 values: check the sizes that this layer is given");
  if (shape.axes() > kMaxBlobAxes)
    fail(what, " would have ", shape.axes(), " axes, but a blob can have at most ", kMaxBlobAxes);
}

std::vector<int> GraphParameters::add(const LayerParameter& message, const Layer& layer) {
  const auto count = static_cast<int>(layer.parameters().size());
  require(message.param_size() <= count, "param is given ", message.param_size(),
          " times, but type ", message.type(), " has ", count, " parameters here");
  check_given_blobs(message, layer.parameters().size());
  std::vector<int> ids;
  for (int k = 0; k < count; ++k) {
    const ParameterSpec& wanted = layer.parameters()[k];
    check_extents(cat("parameter ", k), wanted.shape);
    const ParamSpec& spec =
        k < message.param_size() ? message.param(k) : ParamSpec::default_instance();
    const auto owner = spec.name().empty() ? named_.end() : named_.find(spec.name());
    if (owner != named_.end()) {
      share(message, k, wanted, graph_.parameters[owner->second]);
      ids.push_back(owner->second);
      continue;
    }
    Parameter parameter;
    parameter.name = spec.name();
    parameter.layer = message.name();
    parameter.index = k;
    parameter.shape = wanted.shape;
    parameter.filler = wanted.filler;
    parameter.filler_stream = mix(layer.id(), k);
    parameter.learned = wanted.learned;
    parameter.lr_mult = wanted.learned ? spec.lr_mult() : 0;
    parameter.decay_mult = wanted.learned ? spec.decay_mult() : 0;
    parameter.muon = spec.muon();
    if (message.blobs_size() > 0) {
      parameter.given =
          std::make_shared<std::vector<float>>(given_values(message, k, wanted.shape));
    } else {
      check_filler(*wanted.filler);  // here, where the position in the file is known
    }
    ids.push_back(static_cast<int>(graph_.parameters.size()));
    if (!spec.name().empty()) named_[spec.name()] = ids.back();
    graph_.parameters.push_back(std::move(parameter));
  }
  return ids;
}

void GraphParameters::share(const LayerParameter& message, int k, const ParameterSpec& wanted,
                            const Parameter& owner) {
  const ParamSpec& spec = message.param(k);
  log_.info(cat("Sharing parameters '", owner.name, "' owned by layer '", owner.layer,
                "', param index ", owner.index));
  const bool permissive = spec.share_mode() == ParamSpec::PERMISSIVE;
  require(permissive ? owner.shape.count() == wanted.shape.count() : owner.shape == wanted.shape,
          "parameter \"", owner.name, "\" is shared with layer \"", owner.layer,
          "\", where its shape is ", owner.shape.brief(), ", but here it is ", wanted.shape.brief(),
          permissive ? "" : "; share_mode: PERMISSIVE accepts shapes of equal count");
  require(!spec.has_lr_mult() || spec.lr_mult() == owner.lr_mult || !owner.learned, "parameter \"",
          owner.name, "\" is shared with layer \"", owner.layer, "\", where lr_mult is ",
          owner.lr_mult, ", but here it is ", spec.lr_mult(), ": they must agree");
  require(!spec.has_decay_mult() || spec.decay_mult() == owner.decay_mult || !owner.learned,
          "parameter \"", owner.name, "\" is shared with layer \"", owner.layer,
          "\", where decay_mult is ", owner.decay_mult, ", but here it is ", spec.decay_mult(),
          ": they must agree");
  if (message.blobs_size() == 0) return;
  const std::vector<float> given = given_values(message, k, wanted.shape);
  if (!owner.given || *owner.given != given)
    log_.warning(cat("layer \"", message.name(), "\": blobs ", k,
                     " has no effect, because parameter \"", owner.name, "\" belongs to layer \"",
                     owner.layer, "\": write its values there"));
}

}  // namespace crema
