#include "exchange/onnx/training_text.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "exchange/onnx/metadata.h"
#include "net/net_text.h"

namespace crema {

namespace {

// The blob with scores, before a softmax, which the loss has.
std::string scores_of(const ImportedNet& imported, NetParameter* net) {
  require(imported.outputs.size() == 1, "the model has ", imported.outputs.size(),
          " results; a softmax loss learns from one");
  const std::string output = imported.outputs.begin()->second;
  for (int i = net->layer_size() - 1; i >= 0; --i) {
    const LayerParameter& layer = net->layer(i);
    if (std::find(layer.top().begin(), layer.top().end(), output) == layer.top().end()) continue;
    if (layer.type() != "Softmax") break;
    const std::string scores = layer.bottom(0);
    net->mutable_layer()->DeleteSubrange(i, 1);
    return scores;
  }
  return output;
}

Shape shape_of(const NetParameter& net, const std::string& input) {
  for (const LayerParameter& layer : net.layer()) {
    if (layer.type() != "Input" || layer.top(0) != input) continue;
    const auto& dims = layer.input_param().shape(0).dim();
    return Shape(std::vector<int64_t>(dims.begin(), dims.end()));
  }
  return {};
}

// The same for both phases but for the database.
LayerParameter data_layer(const std::string& blob, const InputPreparation& preparation,
                          Phase phase) {
  LayerParameter layer;
  layer.set_name("data");
  layer.set_type("Data");
  layer.add_top(blob);
  layer.add_top("label");
  layer.add_include()->set_phase(phase);
  *layer.mutable_transform_param() = preparation.transform_param();
  if (preparation.transform_param().ByteSizeLong() == 0) layer.clear_transform_param();
  DataParameter* data = layer.mutable_data_param();
  data->set_source(phase == TRAIN ? "$train" : "$test");
  data->set_backend(DataParameter::LMDB);
  if (phase == TRAIN) data->set_shuffle(true);
  return layer;
}

void add_losses(const std::string& scores, NetParameter* net) {
  const auto add = [&](const char* type, const char* name) {
    LayerParameter* layer = net->add_layer();
    layer->set_name(name);
    layer->set_type(type);
    layer->add_bottom(scores);
    layer->add_bottom("label");
    layer->add_top(name);
    return layer;
  };
  add("Accuracy", "accuracy")->add_include()->set_phase(TEST);
  add("SoftmaxWithLoss", "loss");
}

}  // namespace

std::string training_text(const ImportedNet& imported, const OnnxFile& file) {
  require(imported.inputs.size() == 1, "the model has ", imported.inputs.size(),
          " inputs; data layers fill one");
  NetParameter net = imported.net;
  const std::string scores = scores_of(imported, &net);
  const std::string& input = imported.inputs[0];
  NetParameter trained;
  trained.set_name(net.name());
  const InputPreparation preparation = preparation_in(file.metadata, input, shape_of(net, input));
  for (const Phase phase : {TRAIN, TEST})
    *trained.add_layer() = data_layer(input, preparation, phase);
  for (const LayerParameter& layer : net.layer())
    if (layer.type() != "Input") *trained.add_layer() = layer;
  add_losses(scores, &trained);
  std::string text = net_text(trained);
  // A message holds no variable where a number belongs.
  const std::string backend = "backend: LMDB", batch = "batch_size: $batch ";
  for (size_t at = text.find(backend); at != std::string::npos;
       at = text.find(backend, at + batch.size() + 1))
    text.insert(at, batch);
  return cat("# Databases, as `crema convert_imageset -split 0.8` makes them, and the batch: ",
             "-set train=MY_train_lmdb -set test=MY_val_lmdb -set batch=64.\n",
             preparation.transform_param().ByteSizeLong() > 0
                 ? ""
                 : "# The model does not say how its input is prepared: write transform_param { "
                   "mean_value: ... scale: ... } into both data layers.\n",
             "$train ?= \"my_train_lmdb\"\n$test ?= \"my_val_lmdb\"\n$batch ?= 32\n", text);
}

}  // namespace crema
