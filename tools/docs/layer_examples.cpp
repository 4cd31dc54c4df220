#include "tools/docs/layer_examples.h"

#include <google/protobuf/text_format.h>

#include "base/error.h"
#include "proto/layer.pb.h"

namespace crema {

LayerExample example_of(const std::string& type) {
  const std::string wanted = "type: \"" + type + "\"";
  for (const std::string& line : split(layer_example_bytes(), '\n')) {
    const size_t bar = line.find('|');
    if (line.empty() || line[0] == '#' || bar == std::string::npos) continue;
    const std::string text(trim(std::string_view(line).substr(bar + 1)));
    const size_t at = text.find(" type: \"");  // the first is the layer's own
    if (at != std::string::npos && text.compare(at + 1, wanted.size(), wanted) == 0)
      return {std::string(trim(std::string_view(line).substr(0, bar))), text};
  }
  fail("tools/docs/layer_examples.rows has no layer of type ", type);
}

std::string block_of(const LayerExample& example) {
  LayerParameter layer;
  require(google::protobuf::TextFormat::ParseFromString(example.text, &layer),
          "tools/docs/layer_examples.rows: not a layer: ", example.text);
  std::string fields;
  google::protobuf::TextFormat::PrintToString(layer, &fields);
  std::string block = "layer {\n";
  for (const std::string& line : split(trim(fields), '\n')) block += "  " + line + "\n";
  return block + "}\n";
}

}  // namespace crema
