#include "exchange/row_nets.h"

#include <cmath>
#include <cstdlib>

#include "base/larger.h"
#include "data/lists/message_text.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

std::string text_of_row(const Row& row, int tops) {
  std::string text = "name: \"row\"\n";
  for (size_t i = 0; i < row.bottoms.size(); ++i) {
    text += cat("layer { name: \"input", i, "\" type: \"Input\" top: \"bottom", i,
                "\" input_param { shape {");
    for (const int64_t extent : row.bottoms[i].shape.dims()) text += cat(" dim: ", extent);
    text += " } } }\n";
  }
  text += cat("layer { name: \"", row.name, "\" ", row.text);
  for (size_t i = 0; i < row.bottoms.size(); ++i) text += cat(" bottom: \"bottom", i, "\"");
  for (int i = 0; i < tops; ++i) text += cat(" top: \"top", i, "\"");
  return text + " }\n";
}

int tops_of_row(const Row& row) {
  LayerParameter message;
  if (!parse_message(row.text, &message).empty()) return 1;
  if (message.top_size() > 0) return 0;  // the row names them
  const std::unique_ptr<Layer> layer = make_layer(message, false, CREMA_TEST_DATA);
  return layer->as_many_tops_as_bottoms() ? static_cast<int>(row.bottoms.size())
                                          : std::max(layer->tops().minimum, 1);
}

// Parameters that no filler makes interesting, as statistics: positive and different.
void fill_parameters(Net& net) {
  uint64_t seed = 1;
  for (Parameter& parameter : net.parameters()) {
    std::vector<float> values = to_floats(net.context(), parameter.data);
    for (float& value : values) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      const float unit = static_cast<float>(seed >> 40) / static_cast<float>(1 << 24);
      if (!parameter.learned)
        value = 0.5f + unit;
      else
        value += 0.3f * (unit - 0.5f);
    }
    from_floats(net.context(), values.data(), parameter.data);
  }
  net.parameters_changed();
}

}  // namespace

std::unique_ptr<Net> net_of_text(Context& context, const std::string& text) {
  NetParameter message;
  NetOptions options;
  options.state.set_phase(TEST);
  options.keep_blobs = options.row_major = true;
  options.fuse = false;
  options.folder = CREMA_TEST_DATA;
  require(parse_message(text, &message).empty(), "not text of a net");
  if (message.layer(message.layer_size() - 1).type().find('+') != std::string::npos) return nullptr;
  auto net = std::make_unique<Net>(context, message, options);
  fill_parameters(*net);
  return net;
}

std::unique_ptr<Net> net_of_row(Context& context, const Row& row) {
  try {
    return net_of_text(context, text_of_row(row, tops_of_row(row)));
  } catch (const Error&) {
    return nullptr;
  }
}

void set_row_inputs(Net& net, const Row& row) {
  for (size_t i = 0; i < row.bottoms.size(); ++i) {
    const std::vector<double> values = make_values(row, static_cast<int>(i));
    const std::vector<float> floats(values.begin(), values.end());
    if (net.has_blob(cat("bottom", i))) net.set_input(cat("bottom", i), floats.data());
  }
}

std::string setting(const char* variable, const char* otherwise) {
  const char* const value = std::getenv(variable);
  return value != nullptr ? value : otherwise;
}

std::string extents_of(const Shape& shape) {
  std::string text;
  for (const int64_t extent : shape.dims()) text += cat(text.empty() ? "" : ",", extent);
  return text;
}

std::string difference_of(const std::vector<float>& expected, const std::vector<float>& found,
                          double tolerance) {
  if (expected.size() != found.size()) return cat(found.size(), " values, not ", expected.size());
  double largest = 1e-3, worst = 0;
  for (const float value : expected)
    if (std::isfinite(value)) largest = std::max(largest, std::abs(static_cast<double>(value)));
  for (size_t i = 0; i < expected.size(); ++i) {
    if (expected[i] == found[i] || (std::isnan(expected[i]) && std::isnan(found[i]))) continue;
    worst = larger_or_nan(worst, std::abs(static_cast<double>(expected[i]) - found[i]));
  }
  if (worst <= tolerance * largest) return "";
  return cat("differs by ", worst / largest, " of its largest value");
}

}  // namespace crema
