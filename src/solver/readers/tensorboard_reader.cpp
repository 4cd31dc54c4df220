#include "solver/readers/tensorboard_reader.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <utility>

#include "base/error.h"
#include "base/png.h"
#include "base/visible.h"
#include "solver/readers/mosaic.h"
#include "solver/readers/named_values.h"

namespace crema {
namespace {

tensorboard::Event at(int64_t iteration) {
  tensorboard::Event event;
  event.set_step(iteration);
  return event;
}

// Tags are UTF-8, as protobuf requires.
tensorboard::Summary::Value* add_value(tensorboard::Event& event, const std::string& tag) {
  tensorboard::Summary::Value* value = event.mutable_summary()->add_value();
  value->set_tag(visible(tag));
  return value;
}

void add_scalar(tensorboard::Event& event, const std::string& tag, double value) {
  add_value(event, tag)->set_simple_value(static_cast<float>(value));
}

void add_scalars(tensorboard::Event& event, const std::string& group, const NamedValues& values) {
  for (const auto& [name, value] : values) add_scalar(event, cat(group, "/", name), value);
}

// From this iteration on, what was written before is outdated.
tensorboard::Event beginning(int64_t iteration) {
  tensorboard::Event event = at(iteration);
  event.mutable_session_log()->set_status(tensorboard::SessionLog::START);
  return event;
}

tensorboard::Event of(const event::Display& display) {
  NamedValues values = {{"loss", display.loss}, {"data_wait", display.data_wait}};
  if (display.iterations_per_second > 0)  // the first has no iterations behind it
    values.emplace_back("iterations_per_second", display.iterations_per_second);
  add_outputs(values, display.outputs);
  tensorboard::Event event = at(display.iteration);
  add_scalars(event, "train", values);
  return event;
}

tensorboard::Event of(const event::TestResult& test) {
  NamedValues values;
  if (test.loss) values.emplace_back("total loss", *test.loss);
  add_outputs(values, test.outputs);
  tensorboard::Event event = at(test.iteration);
  add_scalars(event, test.net > 0 ? cat("test", test.net) : "test", values);
  return event;
}

tensorboard::Event of(const event::Epoch& epoch) {
  NamedValues values = {{"epoch", static_cast<double>(epoch.epoch)}, {"seconds", epoch.seconds}};
  add_outputs(values, epoch.train);
  std::vector<OutputValue> test = epoch.test;
  for (OutputValue& output : test) output.name = "val_" + output.name;
  add_outputs(values, test);
  tensorboard::Event event = at(epoch.iteration);
  add_scalars(event, "epoch", values);
  return event;
}

tensorboard::Event of(const event::Histogram& histogram) {
  tensorboard::Event event = at(histogram.iteration);
  tensorboard::HistogramProto* to = add_value(event, histogram.tag)->mutable_histo();
  to->set_min(histogram.min);
  to->set_max(histogram.max);
  to->set_num(histogram.count);
  to->set_sum(histogram.sum);
  to->set_sum_squares(histogram.sum_of_squares);
  for (const double limit : histogram.limits) to->add_bucket_limit(limit);
  for (const double count : histogram.counts) to->add_bucket(count);
  return event;
}

tensorboard::Event of(const event::Pictures& pictures) {
  tensorboard::Event event = at(pictures.iteration);
  const Picture mosaic = mosaic_of(pictures.pictures);
  tensorboard::Summary::Image* image = add_value(event, pictures.tag)->mutable_image();
  image->set_width(mosaic.width);
  image->set_height(mosaic.height);
  image->set_colorspace(mosaic.channels);
  image->set_encoded_image_string(png_of(mosaic));
  return event;
}

// In a graph's names ':' comes before the number of a top.
std::string graph_name(const std::string& name) {
  std::string clean = visible(name);
  std::replace(clean.begin(), clean.end(), ':', '_');
  return clean;
}

tensorboard::Event of(const event::NetGraph& net) {
  tensorboard::GraphDef graph;
  graph.mutable_versions()->set_producer(1);
  for (const event::NetGraph::Node& layer : net.nodes) {
    tensorboard::NodeDef* node = graph.add_node();
    node->set_name(graph_name(layer.name));
    node->set_op(visible(layer.type));
    for (const event::NetGraph::Input& input : layer.inputs) {
      const std::string& from = graph.node(input.node).name();
      node->add_input(input.top > 0 ? cat(from, ":", input.top) : from);
    }
    for (const std::vector<int64_t>& extents : layer.shapes) {
      auto* shape = (*node->mutable_attr())["_output_shapes"].mutable_list()->add_shape();
      for (const int64_t extent : extents) shape->add_dim()->set_size(extent);
    }
    for (const auto& [name, text] : layer.notes) (*node->mutable_attr())[name].set_s(visible(text));
  }
  tensorboard::Event event = at(0);
  event.set_graph_def(graph.SerializeAsString());
  return event;
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// For the plugin that compares settings.
tensorboard::Event for_hparams(const std::string& tag, const tensorboard::HParamsPluginData& data) {
  tensorboard::Event event = at(0);
  tensorboard::Summary::Value* value = add_value(event, "_hparams_/" + tag);
  value->mutable_metadata()->mutable_plugin_data()->set_plugin_name("hparams");
  value->mutable_metadata()->mutable_plugin_data()->set_content(data.SerializeAsString());
  value->mutable_tensor()->set_dtype(1);
  value->mutable_tensor()->mutable_tensor_shape();
  value->mutable_tensor()->add_float_val(0);
  return event;
}

tensorboard::Event settings_of(const event::Start& start) {
  tensorboard::HParamsPluginData data;
  data.set_version(0);
  auto& hparams = *data.mutable_session_start_info()->mutable_hparams();
  for (const auto& [name, text] : start.settings) {
    tensorboard::HParamValue& value = hparams[name];
    char* end = nullptr;
    const double number = std::strtod(text.c_str(), &end);
    if (text == "true" || text == "false") {
      value.set_bool_value(text == "true");
    } else if (!text.empty() && *end == '\0') {
      value.set_number_value(number);
    } else {
      value.set_string_value(visible(text));
    }
  }
  data.mutable_session_start_info()->set_start_time_secs(seconds_now());
  return for_hparams("session_start_info", data);
}

tensorboard::Event end_of(bool diverged) {
  tensorboard::HParamsPluginData data;
  data.set_version(0);
  data.mutable_session_end_info()->set_status(diverged
                                                  ? tensorboard::SessionEndInfo::STATUS_FAILURE
                                                  : tensorboard::SessionEndInfo::STATUS_SUCCESS);
  data.mutable_session_end_info()->set_end_time_secs(seconds_now());
  return for_hparams("session_end_info", data);
}

}  // namespace

void TensorboardReader::write(const tensorboard::Event& event) {
  using Keep = RecordFile::Keep;
  if (!std::exchange(begun_, true))
    file_.add(tensorboard_record(tensorboard_version()), Keep::always);
  file_.add(tensorboard_record(event), event.has_session_log() ? Keep::always : Keep::if_small);
}

void TensorboardReader::read(const Event& event) {
  if (const auto* start = std::get_if<event::Start>(&event)) {
    write(beginning(start->iteration));
    write(settings_of(*start));
  } else if (const auto* net = std::get_if<event::NetGraph>(&event)) {
    write(of(*net));
  } else if (const auto* display = std::get_if<event::Display>(&event)) {
    waiting_ = of(*display);
  } else if (const auto* rate = std::get_if<event::LearningRate>(&event); rate && waiting_) {
    add_scalar(*waiting_, "train/learning_rate", rate->rate);
    write(*waiting_);
    waiting_.reset();
  } else if (const auto* test = std::get_if<event::TestResult>(&event)) {
    write(of(*test));
  } else if (const auto* epoch = std::get_if<event::Epoch>(&event)) {
    write(of(*epoch));
  } else if (const auto* histogram = std::get_if<event::Histogram>(&event)) {
    write(of(*histogram));
  } else if (const auto* pictures = std::get_if<event::Pictures>(&event);
             pictures && !pictures->pictures.empty()) {
    write(of(*pictures));
  } else if (const auto* back = std::get_if<event::RolledBack>(&event)) {
    write(beginning(back->to));
  } else if (const auto* bad = std::get_if<event::NonFiniteLoss>(&event); bad && bad->stops) {
    tensorboard::Event last = at(bad->iteration);
    add_scalar(last, "train/loss", bad->loss);
    write(last);
    write(end_of(true));
  } else if (std::holds_alternative<event::End>(event)) {
    write(end_of(false));
  } else if (const auto* final = std::get_if<event::FinalLoss>(&event)) {
    tensorboard::Event last = at(final->iteration);
    add_scalar(last, "train/loss", final->loss);
    write(last);
  }
}

}  // namespace crema
