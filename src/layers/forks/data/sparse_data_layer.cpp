// SparseData: sparse vectors from an LMDB or LevelDB, repeating endlessly (forks for text).
//   data[i]  = the vector of record (n * batch_size + i) mod records; omitted values are 0
//   label[i] = its label
//   where n counts the batches
// Shapes: no bottoms; tops data (batch_size, size) and, if a second top is named, label
// (batch_size). `size` is that of the first record; others must have the same.
// Parameters: sparse_data_param: source, the folder of a database of SparseDatum messages; backend,
// by default LEVELDB; batch_size; rand_skip. The blob is dense, unlike the fork's: any layer can
// read it.
// Gradient: none.
#include "base/error.h"
#include "data/databases/sparse_records.h"
#include "layers/data/loader_layer.h"
#include "proto/params/forks_data.pb.h"

namespace crema {
namespace {

class SparseDataLayer : public LoaderLayer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::source,
                                       .content = SourceContent::numbers};

 private:
  const SparseDataParameter& p() const { return params<SparseDataParameter>(); }

 public:
  void open(Context& context) override {
    source_ = open_source(context, "sparse_data_param", p().source(), p().backend());
  }

  void setup(Context& context, const std::vector<Shape>&) override {
    require(p().batch_size() > 0, "sparse_data_param needs a `batch_size` of at least 1");
    start(context, std::make_shared<SparseRecords>(source_),
          loader_options(context, p().batch_size(), p().rand_skip()));
    // LevelDB would have to iterate over all of its keys to count them.
    records_ = p().backend() == DataParameter::LMDB ? source_->size() : 0;
  }

  int64_t records() const override { return records_; }

 private:
  std::shared_ptr<const Source> source_;
  int64_t records_ = 0;
};

}  // namespace
REGISTER_LAYER(SparseData, SparseDataLayer);
}  // namespace crema
