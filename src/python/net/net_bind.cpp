#include <pybind11/stl.h>

#include "base/error.h"
#include "net/graph/filter.h"
#include "net/prototxt/net_input.h"
#include "python/bindings.h"
#include "python/init_once.h"
#include "python/mode.h"
#include "python/net/layer_view.h"
#include "python/net/net_object.h"
#include "python/python_layer.h"

namespace crema::python {

namespace py = pybind11;

namespace {

// Text, or what has a path (pathlib); files to load may be several.
std::string path_of(const py::handle& path) {
  const auto text = py::reinterpret_steal<py::object>(PyOS_FSPath(path.ptr()));
  if (!text) throw py::error_already_set();
  if (py::isinstance<py::bytes>(text)) return checked_path(text.cast<std::string>());
  const auto bytes = py::reinterpret_steal<py::bytes>(PyUnicode_EncodeFSDefault(text.ptr()));
  if (!bytes) throw py::error_already_set();
  return checked_path(bytes);
}

std::string weights_of(const py::object& weights) {
  if (weights.is_none()) return "";
  if (!py::isinstance<py::list>(weights) && !py::isinstance<py::tuple>(weights))
    return path_of(weights);
  std::vector<std::string> files;
  for (const py::handle& file : weights) files.push_back(path_of(file));
  return join(files, ",");
}

std::vector<std::string> stages_of(const py::object& stages) {
  if (stages.is_none()) return {};
  if (py::isinstance<py::str>(stages)) return {stages.cast<std::string>()};
  std::vector<std::string> found;
  for (const py::handle& stage : py::iter(stages)) {
    if (!py::isinstance<py::str>(stage)) throw py::type_error("stages: each is a text");
    found.push_back(stage.cast<std::string>());
  }
  return found;
}

std::shared_ptr<NetObject> open_net(const py::object& file, int phase, int level,
                                    const py::object& stages, const py::object& weights,
                                    bool planned, const std::string& precision) {
  NetFormat format;
  format.phase = phase;
  format.level = level;
  format.stages = stages_of(stages);
  format.weights = weights_of(weights);
  format.planned = planned;
  format.precision = precision;
  return NetObject::open(path_of(file), format);
}

std::shared_ptr<NetObject> open_net_with_weights(const py::object& file, const py::object& weights,
                                                 int phase, bool planned,
                                                 const std::string& precision) {
  return open_net(file, phase, 0, py::none(), weights, planned, precision);
}

std::shared_ptr<NetObject> open_net_of_2014(const py::object& file, const py::str& weights) {
  const int phase = py::module_::import("crema.pycaffe").attr("_phase").cast<int>();
  return open_net(file, phase, 0, py::none(), weights, false, "");
}

std::vector<std::shared_ptr<BlobObject>> net_blobs(NetObject& net) {
  std::vector<std::shared_ptr<BlobObject>> blobs;
  for (size_t i = 0; i < net.map().blobs.size(); ++i)
    blobs.push_back(make_net_blob(net.shared_from_this(), static_cast<int>(i)));
  return blobs;
}

// A layer that is written in Python is shown as the object of its author's class.
py::list net_layers(NetObject& net) {
  py::list layers;
  for (int i = 0; i < net.layers(); ++i) layers.append(LayerView{net.shared_from_this(), i});
  for (const Node& node : net.net().graph().nodes) {
    if (node.message.type() != "Python") continue;
    const py::object instance = python_instance(net.net(), node);
    if (!instance.is_none()) layers[node.members.back()] = instance;
  }
  return layers;
}

template <typename Entry>
std::vector<std::string> names_of_entries(const std::vector<Entry>& entries) {
  std::vector<std::string> names;
  for (const Entry& entry : entries) names.push_back(entry.name);
  return names;
}

const NetMap::Layer& layer_at(NetObject& net, int layer) {
  require(layer >= 0 && layer < net.layers(), "there is no layer ", layer, ": the net has ",
          net.layers(), ", numbered from 0");
  return net.map().layers[layer];
}

std::string net_text(NetObject& net) {
  return cat("<Net \"", net.net().name(), "\", ", net.layers(), " layers, phase ",
             net.net().training() ? "TRAIN" : "TEST", ">");
}

// The net of a file as it is made for a phase.
std::string net_text_for(const py::object& file, int phase, int level, const py::object& stages) {
  require(phase == TRAIN || phase == TEST, "phase ", phase,
          ": expected crema.TRAIN (0) or crema.TEST (1)");
  NetState outer;
  outer.set_level(level);
  for (const std::string& stage : stages_of(stages)) outer.add_stage(stage);
  const std::shared_ptr<Context> context = make_context();
  const NetInput input =
      read_net_input(path_of(file), static_cast<Phase>(phase), outer, context->log());
  return filter_net(input.net, input.options.state, context->log()).DebugString();
}

void bind_layer_view(py::module_& module) {
  py::class_<LayerView>(module, "NetLayer", "A layer of a net.")
      .def_property_readonly("name", &LayerView::name, "Its name in the file.")
      .def_property_readonly("type", &LayerView::type, "Its type, such as \"Convolution\".")
      .def_property_readonly("blobs", &LayerView::blobs,
                             "Its parameters, a list of Blob: weights first, then the bias.")
      .def("__repr__", [](const LayerView& layer) {
        return cat("<", layer.type(), " layer \"", layer.name(), "\">");
      });
}

void add_passes(py::class_<NetObject, std::shared_ptr<NetObject>>& net) {
  net.def("_forward", &NetObject::forward, py::arg("first"), py::arg("last"),
          "Runs the layers of these indices, both included; returns the sum of their losses.")
      .def(
          "_backward", [](NetObject& object, int first, int last) { object.backward(first, last); },
          py::arg("first"), py::arg("last"),
          "Runs the layers of these indices backward, from the higher to the lower.")
      .def(
          "_deconv",
          [](NetObject& object, int first, int last, bool guided) {
            object.backward(first, last, guided ? ReLURule::guided : ReLURule::deconv);
          },
          py::arg("first"), py::arg("last"), py::arg("guided"),
          "The same with ReLUs that rectify the gradient.")
      .def("clear_param_diffs", &NetObject::clear_param_diffs,
           "Sets the gradients of all parameters to zero; backward() adds to them.")
      .def("reshape", &NetObject::reshape,
           "Gives all blobs the shapes that follow from those of the inputs. Error when a layer "
           "cannot take them; then all inputs keep the shapes that they had.")
      .def(
          "copy_from",
          [](NetObject& object, const py::object& path) { object.load(path_of(path)); },
          py::arg("path"),
          "Loads weights from a .caffemodel or .h5 file, matched by the layers' names.")
      .def(
          "load_hdf5",
          [](NetObject& object, const py::object& path) { object.load(path_of(path)); },
          py::arg("path"), "Loads weights from an .h5 file.")
      .def(
          "share_with",
          [](NetObject& object, NetObject& other) { object.share_with(other.shared_from_this()); },
          py::arg("other").none(false),
          "Uses the other net's parameters for layers of the same name, from now on.")
      .def(
          "save",
          [](NetObject& object, const py::object& path) { object.save(path_of(path), false); },
          py::arg("path"), "Writes the weights as a .caffemodel; the file is complete or absent.")
      .def(
          "save_hdf5",
          [](NetObject& object, const py::object& path) { object.save(path_of(path), true); },
          py::arg("path"), "Writes the weights as an .h5 file; the file is complete or absent.")
      .def("_set_input_arrays", &NetObject::set_input_arrays, py::arg("data"), py::arg("labels"),
           py::arg("layer") = "");
  const auto callback = [&](const char* name, NetObject::Moment moment, const char* what) {
    net.def(
        name,
        [moment](NetObject& object, py::function function) {
          object.add_callback(moment, std::move(function));
        },
        py::arg("callback"), what);
  };
  callback("before_forward", NetObject::before_forward,
           "Calls callback(layer index) before each layer's forward.");
  callback("after_forward", NetObject::after_forward,
           "Calls callback(layer index) after each layer's forward.");
  callback("before_backward", NetObject::before_backward,
           "Calls callback(layer index) before each layer's backward.");
  callback("after_backward", NetObject::after_backward,
           "Calls callback(layer index) after each layer's backward.");
}

void add_lists(py::class_<NetObject, std::shared_ptr<NetObject>>& net) {
  net.def_property_readonly(
         "name", [](NetObject& object) { return object.net().name(); },
         "The name that the file gives the net.")
      .def_property_readonly(
          "phase", [](NetObject& object) { return object.net().training() ? 0 : 1; },
          "crema.TRAIN or crema.TEST.")
      .def_property_readonly("planned", &NetObject::planned, "Opened with planned=True.")
      .def_property_readonly(
          "_message",
          [](NetObject& object) { return py::bytes(object.net().graph().net.SerializeAsString()); })
      .def_property_readonly("_keeps_blobs", &NetObject::keeps)
      .def_property_readonly("_blob_list", &net_blobs)
      .def_property_readonly("_layer_list", &net_layers)
      .def("_layer_blobs",
           [](NetObject& object, int layer) {
             layer_at(object, layer);
             return LayerView{object.shared_from_this(), layer}.blobs();
           })
      .def_property_readonly("_blob_names",
                             [](NetObject& object) { return names_of_entries(object.map().blobs); })
      .def_property_readonly(
          "_layer_names", [](NetObject& object) { return names_of_entries(object.map().layers); })
      .def_property_readonly("_inputs", [](NetObject& object) { return object.map().inputs; })
      .def_property_readonly("_outputs", [](NetObject& object) { return object.map().outputs; })
      .def_property_readonly("_blob_loss_weights",
                             [](NetObject& object) {
                               std::vector<float> weights;
                               for (const NetMap::Blob& blob : object.map().blobs)
                                 weights.push_back(blob.loss_weight);
                               return weights;
                             })
      .def("_bottom_ids",
           [](NetObject& object, int layer) { return layer_at(object, layer).bottoms; })
      .def("_top_ids", [](NetObject& object, int layer) { return layer_at(object, layer).tops; })
      .def("__repr__", &net_text);
}

}  // namespace

void bind_net(py::module_& module) {
  bind_layer_view(module);
  py::class_<NetObject, std::shared_ptr<NetObject>> net(
      module, "Net", py::dynamic_attr(),
      "A net that computes.\n\n"
      "network_file: a prototxt. phase: crema.TRAIN or crema.TEST, which with level and stages "
      "chooses among its layers. weights: a .caffemodel or .h5 file, or a list of them, to load.\n"
      "planned: layers are fused and memory is used again, which is faster and smaller; only "
      "inputs "
      "and outputs can then be seen. precision: \"fp32\", or on a GPU \"tf32\", \"bf16\", "
      "\"fp16\".\n"
      "Error with file:line:column for a mistake in the file.\n\n"
      "A net is used by one thread at a time: another one waits.");
  define_init(net, &open_net, py::arg("network_file"), py::arg("phase"), py::arg("level") = 0,
              py::arg("stages") = py::none(), py::arg("weights") = py::none(),
              py::arg("planned") = false, py::arg("precision") = "");
  define_init(net, &open_net_with_weights, py::arg("network_file"), py::arg("weights"),
              py::arg("phase"), py::arg("planned") = false, py::arg("precision") = "",
              "The form of old scripts: file, weights, phase.");
  define_init(net, &open_net_of_2014, py::arg("network_file"), py::arg("weights"),
              "The form of scripts from 2014, after set_phase_test() or set_phase_train().");
  add_passes(net);
  add_lists(net);
  module.def(
      "net_text", &net_text_for, py::arg("network_file"), py::arg("phase"), py::arg("level") = 0,
      py::arg("stages") = py::none(),
      "The net of a file as it is made for a phase, as text: includes, variables and repeats "
      "are\nwritten out, old fields in today's form, and layers of other phases are left out. "
      "Nothing is computed.");
}

}  // namespace crema::python
