#include "net/whitening.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "kernels/core/threads.h"
#include "net/graph/filter.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

constexpr int64_t kImages = 5000;  // enough for a covariance of patches

bool whitens(const Parameter& parameter) {
  return parameter.filler && !parameter.given && parameter.filler->type() == "whitening";
}

// Adds p p^T of all patches of images (N, C, H, W) with this kernel to `sum`, a square matrix.
void add_patches(const std::vector<float>& images, const Shape& shape, int64_t kernel_height,
                 int64_t kernel_width, std::vector<double>& sum) {
  const int64_t channels = shape[1], height = shape[2], width = shape[3];
  const int64_t side = channels * kernel_height * kernel_width, plane = height * width;
  std::vector<int64_t> offsets;
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t y = 0; y < kernel_height; ++y) {
      for (int64_t x = 0; x < kernel_width; ++x) offsets.push_back(c * plane + y * width + x);
    }
  }
  const int64_t rows = height - kernel_height + 1, columns = width - kernel_width + 1;
  RegionError error;
#pragma omp parallel
  {
    std::vector<double> mine;
    error.run([&] { mine.resize(sum.size(), 0); });
#pragma omp for schedule(static)
    for (int64_t image = 0; image < shape[0]; ++image) {
      if (mine.empty()) continue;
      for (int64_t y = 0; y < rows; ++y) {
        const float* const from = images.data() + image * channels * plane + y * width;
        // An element of all patches of a row of the image is a run of that row.
        for (int64_t i = 0; i < side; ++i) {
          for (int64_t j = i; j < side; ++j) {
            const float *a = from + offsets[i], *b = from + offsets[j];
            float product = 0;
#pragma omp simd reduction(+ : product)
            for (int64_t x = 0; x < columns; ++x) product += a[x] * b[x];
            mine[i * side + j] += static_cast<double>(product);
          }
        }
      }
    }
#pragma omp critical
    for (size_t i = 0; i < mine.size(); ++i) sum[i] += mine[i];
  }
  error.rethrow();
}

// The filters, one per row.
std::vector<float> filters_of(std::vector<double> covariance, const Shape& shape, float epsilon) {
  const int64_t side = shape.count(1), half = shape[0] / 2;
  for (int64_t i = 0; i < side; ++i) {
    for (int64_t j = 0; j < i; ++j) covariance[i * side + j] = covariance[j * side + i];
  }
  std::vector<double> values;
  const std::vector<double> vectors = eigenvectors(std::move(covariance), side, &values);
  std::vector<float> filters(static_cast<size_t>(shape.count()));
  for (int64_t i = 0; i < half; ++i) {
    const double scale = 1 / std::sqrt(std::max(values[i], 0.0) + static_cast<double>(epsilon));
    for (int64_t j = 0; j < side; ++j) {
      const auto value = static_cast<float>(scale * vectors[i * side + j]);
      filters[i * side + j] = value;
      filters[(half + i) * side + j] = -value;
    }
  }
  return filters;
}

void check_shapes(const Shape& filters, const Shape& bottom) {
  require(bottom.axes() == 4 && filters.axes() == 4 && filters[1] == bottom[1],
          "filler \"whitening\" fills a Convolution of images, without groups: its filters are ",
          filters.brief(), " and its bottom ", bottom.brief());
  require(bottom[2] >= filters[2] && bottom[3] >= filters[3], "the kernel is larger than ",
          bottom.brief());
}

// Speaks and keeps data on the GPU no more while it lives: a net that only measures is no news.
class Quietly {
 public:
  explicit Quietly(Context& context)
      : context_(context), log_(context.log()), resident_(context.resident) {
    context_.set_log(silent_log());
    context_.resident = false;
  }
  ~Quietly() {
    context_.set_log(log_);
    context_.resident = resident_;
  }
  Quietly(const Quietly&) = delete;

 private:
  Context& context_;
  Log& log_;
  bool resident_;
};

// Returns the source of the filters.
std::string fill_one(Net& net, const NetParameter& text, const Parameter& parameter) {
  NetOptions options = net.options();
  NetParameter above = text;
  above.clear_layer();
  std::string bottom;
  std::vector<int> kept;
  const NetParameter filtered = filter_net(text, options.state, silent_log(), &kept);
  for (int i = 0; i < filtered.layer_size(); ++i) {
    if (filtered.layer(i).name() != parameter.layer) continue;
    bottom = filtered.layer(i).bottom(0);
    for (int j = 0; j < kept[i]; ++j) *above.add_layer() = text.layer(j);
  }
  const Quietly quietly(net.context());
  options.keep_blobs = true;
  options.share = &net;
  options.arena = nullptr;
  options.histories = 0;
  Net measured(net.context(), above, options);
  const Shape& filters = parameter.shape;
  std::vector<double> covariance(static_cast<size_t>(filters.count(1) * filters.count(1)), 0);
  int64_t patches = 0, images = 0;
  for (uint64_t pass = 0; images < kImages; ++pass) {
    measured.forward(pass);
    const Tensor blob = measured.blob(bottom);
    const Shape& shape = blob.shape();
    check_shapes(filters, shape);
    add_patches(to_floats(net.context(), blob), shape, filters[2], filters[3], covariance);
    images += shape[0];
    patches += shape[0] * (shape[2] - filters[2] + 1) * (shape[3] - filters[3] + 1);
  }
  for (double& value : covariance) value /= static_cast<double>(patches);
  const std::vector<float> values =
      filters_of(std::move(covariance), filters, parameter.filler->epsilon());
  from_floats(net.context(), values.data(), parameter.data);
  return cat(patches, " patches of ", images, " images");
}

}  // namespace

void fill_from_data(Net& net, const NetParameter& text) {
  const auto& layers = net.graph().net.layer();
  const bool fed = std::any_of(layers.begin(), layers.end(),
                               [](const LayerParameter& layer) { return layer.type() == "Input"; });
  for (const Parameter& parameter : net.parameters()) {
    if (!whitens(parameter)) continue;
    if (fed) {
      net.context().log().warning(
          cat("layer \"", parameter.layer,
              "\": filler \"whitening\" cannot see data that the caller gives to Input layers: "
              "its filters are those for white data"));
      continue;
    }
    try {
      const std::string from = fill_one(net, text, parameter);
      net.context().log().info(cat("Filled layer \"", parameter.layer, "\" by whitening ", from));
    } catch (const DeviceLost&) {
      throw;
    } catch (const Error& error) {
      fail("layer \"", parameter.layer, "\": ", error.what());
    }
    net.parameters_changed();
  }
}

}  // namespace crema
