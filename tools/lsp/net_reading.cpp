#include "tools/lsp/net_reading.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "layers/layer_facts.h"
#include "net/graph/taken_layers.h"
#include "tools/inputs/assume.h"

namespace crema {
namespace {

constexpr int kMostMistakes = 20;  // each one costs another time
constexpr size_t kMostValues = 5;

template <typename Names>
bool has_name(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Code that comes with a file does not run because an editor opens it.
bool runs_code(const LayerParameter& layer) { return layer.type() == "Python"; }

// Without a source the file is a part of a net.
bool can_be_made(const NetParameter& net) {
  return std::any_of(net.layer().begin(), net.layer().end(),
                     [](const LayerParameter& layer) { return layer.bottom_size() == 0; });
}

// Drops a layer and those that read what only it makes. kept: the layers' indices before any was dropped.
void drop(int dropped, NetParameter* net, std::vector<int>* kept) {
  std::set<std::string> made, lost;
  std::vector<int> indices;
  std::vector<std::unique_ptr<LayerParameter>> layers = take_layers(net);
  for (size_t i = 0; i < layers.size(); ++i) {
    const LayerParameter& layer = *layers[i];
    const bool reads_lost =
        std::any_of(layer.bottom().begin(), layer.bottom().end(),
                    [&](const std::string& bottom) { return lost.count(bottom) > 0; });
    const bool stays = static_cast<int>(i) != dropped && !reads_lost;
    for (const std::string& top : layer.top()) {
      if (stays) {
        made.insert(top);
        lost.erase(top);
      } else if (made.count(top) == 0) {
        lost.insert(top);
      }
    }
    if (!stays) continue;
    net->mutable_layer()->AddAllocated(layers[i].release());
    indices.push_back((*kept)[i]);
  }
  kept->swap(indices);
}

}  // namespace

std::string name_of(const Document& document) {
  return document.path().empty() ? "untitled" : document.path();
}

Settings settings_of(const std::string& name, const OpenFiles& files, ReadingLog* log) {
  ExpandHooks hooks;
  hooks.unsaved = [&files, log](const std::string& path) {
    if (log) log->files.insert(normal_path(path));
    return files.unsaved(path);
  };
  if (log) {
    const auto index = std::make_shared<std::map<size_t, size_t>>();
    hooks.computed = [name, log, index](const WrittenFile& file, size_t begin, size_t end,
                                        const Literal& value) {
      if (file.path != name) return;
      std::vector<ComputedValue>& all = log->values;
      const auto [at, is_new] = index->emplace(begin, all.size());
      if (is_new) all.push_back({begin, end, {}});
      std::vector<std::string>& values = all[at->second].values;
      if (values.size() >= kMostValues) return;
      const std::string text = written(value);
      if (!has_name(values, text)) values.push_back(text);
    };
  }
  Settings settings;
  settings.set_hooks(std::move(hooks));
  return settings;
}

int MadeNet::input_layer(int i) const {
  const LayerParameter& layer = graph->net.layer(i);
  for (int k = 0; k < input.net.layer_size(); ++k) {
    if (input.net.layer(k).name() == layer.name() && input.net.layer(k).type() == layer.type())
      return k;
  }
  return -1;
}

NetReading::NetReading(std::string name, const std::string& text, const OpenFiles& files,
                       ReadingLog* log)
    : name_(std::move(name)) {
  require(!trim(text).empty(), name_, ": is empty");
  Settings settings = settings_of(name_, files, log);
  file_ = std::make_shared<const NetFile>(parse_net_text(text, name_, &settings));
}

MadeNet NetReading::made_in(Phase phase, Log& log) const {
  MadeNet net;
  net.input = net_input_of(file_, phase, {}, log);
  net.input.options.folder = folder_of(name_);
  if (can_be_made(net.input.net)) make(&net, log);
  return net;
}

// The file may be for the other phase, or for a stage, only.
bool NetReading::is_of_another_state(const LayerError& error) const {
  if (error.missing.empty()) return false;
  if (!error.has_data || lost_.count(error.missing) > 0) return true;
  // Names with variables are not known.
  for (const std::string& blob : lost_) {
    if (blob.find('$') != std::string::npos) return true;
  }
  // A layer in place makes nothing.
  const auto& all = file_->net.layer();
  return std::any_of(all.begin(), all.end(), [&](const LayerParameter& layer) {
    return has_name(layer.top(), error.missing) && !has_name(layer.bottom(), error.missing);
  });
}

// What is wrong only with the assumed shapes is no mistake of the file: with other shapes it has other words.
void NetReading::make(MadeNet* net, Log& log) const {
  std::vector<int> assumed;
  for (int i = 0; i < net->input.net.layer_size(); ++i) {
    const LayerParameter& layer = net->input.net.layer(i);
    if (layer.bottom_size() == 0 && layer.type() != "Input") assumed.push_back(i);
  }
  try {
    // Layers that lack their bottoms are no data.
    std::map<int, LayerParameter> lacking;
    for (const int i : assumed) {
      LayerParameter* const layer = net->input.net.mutable_layer(i);
      const LayerKind kind = facts_of(layer->type()).kind;
      const bool is_source = kind == LayerKind::source || kind == LayerKind::other;
      if (is_source && !runs_code(*layer)) continue;
      lacking[i] = *layer;
      layer->set_type("Input");
      for (int k = 0; k < layer->top_size(); ++k)
        layer->mutable_input_param()->add_shape()->add_dim(1);
    }
    SourceReplacer replacer(silent_log(), "default", 0);
    replacer.replace(net->input.net, net->input.options.where);
    replacer.finish();
    for (const auto& [i, layer] : lacking) *net->input.net.mutable_layer(i) = layer;
  } catch (const Error&) {
    return;  // shapes that only a flag can give
  }

  GraphOptions options;
  options.training = net->input.options.state.phase() == TRAIN;
  options.folder = net->input.options.folder;
  const auto mistakes_of = [&](const NetParameter& whole, Log& to, std::optional<Graph>* graph) {
    std::optional<NetParameter> left;  // without the layers that are wrong
    std::vector<LayerMistake> mistakes;
    std::vector<int> kept(static_cast<size_t>(whole.layer_size()));
    for (size_t i = 0; i < kept.size(); ++i) kept[i] = static_cast<int>(i);
    const auto leave_out = [&](int layer) {
      if (!left) left = whole;
      drop(layer, &*left, &kept);
    };
    for (int i = 0; i < (left ? *left : whole).layer_size();) {
      if (runs_code((left ? *left : whole).layer(i))) {
        leave_out(i);
      } else {
        ++i;
      }
    }
    options.where = [&](int layer) {
      return net->input.options.where(kept[static_cast<size_t>(layer)]);
    };
    net->context->set_log(to);
    while (true) {
      try {
        Graph made = build_graph(*net->context, left ? *left : whole, options);
        if (graph) *graph = std::move(made);
        break;
      } catch (const LayerError& error) {
        if (!is_of_another_state(error)) mistakes.push_back({error.what(), error.missing});
        leave_out(error.layer);
      } catch (const Error& error) {  // The net as a whole is wrong.
        mistakes.push_back({error.what(), ""});
        break;
      }
      if (mistakes.size() >= kMostMistakes || left->layer_size() == 0) break;
    }
    net->context->set_log(silent_log());
    return mistakes;
  };
  net->context = std::make_unique<Context>(Device::cpu);
  std::vector<LayerMistake> mistakes = mistakes_of(net->input.net, log, &net->graph);
  if (mistakes.empty()) return;
  NetParameter other = net->input.net;
  for (const int i : assumed) {
    LayerParameter* const layer = other.mutable_layer(i);
    if (layer->type() != "Input") continue;
    for (BlobShape& shape : *layer->mutable_input_param()->mutable_shape()) {
      for (int axis = 0; axis < shape.dim_size(); ++axis)
        shape.set_dim(axis, shape.dim(axis) + (axis < 2 ? 1 : 16));
    }
  }
  std::set<std::string> again;
  if (!assumed.empty()) {
    for (const LayerMistake& mistake : mistakes_of(other, silent_log(), nullptr))
      again.insert(mistake.text);
  }
  for (LayerMistake& mistake : mistakes) {
    if (assumed.empty() || again.count(mistake.text) > 0)
      net->mistakes.push_back(std::move(mistake));
  }
}

}  // namespace crema
