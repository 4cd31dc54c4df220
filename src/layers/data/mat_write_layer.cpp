// MatWrite: writes its bottoms to MATLAB files, one file for each bottom and pass (DeepLab).
//
//   file PREFIX NAME _blob_ b .mat, variable "data": bottom b of the pass
//   data(x, y, c, n) = bottom[n, c, y, x], of class single
//
// Shapes: any number of bottoms, of up to four axes; missing ones are 1. No tops.
//
// Parameters: mat_write_param: prefix, which begins every path and usually ends in "/"; source, a
// list whose lines begin with the NAME of each pass, in the order of the data; strip, the number of
// characters to remove from the end of each name; period, to write only in every period-th pass.
// Without a source the name is iter_0, iter_1, ... A relative path is resolved from the working
// directory; a missing folder is created.
//
// A test that runs past the last name starts over with the first one, and logs that once. With
// several ranks the first one writes. Files appear only when complete.
//
// Gradient: none; its bottoms get no gradient from it.
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "data/lists/mat_file.h"
#include "device/communicator.h"
#include "layers/data/mat_names.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

constexpr int kMatAxes = 4;

class MatWriteLayer : public Layer {
 public:
  Arity bottoms() const override { return {1, -1}; }
  Arity tops() const override { return {0, 0}; }
  bool differentiable(int) const override { return false; }
  bool works_on_host() const override { return true; }
  BackwardReads reads() const override { return {false, false}; }

  void setup(Context& context, const std::vector<Shape>&) override {
    require(!p().prefix().empty(),
            "mat_write_param needs a `prefix`: what the paths of the files begin with");
    require(p().period() > 0, "period is ", p().period(), ": every 1, 2, ... passes are written");
    list_ = p().source().empty() ? "" : find_file(p().source(), folder());
    if (!list_.empty() && !file_exists(list_))
      context.log().warning(cat("layer \"", name(), "\": ", list_,
                                " is not there; without its names the first pass fails"));
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    for (const Shape& bottom : bottoms)
      require(bottom.axes() <= kMatAxes, "the bottom is ", bottom.brief(),
              "; MatWrite writes blobs of up to four axes");
    return {};
  }

  void forward(Context& context, const Forward& pass) override {
    if (!list_.empty() && names_.empty()) {
      names_ = mat_names(list_, p().strip());
      context.log().info(cat("MatWrite has ", names_.size(), " names of files."));
    }
    const Communicator* const world = context.world();
    if (pass.pass % static_cast<uint64_t>(p().period()) != 0 || (world && world->rank > 0)) return;
    for (size_t i = 0; i < pass.bottom.size(); ++i)
      write(mat_path(p().prefix(), name_of(pass.pass, context.log()), i), pass.bottom[i].shape(),
            to_floats(context, pass.bottom[i]));
  }

 private:
  const MatWriteParameter& p() const { return params<MatWriteParameter>(); }

  std::string name_of(uint64_t pass, Log& log) {
    if (names_.empty()) return cat("iter_", pass);
    if (pass >= names_.size() && !repeats_) {
      repeats_ = true;
      log.warning(cat("layer \"", name(), "\": ", list_, " has ", names_.size(),
                      " names, and this is pass ", pass + 1,
                      ": files are written again, from the first name on"));
    }
    return names_[pass % names_.size()];
  }

  static void write(const std::string& path, const Shape& shape, const std::vector<float>& values) {
    std::vector<int64_t> extents = shape.dims();
    extents.resize(kMatAxes, 1);
    std::reverse(extents.begin(), extents.end());
    std::filesystem::create_directories(folder_of(path));
    // A folder of many files, which would be listed for each.
    write_file_atomically(path, mat_of("data", extents, values.data()),
                          AtomicFile::Leftovers::keep);
  }

  std::string list_;                // empty: none
  std::vector<std::string> names_;  // its lines, once read
  bool repeats_ = false;
};

REGISTER_LAYER(MatWrite, MatWriteLayer);

}  // namespace
}  // namespace crema
