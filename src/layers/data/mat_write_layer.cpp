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
#include <memory>
#include <mutex>

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
  static constexpr LayerFacts facts = {.kind = LayerKind::sink};

  Arity bottoms() const override { return {1, -1}; }
  Arity tops() const override { return {0, 0}; }
  bool differentiable(int) const override { return false; }
  LayerTraits traits() const override { return {.reads = {false, false}, .works_on_host = true}; }

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

  void forward(Context& context, const Forward& pass) const override {
    read_names(context.log());
    const Communicator* const world = context.world();
    if (pass.pass % static_cast<uint64_t>(p().period()) != 0 || (world && world->rank > 0)) return;
    const std::string name = name_of(pass.pass, context.log());
    for (size_t i = 0; i < pass.bottom.size(); ++i)
      write(mat_path(p().prefix(), name, i), pass.bottom[i].shape(),
            to_floats(context, pass.bottom[i]));
  }

 private:
  const MatWriteParameter& p() const { return params<MatWriteParameter>(); }

  void read_names(Log& log) const {
    if (list_.empty()) return;
    const std::lock_guard<std::mutex> lock(list_names_->mutex);
    if (!list_names_->all.empty()) return;
    list_names_->all = mat_names(list_, p().strip());
    log.info(cat("MatWrite has ", list_names_->all.size(), " names of files."));
  }

  std::string name_of(uint64_t pass, Log& log) const {
    const std::lock_guard<std::mutex> lock(list_names_->mutex);
    const std::vector<std::string>& names = list_names_->all;
    if (names.empty()) return cat("iter_", pass);
    if (pass >= names.size() && !list_names_->repeat) {
      list_names_->repeat = true;
      log.warning(cat("layer \"", name(), "\": ", list_, " has ", names.size(),
                      " names, and this is pass ", pass + 1,
                      ": files are written again, from the first name on"));
    }
    return names[pass % names.size()];
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

  std::string list_;  // empty: none
  // Its lines. The first pass, of whatever plan, reads them: the file may be written until then.
  struct ListNames {
    std::mutex mutex;
    std::vector<std::string> all;
    bool repeat = false;  // warned that they do
  };
  const std::unique_ptr<ListNames> list_names_ = std::make_unique<ListNames>();
};

REGISTER_LAYER(MatWrite, MatWriteLayer);

}  // namespace
}  // namespace crema
