#include "net/prototxt/upgrade.h"

#include <algorithm>

#include "base/error.h"
#include "net/prototxt/upgrade_layers.h"

namespace crema {

namespace {

void note(Upgrade* upgrade, Severity severity, std::string line) {
  upgrade->notes.push_back({severity, std::move(line)});
}

// The three lines that Caffe's tools print around each step, with how to get rid of them.
void begin_step(Upgrade* upgrade, const std::string& what, const std::string& file) {
  upgrade->changed = true;
  note(upgrade, Severity::info, cat("Attempting to upgrade ", what, ": ", file));
}

void end_step(Upgrade* upgrade, const std::string& what) {
  note(upgrade, Severity::info, cat("Successfully upgraded ", what));
}

bool has_v0_layers(const NetParameter& net) {
  for (const V1LayerParameter& layer : net.layers()) {
    if (layer.has_layer()) return true;
  }
  return false;
}

void upgrade_v0(NetParameter* net, const std::string& file, const Locate& where, Upgrade* upgrade) {
  begin_step(upgrade, "input file specified using deprecated V0LayerParameter", file);
  const std::vector<std::string> ignored = upgrade_v0_layers(net, &upgrade->origins, where);
  for (const std::string& line : ignored) note(upgrade, Severity::error, line);
  if (ignored.empty()) {
    end_step(upgrade, "file specified using deprecated V0LayerParameter");
  } else {
    note(upgrade, Severity::error,
         "Warning: had one or more problems upgrading V0NetParameter to "
         "NetParameter (see above); continuing anyway.");
  }
  note(upgrade, Severity::warning,
       cat(where("layers[0]"),
           ": the V0 format may be dropped one day: upgrade_net_proto_text (for weights "
           "upgrade_net_proto_binary) OLD NEW writes the file in today's"));
}

void upgrade_transforms(NetParameter* net, const std::string& file, const Locate& where,
                        Upgrade* upgrade) {
  const int first = move_transform_fields(net);
  if (first < 0) return;
  begin_step(upgrade, "input file specified using deprecated transformation parameters", file);
  end_step(upgrade, "file specified using deprecated data transformation parameters.");
  note(upgrade, Severity::warning,
       cat(where(upgrade->origins[static_cast<size_t>(first)]),
           ": scale, mean_file, crop_size and mirror belong into transform_param"));
}

void upgrade_v1(NetParameter* net, const std::string& file, const Locate& where, Upgrade* upgrade) {
  if (net->layers_size() == 0) return;
  if (net->layer_size() > 0) {
    fail(where("layer[0]"),
         ": this file has both \"layer\" blocks and old \"layers\" blocks (the first one: ",
         where("layers[0]"), "); write all of them as \"layer\"");
  }
  begin_step(upgrade, "input file specified using deprecated V1LayerParameter", file);
  upgrade_v1_layers(net);
  end_step(upgrade, "file specified using deprecated V1LayerParameter");
}

// Net-level inputs become one Input layer at the start.
void upgrade_inputs(NetParameter* net, const std::string& file, const Locate& where,
                    Upgrade* upgrade) {
  if (net->input_size() == 0) {
    if (net->input_dim_size() + net->input_shape_size() > 0) {
      note(upgrade, Severity::warning,
           cat(where(net->input_dim_size() > 0 ? "input_dim[0]" : "input_shape[0]"),
               ": a shape without an input has no effect; write input: \"data\" before it"));
    }
    return;
  }
  begin_step(upgrade, "input file specified using deprecated input fields", file);
  const std::string input = where("input[0]");
  constexpr int kAxes = 4;
  const bool by_shape = net->input_shape_size() > 0;
  const int shapes = by_shape ? net->input_shape_size() : net->input_dim_size() / kAxes;
  if (shapes != net->input_size() || (!by_shape && net->input_dim_size() % kAxes != 0)) {
    fail(where("input[0]"), ": ", net->input_size(), " input(s) need ",
         by_shape ? cat("as many input_shape blocks, found ", shapes)
                  : cat(net->input_size() * kAxes, " numbers of input_dim, found ",
                        net->input_dim_size(),
                        "; for other than four axes write input_shape { dim: ... }"));
  }
  LayerParameter layer;
  layer.set_name("input");
  layer.set_type("Input");
  for (int i = 0; i < net->input_size(); ++i) {
    layer.add_top(net->input(i));
    BlobShape* shape = layer.mutable_input_param()->add_shape();
    if (by_shape) {
      *shape = net->input_shape(i);
    } else {
      for (int axis = 0; axis < kAxes; ++axis) shape->add_dim(net->input_dim(i * kAxes + axis));
    }
  }
  net->mutable_layer()->Add(std::move(layer));
  for (int i = net->layer_size() - 1; i > 0; --i) net->mutable_layer()->SwapElements(i, i - 1);
  net->clear_input();
  net->clear_input_shape();
  net->clear_input_dim();
  upgrade->origins.insert(upgrade->origins.begin(), "input[0]");
  end_step(upgrade, "file specified using deprecated input fields.");
  note(upgrade, Severity::warning,
       cat(input, ": an Input layer says the same: layer { type: \"Input\" ... }"));
}

// Statistics are not learned, whatever param blocks say. Fewer blocks than there are blobs are of
// NVCaffe, which ignores them: in its older versions the first two were for scale and bias.
void upgrade_batch_norms(NetParameter* net, const std::string& file, const Locate& where,
                         Upgrade* upgrade) {
  constexpr int kStatistics = 3, kBlobs = 5;
  bool found = false;
  for (int i = 0; i < net->layer_size(); ++i) {
    LayerParameter& layer = *net->mutable_layer(i);
    if (layer.type() != "BatchNorm" || layer.param_size() == 0) continue;
    found = found || layer.param_size() == kStatistics;
    for (int k = 0; k < std::min(layer.param_size(), kStatistics); ++k) {
      ParamSpec& param = *layer.mutable_param(k);
      if (layer.param_size() != kStatistics && param.lr_mult() != 0)
        note(upgrade, Severity::warning,
             cat(where(cat(upgrade->origins[i], ".param[", k, "]")), ": layer \"", layer.name(),
                 "\": lr_mult has no effect on BatchNorm's statistics, which are measured, not "
                 "learned"));
      param.set_lr_mult(0);
      param.set_decay_mult(0);
    }
    if (layer.param_size() == kBlobs) continue;
    for (int k = kStatistics; k < layer.param_size(); ++k) {
      layer.mutable_param(k)->clear_lr_mult();
      layer.mutable_param(k)->clear_decay_mult();
    }
  }
  if (!found) return;
  begin_step(upgrade, "batch norm layers using deprecated params", file);
  end_step(upgrade, "batch norm layers using deprecated params.");
}

// Current data layers keep these fields only for old weight files: neither Caffe nor Crema reads
// them.
void warn_of_fields_without_effect(const NetParameter& net, const Locate& where, Upgrade* upgrade) {
  for (int i = 0; i < net.layer_size(); ++i) {
    const LayerParameter& layer = net.layer(i);
    for (const char* block : {"data_param", "image_data_param", "window_data_param"}) {
      const auto* field = LayerParameter::descriptor()->FindFieldByName(block);
      if (!layer.GetReflection()->HasField(layer, field)) continue;
      const auto& param = layer.GetReflection()->GetMessage(layer, field);
      for (const char* name : {"scale", "mean_file", "crop_size", "mirror"}) {
        const auto* old = field->message_type()->FindFieldByName(name);
        if (!param.GetReflection()->HasField(param, old)) continue;
        note(upgrade, Severity::warning,
             cat(where(cat(upgrade->origins[i], ".", block, ".", name)), ": layer \"", layer.name(),
                 "\": ", block, ".", name, " has no effect; write it inside transform_param { }"));
      }
    }
  }
}

}  // namespace

Upgrade upgrade_net(NetParameter* net, const std::string& file, const Locate& where) {
  const Locate place = where ? where : [&file](const std::string&) { return file; };
  Upgrade upgrade;
  const bool old = net->layers_size() > 0;
  for (int i = 0; i < (old ? net->layers_size() : net->layer_size()); ++i) {
    upgrade.origins.push_back(cat(old ? "layers[" : "layer[", i, "]"));
  }
  if (has_v0_layers(*net)) upgrade_v0(net, file, place, &upgrade);
  upgrade_transforms(net, file, place, &upgrade);
  upgrade_v1(net, file, place, &upgrade);
  upgrade_inputs(net, file, place, &upgrade);
  upgrade_batch_norms(net, file, place, &upgrade);
  rename_fork_fields(net, upgrade.origins, place);
  unfold_layers(net, &upgrade.origins, place);
  warn_of_fields_without_effect(*net, place, &upgrade);
  return upgrade;
}

void write_notes(Log& log, const std::vector<Note>& notes) {
  for (const Note& note : notes) {
    log.write(note.severity, std::source_location::current(), note.line);
  }
}

}  // namespace crema
