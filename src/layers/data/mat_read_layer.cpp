// MatRead: reads arrays from MATLAB files, one file for each top and image (DeepLab).
//
//   top b [i, c, y, x] = data(x, y, c), variable "data" of the file PREFIX NAME _blob_ b .mat
//   where NAME is that of line (n * batch_size + i) mod lines of the list, and n counts the batches
//
// Shapes: no bottoms; any number of tops (batch_size, C, H, W), as the first name's arrays are.
//
// Parameters: mat_read_param: prefix, which begins every path; source, a list whose lines begin
// with a NAME; strip, the number of characters to remove from the end of each name; batch_size.
// Without a source the names are iter_0, iter_1, ..., as far as there are files. Relative paths are
// resolved from the working directory, then from the folder of the prototxt.
//
// Arrays of any numeric class are read. In training several ranks share each batch.
//
// Gradient: none.
#include "base/error.h"
#include "base/files.h"
#include "data/lists/mat_rows.h"
#include "data/loader/to_tensor.h"
#include "layers/data/loader_layer.h"
#include "layers/data/mat_names.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

class MatReadLayer : public LoaderLayer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::source,
                                       .content = SourceContent::numbers};

  Arity tops() const override { return {1, -1}; }

  void setup(Context& context, const std::vector<Shape>&) override {
    require(!p().prefix().empty(),
            "mat_read_param needs a `prefix`: what the paths of the files begin with");
    require(p().batch_size() > 0, "batch_size is ", p().batch_size(), "; it must be 1 or more");
    const std::vector<std::string> names = this->names();
    context.log().info(cat("MatRead will load from a set of ", names.size(), " files."));
    const FindMat find = [names, prefix = p().prefix(), folder = folder()](int64_t sample,
                                                                           size_t array) {
      return find_file(mat_path(prefix, names[static_cast<size_t>(sample)], array), folder);
    };
    for (int i = 0; i < message().top_size(); ++i)
      shapes_.push_back(shape_of_mat(find(0, static_cast<size_t>(i))));
    records_ = static_cast<int64_t>(names.size());
    start(context, std::make_shared<MatRows>(records_, shapes_, find),
          loader_options(context, p().batch_size(), 0));
  }

  int64_t records() const override { return records_; }

  Inference infer(const std::vector<Shape>&) const override {
    Inference inference;
    for (const Shape& shape : shapes_)
      inference.tops.push_back({batch_size(), shape[0], shape[1], shape[2]});
    return inference;
  }

  Prepared prepare(Context&, const Preparation&) const override {
    Prepared prepared;
    prepared.make_state<TopValues>();
    return prepared;
  }
  void forward(Context& context, const Forward& pass) const override {
    const Batch& batch = this->batch(pass.pass);
    to_tensor(context, batch.data, pass.top[0]);
    write_further_tops(context, batch, pass);
  }

 private:
  const MatReadParameter& p() const { return params<MatReadParameter>(); }

  std::vector<std::string> names() const {
    if (!p().source().empty()) return mat_names(find_file(p().source(), folder()), p().strip());
    std::vector<std::string> found;
    for (std::string next = "iter_0";
         file_exists(find_file(mat_path(p().prefix(), next, 0), folder()));
         next = cat("iter_", found.size()))
      found.push_back(next);
    require(!found.empty(), "there is no ", mat_path(p().prefix(), "iter_0", 0),
            "; give mat_read_param a `source`: a list of the files' names");
    return found;
  }

  std::vector<Shape> shapes_;  // of a sample
  int64_t records_ = 0;
};

REGISTER_LAYER(MatRead, MatReadLayer);

}  // namespace
}  // namespace crema
