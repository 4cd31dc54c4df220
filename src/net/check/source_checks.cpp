// Checks of a net against the data of its sources.
#include <algorithm>
#include <cmath>
#include <set>

#include "data/databases/class_names.h"
#include "data/databases/label_order.h"
#include "layers/layer_facts.h"
#include "net/check/checks.h"
#include "net/sources/source_files.h"

namespace crema {
namespace {

// What a layer compares labels with, if its classes are the numbers from 0 up.
bool reads_classes(const LayerParameter& layer) {
  return facts_of(layer.type()).labels == LabelKind::scored && layer.bottom_size() >= 2 &&
         layer.softmax_param().axis() == 1 && layer.accuracy_param().axis() == 1;
}

// Whether the targets are from 0 to 1. Those of MultiLabelLoss are -1 and 1.
bool reads_shares(const std::string& type) {
  const LayerFacts facts = facts_of(type);
  return facts.labels == LabelKind::answers && !facts.activation.empty() &&
         type != "MultiLabelLoss";
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

// Over all values: the root of the mean square of their distance to `mean(channel)`.
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

// Labels that are all the same.
void check_one_class(const CheckedNet& net, int layer, const SourceFacts& facts,
                     Findings* findings) {
  constexpr size_t kEnough = 20;  // records
  const std::vector<int64_t>& labels = facts.labels;
  const std::string& top = net.layer(layer).top(1);
  if (!net.training() || labels.size() < kEnough || net.readers_of(layer, top).empty()) return;
  if (std::any_of(labels.begin(), labels.end(), [&](int64_t l) { return l != labels[0]; })) return;
  add(findings, Severity::warning, net.where(layer, "top"), "layer \"", net.layer(layer).name(),
      "\": all ", labels.size(), " records that were looked at have the label ", labels[0],
      ": the net learns to say that and nothing else; were the labels given when the data were "
      "converted?");
}

// Labels that are the targets of a loss with a range, or of one with scores in a range.
void check_targets(const CheckedNet& net, int layer, const SourceFacts& facts, Findings* findings) {
  const std::string& top = net.layer(layer).top(1);
  const auto [least, most] = std::minmax_element(facts.labels.begin(), facts.labels.end());
  for (const int reader : net.readers_of(layer, top)) {
    const LayerParameter& message = net.layer(reader);
    const std::string& type = message.type();
    double low = 0, high = 1;
    Severity severity = Severity::error;
    std::string why = cat("the targets of ", type, " are");
    if (type == "EuclideanLoss" && message.bottom_size() > 1) {
      const int from = net.producer_of(reader, message.bottom(message.bottom(0) == top ? 1 : 0));
      const LayerParameter before = from < 0 ? LayerParameter() : net.layer(from);
      const LayerFacts facts = facts_of(before.type());
      severity = Severity::warning;
      low = facts.least;
      high = facts.most;
      if (facts.kind != LayerKind::activation || before.relu_param().negative_slope() != 0)
        continue;
      why = cat("the values of \"", before.name(), "\" (", before.type(),
                ") that it is compared with are");
    } else if (!reads_shares(type) && type != "ContrastiveLoss") {
      continue;
    }
    const size_t place = type == "ContrastiveLoss" ? 2 : 1;
    if (severity == Severity::error && (message.bottom_size() <= static_cast<int>(place) ||
                                        message.bottom(static_cast<int>(place)) != top))
      continue;
    const auto bad = [&](int64_t label) {
      return !is_ignored(message, label) &&
             (static_cast<double>(label) < low || static_cast<double>(label) > high);
    };
    if (!bad(*least) && !bad(*most)) continue;
    add(findings, severity, net.where(reader, "bottom"), "layer \"", message.name(), "\": ", why,
        " from ", low, " to ", high, ", but \"", net.layer(layer).name(), "\" has the label ",
        bad(*most) ? *most : *least, "; change the labels, or the layer");
  }
}

// The channels of mean_value in the other order fit far better: red and blue are exchanged.
bool reversed_fits(const TransformationParameter& transform,
                   const std::vector<SourceFacts::Channel>& channels) {
  if (transform.mean_value_size() != 3 || channels.size() != 3) return false;
  double as_given = 0, reversed = 0;
  for (int c = 0; c < 3; ++c) {
    const double own = channels[c].sum / std::max(1.0, channels[c].count);
    as_given += std::abs(transform.mean_value(c) - own);
    reversed += std::abs(transform.mean_value(2 - c) - own);
  }
  return as_given > 10 && reversed < as_given / 3;
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
  check_one_class(net, layer, facts, findings);
  check_targets(net, layer, facts, findings);
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
    const std::string place = net.where(scores, net.weight_params(scores) + ".num_output");
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
    add(findings, Severity::error, net.where(scores, net.weight_params(scores) + ".num_output"),
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
  const std::string& name = net.layer(layer).name();
  if (deviation == 0 && facts.values[0].count > 1) {
    const bool differ = facts.values.size() > 1;
    add(findings, Severity::warning, net.where(layer, "top"), "layer \"", name,
        "\": all values of the records that were looked at are ", own(0),
        differ ? " in the first channel, and constant in the others" : "",
        ": the images are empty, so nothing can be learned from them; look at them with crema db "
        "peek");
    return;
  }
  if (before == 0) return;
  if (reversed_fits(transform, facts.values)) {
    add(findings, Severity::warning, net.where(layer, "transform_param.mean_value"), "layer \"",
        name, "\": mean_value is ", given(0), ", ", given(1), ", ", given(2),
        ", but the channels of the data have the means ", own(0), ", ", own(1), ", ", own(2),
        ": red and blue are exchanged; write the values in the other order");
  }
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

void check_objects(const CheckedNet& net, int layer, const SourceFacts& facts, Findings* findings) {
  const SourceFacts::Objects& objects = facts.objects;
  const LayerParameter& source = net.layer(layer);
  if (objects.count == 0) return;
  const std::string where = net.where(layer, "data_param.source");
  if (objects.outside > 0) {
    const bool all = objects.outside == objects.count;
    add(findings, all ? Severity::error : Severity::warning, where, "layer \"", source.name(),
        "\": ", all ? "all" : cat(objects.outside, " of"), " ", objects.count,
        " boxes that were looked at lie outside of their images or have no area, the first in ",
        objects.first_outside, ": no prior matches them, so ",
        all ? "nothing is learned and the loss stays 0" : "nothing is learned from them",
        "; are corners in pixels of another image, or x and y exchanged?");
  }
  if (source.top_size() < 2) return;
  for (const int reader : net.readers_of(layer, source.top(1))) {
    const LayerParameter& message = net.layer(reader);
    int64_t classes = 0, background = -1;
    if (message.type() == "MultiBoxLoss" || message.type() == "MultiBoxFocalLoss") {
      classes = message.multibox_loss_param().num_classes();
      background = message.multibox_loss_param().background_label_id();
    } else if (message.type() == "DetectionEvaluate") {
      classes = message.detection_evaluate_param().num_classes();
      background = message.detection_evaluate_param().background_label_id();
    }
    if (classes <= 0) continue;
    for (const auto& [label, record] : objects.labels) {
      if (label >= 0 && label < classes && label != background) continue;
      add(findings, Severity::error, where, "layer \"", source.name(), "\": ", record,
          ", has an object with label ", label, ", but ",
          label == background
              ? cat("that is the background of \"", message.name(), "\" (background_label_id): ",
                    "number the objects from 1 in the label map, and make the database anew")
              : cat("labels of \"", message.name(), "\" are below num_classes: ", classes,
                    ", the background included: set num_classes: ", label + 1,
                    " or number the classes anew"));
      break;
    }
  }
}

}  // namespace crema
