// Checks of a net against the data that its sources hold.
#include <algorithm>
#include <cmath>
#include <set>

#include "data/databases/class_names.h"
#include "data/databases/label_order.h"
#include "net/check/checks.h"
#include "net/source_files.h"

namespace crema {
namespace {

// What a layer compares labels with, if its classes are the numbers from 0 up.
bool reads_classes(const LayerParameter& layer) {
  static const std::set<std::string> types = {"SoftmaxWithLoss", "HingeLoss", "InfogainLoss",
                                              "MultinomialLogisticLoss", "Accuracy"};
  return types.count(layer.type()) > 0 && layer.bottom_size() >= 2 &&
         layer.softmax_param().axis() == 1 && layer.accuracy_param().axis() == 1;
}

bool is_ignored(const LayerParameter& layer, int64_t label) {
  return (layer.loss_param().has_ignore_label() && label == layer.loss_param().ignore_label()) ||
         (layer.accuracy_param().has_ignore_label() &&
          label == layer.accuracy_param().ignore_label());
}

// Whether some layer starts from weights whose size assumes inputs of about 1.
bool scales_to_inputs(const CheckedNet& net) {
  const auto assumes = [](const FillerParameter& filler) {
    return filler.type() == "xavier" || filler.type() == "msra";
  };
  for (int i = 0; i < net.layers(); ++i) {
    if (assumes(net.layer(i).convolution_param().weight_filler()) ||
        assumes(net.layer(i).inner_product_param().weight_filler()))
      return true;
  }
  return false;
}

// Of all values: the root of the mean square of their distance to `mean(channel)`.
template <typename Mean>
double spread(const std::vector<SourceFacts::Channel>& channels, const Mean& mean) {
  double count = 0, squares = 0;
  for (size_t c = 0; c < channels.size(); ++c) {
    const SourceFacts::Channel& at = channels[c];
    const double m = mean(c);
    count += at.count;
    squares += at.squares - 2 * m * at.sum + m * m * at.count;
  }
  return count > 0 ? std::sqrt(std::max(0.0, squares / count)) : 0;
}

}  // namespace

void check_order(const CheckedNet& net, int layer, const SourceFacts& facts, Findings* findings) {
  const std::vector<int64_t>& labels = facts.labels;
  if (!net.training() || facts.shuffles || !sorted_by_class(labels)) return;
  const bool database = net.layer(layer).type() == "Data";
  add(findings, Severity::warning, net.where(layer, database ? "data_param" : "image_data_param"),
      "layer \"", net.layer(layer).name(), "\": the records are sorted by their label, from ",
      labels.front(), " to ", labels.back(),
      ", and are not shuffled: a batch holds one or two classes only, and nothing but the last "
      "ones is remembered; write ",
      database ? "data_param" : "image_data_param", " { shuffle: true }");
}

void check_labels(const CheckedNet& net, int layer, const SourceFacts& facts, Findings* findings) {
  const LayerParameter& source = net.layer(layer);
  if (source.top_size() < 2 || facts.labels.empty()) return;
  const std::string& top = source.top(1);
  std::set<int> told;  // layers with a num_output
  for (const int reader : net.readers_of(layer, top)) {
    const LayerParameter& message = net.layer(reader);
    if (!reads_classes(message) || message.bottom(1) != top) continue;
    const int scores = net.scores_of(reader, message.bottom(0));
    if (scores < 0 || !told.insert(scores).second) continue;
    const int64_t classes = net.num_output(scores);
    int64_t least = 0, most = 0;
    for (const int64_t label : facts.labels) {
      if (is_ignored(message, label)) continue;
      least = std::min(least, label);
      most = std::max(most, label);
    }
    const std::string place = net.where(scores, net.layer(scores).type() == "InnerProduct"
                                                    ? "inner_product_param.num_output"
                                                    : "convolution_param.num_output");
    const std::string what =
        cat("layer \"", net.layer(scores).name(), "\": num_output is ", classes,
            ", for labels from 0 to ", classes - 1, ", but \"", source.name(), "\" has the label ");
    if (most >= classes) {
      add(findings, Severity::error, place, what, most, ": set num_output: ", most + 1,
          least >= 0 ? ", or number the classes from 0" : "");
    } else if (least < 0) {
      add(findings, Severity::error, place, what, least,
          ": number the classes from 0, or set ignore_label: ", least, " in \"", message.name(),
          "\"");
    } else if (facts.all_labels && classes > 2 * (most + 1)) {
      add(findings, Severity::info, place, "layer \"", net.layer(scores).name(),
          "\": num_output is ", classes, ", but no label in \"", source.name(), "\" is above ",
          most, ": num_output: ", most + 1, " is enough for these data");
    }
  }
}

void check_class_names(const CheckedNet& net, int layer, Findings* findings) {
  const LayerParameter& source = net.layer(layer);
  const ClassNames names = class_names_of_source(source_of(source, net.folder()));
  if (names.empty() || source.top_size() < 2) return;
  std::set<int> told;
  for (const int reader : net.readers_of(layer, source.top(1))) {
    const LayerParameter& message = net.layer(reader);
    if (!reads_classes(message) || message.bottom(1) != source.top(1)) continue;
    const int scores = net.scores_of(reader, message.bottom(0));
    if (scores < 0 || !told.insert(scores).second) continue;
    const auto count = static_cast<int64_t>(names.names.size());
    if (net.num_output(scores) == count) continue;
    add(findings, Severity::error,
        net.where(scores, net.layer(scores).type() == "InnerProduct"
                              ? "inner_product_param.num_output"
                              : "convolution_param.num_output"),
        "layer \"", net.layer(scores).name(), "\": num_output is ", net.num_output(scores),
        ", but ", names.path, " names ", count, count == 1 ? " class" : " classes", " of \"",
        source.name(), "\": set num_output: ", count, ", or correct the names");
  }
}

void check_values(const CheckedNet& net, int layer, const SourceFacts& facts, Findings* findings) {
  const TransformationParameter& transform = net.layer(layer).transform_param();
  if (facts.values.empty()) return;
  const int means = transform.mean_value_size();
  if (means > 1 && means != static_cast<int>(facts.values.size())) return;  // an error elsewhere
  const auto given = [&](size_t c) {
    return means == 0 ? 0.0 : double{transform.mean_value(means == 1 ? 0 : static_cast<int>(c))};
  };
  const auto own = [&](size_t c) {
    return facts.values[c].sum / std::max(1.0, facts.values[c].count);
  };
  const double before = spread(facts.values, [](size_t) { return 0.0; });
  const double after = spread(facts.values, given), deviation = spread(facts.values, own);
  if (before == 0) return;
  if (means > 0 && after > 1.5 * before) {
    add(findings, Severity::warning, net.where(layer, "transform_param.mean_value"), "layer \"",
        net.layer(layer).name(), "\": mean_value does not fit the data: they are about ", own(0),
        " in the first channel, and ", given(0),
        " less moves them away from 0; the mean is subtracted before scale is applied");
  }
  const double scaled = deviation * std::abs(double{transform.scale()});
  if (transform.scale() == 1 || deviation == 0 || !scales_to_inputs(net)) return;
  if (scaled <= 100 && scaled >= 1e-3) return;
  add(findings, Severity::warning, net.where(layer, "transform_param.scale"), "layer \"",
      net.layer(layer).name(), "\": scale ", transform.scale(),
      " does not fit the data: their standard deviation is ", deviation, ", so ", scaled,
      " after it, while fillers xavier and msra are made for values of about 1; scale: ",
      1 / deviation, " gives that");
}

}  // namespace crema
