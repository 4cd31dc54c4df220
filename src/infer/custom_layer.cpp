// Layers of the program's own, whose functions are in C.
#include <algorithm>
#include <cstring>

#include "infer/calls.h"

namespace crema::c_api {
namespace {

void require_success(const char* problem) {
  if (problem) throw Error(problem);
}

crema_shape shape_of(std::span<const int64_t> extents) {
  crema_shape shape = {};
  if (extents.size() > CREMA_MAX_AXES)
    throw Error("a shape of " + std::to_string(extents.size()) +
                " axes; crema_shape has room for " + std::to_string(CREMA_MAX_AXES));
  shape.axes = static_cast<int>(extents.size());
  std::copy(extents.begin(), extents.end(), shape.extents);
  return shape;
}

// Values that are only read are given as if they could be written: C has one struct for both.
crema_array array_of(const CustomInput& input) {
  return {shape_of(input.shape), input.values.size(), const_cast<float*>(input.values.data())};
}
crema_array array_of(const CustomOutput& output) {
  return {shape_of(output.shape), output.values.size(), output.values.data()};
}
template <typename Blobs>
std::vector<crema_array> arrays_of(const Blobs& blobs) {
  std::vector<crema_array> arrays;
  for (const auto& blob : blobs) arrays.push_back(array_of(blob));
  return arrays;
}

class CLayer final : public CustomLayer {
 public:
  CLayer(const crema_layer_type& type, const CustomLayerSettings& settings)
      : type_(type), tops_(settings.tops) {
    require_success(
        type_.create(type_.user, settings.name.c_str(), settings.text.c_str(), &layer_));
  }
  ~CLayer() override {
    if (type_.destroy) type_.destroy(layer_);
  }
  CLayer(const CLayer&) = delete;
  CLayer& operator=(const CLayer&) = delete;

  std::vector<Parameter> parameters(const std::vector<Shape>& bottoms) override {
    std::vector<Parameter> all;
    for (int index = 0; index < type_.weight_count; ++index)
      all.push_back({shape_by(type_.weight_shape, bottoms, index)});
    return all;
  }
  std::vector<Shape> tops(const std::vector<Shape>& bottoms) override {
    std::vector<Shape> all;
    for (int index = 0; index < tops_; ++index)
      all.push_back(shape_by(type_.top_shape, bottoms, index));
    return all;
  }
  void forward(const Forward& pass) override {
    const std::vector<crema_array> bottoms = arrays_of(pass.bottoms),
                                   weights = arrays_of(pass.parameters),
                                   tops = arrays_of(pass.tops);
    require_success(type_.forward(layer_, bottoms.data(), weights.data(), tops.data()));
  }

 private:
  Shape shape_by(decltype(crema_layer_type::top_shape) function, const std::vector<Shape>& bottoms,
                 int index) const {
    std::vector<crema_shape> given;
    for (const Shape& shape : bottoms) given.push_back(shape_of(shape));
    crema_shape shape = {};
    require_success(function(layer_, given.data(), static_cast<int>(given.size()), index, &shape));
    if (shape.axes < 0 || shape.axes > CREMA_MAX_AXES)
      throw Error("a shape of " + std::to_string(shape.axes) + " axes; expected 0 to " +
                  std::to_string(CREMA_MAX_AXES));
    return {shape.extents, shape.extents + shape.axes};
  }

  crema_layer_type type_;
  int tops_;
  void* layer_ = nullptr;
};

}  // namespace
}  // namespace crema::c_api

extern "C" void crema_layer_type_init(crema_layer_type* type, size_t size) {
  if (!type) return;
  std::memset(static_cast<void*>(type), 0, size);
  type->size = size;
}

extern "C" crema_status crema_register_layer(const crema_layer_type* type) {
  using namespace crema::c_api;
  return guarded(CREMA_INVALID_ARGUMENT, [&] {
    require_pointer(type, "type");
    require(type->size > 0 && type->size <= sizeof *type,
            "type.size is " + std::to_string(type->size) +
                ": call crema_layer_type_init() with sizeof(crema_layer_type), " +
                std::to_string(sizeof *type) + " or, of an older header, less");
    crema_layer_type copy = {};
    std::memcpy(&copy, type, type->size);
    require_pointer(copy.type, "type.type");
    require(copy.create && copy.top_shape && copy.forward,
            "create, top_shape or forward is NULL: each type needs them");
    require(copy.weight_count >= 0 && (copy.weight_count == 0 || copy.weight_shape),
            "weight_count is " + std::to_string(copy.weight_count) +
                ": expected 0, or a number of blobs, and weight_shape, which has their shapes");
    const std::string name = copy.type;
    crema::register_layer(name, [copy](const crema::CustomLayerSettings& settings) {
      return std::make_unique<CLayer>(copy, settings);
    });
  });
}
