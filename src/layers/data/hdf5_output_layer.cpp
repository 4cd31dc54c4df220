// HDF5Output: collects its bottoms over all passes and writes them to an HDF5 file.
//
//   dataset "data", row r  = row r of the first bottoms of all passes, concatenated
//   dataset "label", row r = row r of the second bottoms
//
// Shapes: bottoms data (N, ...) and label (N, ...) with equally many rows, of up to four axes; no
// tops. Both datasets have four axes: missing ones are 1.
//
// Parameters: hdf5_output_param: file_name; an existing file is replaced; a relative path is
// resolved from the working directory.
//
// The rows are kept in host memory as float32 until the net is destroyed; the file is then written
// atomically. A net that ends before its first pass writes none.
//
// Gradient: none; its bottoms get no gradient from it.
#include <array>
#include <memory>
#include <mutex>

#include "base/error.h"
#include "base/files.h"
#include "data/databases/hdf5/hdf5_writer.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

constexpr int kAxes = 4;
constexpr const char* kNames[] = {"data", "label"};

class Hdf5OutputLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::sink};

  ~Hdf5OutputLayer() override {
    try {
      write_file();
    } catch (const Error& problem) {
      log_->error(cat("layer \"", name(), "\": ", problem.what()));
    }
  }

  Arity bottoms() const override { return {2, 2}; }
  Arity tops() const override { return {0, 0}; }
  bool differentiable(int) const override { return false; }
  LayerTraits traits() const override { return {.reads = {false, false}, .works_on_host = true}; }

  void setup(Context& context, const std::vector<Shape>&) override {
    log_ = &context.log();
    const std::string& path = params<HDF5OutputParameter>().file_name();
    require(!path.empty(), "hdf5_output_param needs a `file_name`");
    const AtomicFile can_be_written(path);  // fails here, not after hours
    context.log().info("Writing HDF5 file " + path + " when the net ends");
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const std::lock_guard<std::mutex> lock(rows_->mutex);
    for (size_t i = 0; i < bottoms.size(); ++i) {
      require(bottoms[i].axes() >= 1 && bottoms[i].axes() <= kAxes, kNames[i], " is ",
              bottoms[i].brief(), "; HDF5Output writes blobs of one to four axes");
      const Shape& before = rows_->shapes[i];
      if (before.axes() > 0 && rows(bottoms[i]) != rows(before)) {
        fail("rows of ", kNames[i], " are ", rows(bottoms[i]).brief(), " now, but were ",
             rows(before).brief(), " before; a file holds rows of one shape");
      }
    }
    require(bottoms[0][0] == bottoms[1][0], "data has ", bottoms[0][0], " rows, but label has ",
            bottoms[1][0], "; HDF5Output writes pairs of them");
    return {};
  }

  void forward(Context& context, const Forward& pass) const override {
    const std::lock_guard<std::mutex> lock(rows_->mutex);
    for (size_t i = 0; i < pass.bottom.size(); ++i) {
      const std::vector<float> batch = to_floats(context, pass.bottom[i]);
      rows_->values[i].insert(rows_->values[i].end(), batch.begin(), batch.end());
      rows_->shapes[i] = pass.bottom[i].shape();
    }
    rows_->count += pass.bottom[0].shape()[0];
  }

 private:
  // Shape of a row of such a bottom, with four axes in all.
  static Shape rows(const Shape& bottom) {
    Shape row = bottom;
    while (row.axes() < kAxes) row.push_back(1);
    row[0] = 1;
    return row;
  }

  void write_file() {
    if (rows_->count == 0) return;
    Hdf5Writer file(params<HDF5OutputParameter>().file_name());
    for (size_t i = 0; i < rows_->values.size(); ++i) {
      Shape shape = rows(rows_->shapes[i]);
      shape[0] = rows_->count;
      file.floats(kNames[i], shape, rows_->values[i].data());
    }
    file.commit();
    log_->info(cat("Wrote ", rows_->count, " rows to HDF5 file ",
                   params<HDF5OutputParameter>().file_name()));
  }

  Log* log_ = &silent_log();
  // What the file will have: rows of the passes of all plans.
  struct Rows {
    std::mutex mutex;
    int64_t count = 0;
    std::array<Shape, 2> shapes;  // from the last pass
    std::array<std::vector<float>, 2> values;
  };
  const std::unique_ptr<Rows> rows_ = std::make_unique<Rows>();
};

REGISTER_LAYER(HDF5Output, Hdf5OutputLayer);

}  // namespace
}  // namespace crema
