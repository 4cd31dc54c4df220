#include "net/graph/python_choice.h"

#include "base/error.h"
#include "layers/python/native.h"

namespace crema {

bool set_up_layer(Context& context, Node& node, const std::vector<Shape>& bottoms,
                  const std::string& folder) {
  const std::string file = overriding_module(node.message, folder);
  if (file.empty()) {
    node.layer->setup(context, bottoms);
    return false;
  }
  const std::string place = cat(node.place.where, node.place.where.empty() ? "" : ": ", "layer \"",
                                node.message.name(), "\": "),
                    type = node.message.python_param().layer();
  try {
    node.layer->setup(context, bottoms);
    context.log().info(cat(place, "class ", type, " of ", file,
                           " runs; 'native': True in param_str runs crema's own version of the "
                           "published class instead, which is faster"));
    return false;
  } catch (const Error& error) {
    context.log().warning(cat(place, "crema's own version of class ", type,
                              " runs, because that of ", file, " failed: ", error.what(),
                              "; 'native': False in param_str makes this an error"));
  }
  node.message = as_native(node.message);
  node.layer = make_layer(node.message, node.layer->training(), folder);
  if (DataSource* const source = node.layer->source()) source->open(context);
  node.layer->setup(context, bottoms);
  return true;
}

}  // namespace crema
