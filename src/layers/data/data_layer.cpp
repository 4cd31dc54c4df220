// Data: samples from an LMDB, a LevelDB or tar files, repeating endlessly.
//
//   data[i,c,y,x] = transform(image of record (n * batch_size + i) mod records)
//   label[i]      = label of that record; label[i,k] with several labels, Datum.labels
//   where n counts the batches, and transform is crop, mirror and (x - mean) * scale
//
// Shapes: no bottoms; tops data (batch_size, C, H, W), or the crop's height and width, and, if
// there is a second top, label (batch_size), or (batch_size, L) for L > 1 labels in each record. If
// augment mixes samples (mixup, cutmix; in training) label is (batch_size, classes): soft labels,
// as SoftmaxWithLoss reads them.
//
// Parameters: data_param: source, the folder of the database; backend, by default LEVELDB; for TAR
// the source is a .tar file, a folder of them, a list of them, or "train-{000..146}.tar";
// batch_size; prefetch, number of batches prepared ahead; shuffle, a new order in every epoch;
// rand_skip; threads, 0 for automatic; balance; cache, RAM or DISK, which keeps decoded images for
// the epochs that follow, up to cache_limit MiB, those on disk in a temporary file in cache_folder.
// transform_param.
//
// With transform_param { decoder: GPU } a net on a GPU decodes JPEG records there, ahead of time,
// with nvJPEG: values differ from the CPU's by a few units of 255, the rest is the same. It helps
// machines with few cores; with many, the CPU decodes as fast and leaves the GPU to the net.
// Progressive and CMYK JPEGs and other kinds of images are decoded on the CPU; so is everything,
// after a warning, if the net is not on a GPU, nvJPEG is missing or batch_size is 1. augment,
// resizing, distortion and cache run on the CPU and cannot be combined with it. A JPEG with data
// missing in its middle, which converters skip, has arbitrary pixels there.
//
// A record of a tar file is the same as in WebDataset: consecutive members whose names are equal up
// to the first dot: an image (0001.jpg, .png, ...) and its label, a number in 0001.cls, or "label"
// in 0001.json; several numbers are several labels.
//
// Records come in the order of their keys, those of tar files in file order. In training several
// ranks share each batch: the first one has its first samples. With balance: true all classes are
// equally frequent in training: samples come in rounds with one record of each class, in random
// order; an epoch has as many samples as there are records, and no record repeats before all others
// of its class. The labels are read when the net is created, which for an LMDB takes one or two
// reads of 4 KiB per record. Mixed samples (mixup, cutmix) come from one rank's part of a batch.
// The first record determines the shape; others must have the same, unless they are cropped or
// batch_size is 1: then the net follows each one's height and width.
//
// Encoded images are decoded for each sample. If a JPEG is only cropped, only the crop is decoded,
// unless cache needs the whole image: damage below the crop goes unnoticed. With scaled_decoding a
// JPEG that augment's resized_crop makes smaller is decoded at a half, a quarter or an eighth of
// its size first, if that is not smaller than the crop.
//
// Gradient: none.
#include "base/error.h"
#include "base/files.h"
#include "data/databases/gpu_images.h"
#include "data/databases/resident.h"
#include "layers/data/loader_layer.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

class DataLayer : public LoaderLayer {
 public:
  LayerTraits traits() const override {
    LayerTraits traits = LoaderLayer::traits();
    traits.makes_any_format = resident_ || gpu_images_;
    traits.works_on_host = !resident_;
    return traits;
  }

  void open(Context& context) override { source_ = open_source(context); }

  void setup(Context& context, const std::vector<Shape>&) override {
    const DataParameter& data = params<DataParameter>();
    const TransformationParameter& fields = params<TransformationParameter>();
    const auto records = std::make_shared<Records>(
        source_, Transform(fields, training(), folder(), context.log()), message().top_size() > 1);
    if (!records->decodes() && (fields.force_color() || fields.force_gray())) {
      context.log().warning("force_color and force_gray only for encoded datum");
    }
    const bool cached = data.cache() != DataParameter::false_,
               on_gpu = fields.decoder() == TransformationParameter::GPU;
    require(!on_gpu || !(cached || (training() && fields.has_augment())),
            "transform_param has decoder: GPU, but ",
            cached ? "data_param has cache, which keeps images that the CPU has decoded"
                   : "also augment, which the CPU computes from images that it has decoded",
            "; leave out one of them");
    if (records->encoded()) {
      records->use_cache(image_cache(context, data, source_->path()));
    } else if (cached) {
      context.log().info(
          cat("The records of ", source_->path(), " are not encoded: they need no cache."));
    }
    const LoaderOptions options = database_options(context);
    start(context, records, options);
    // LevelDB would have to iterate over all of its keys to count them.
    records_ = data.backend() != DataParameter::LEVELDB ? source_->size() : 0;
    if (on_gpu) gpu_images_ = GpuImages::decode_there(context, records, options);
    if (!gpu_images_ && records_ > 0 && context.resident)
      resident_ = ResidentData::load(context, *records, options, free_memory(context) / 4);
    if (!gpu_images_ && !resident_) gpu_images_ = GpuImages::of_bytes(context, records, options);
  }

  int64_t records() const override { return records_; }
  bool has_classes() const override { return true; }
  size_t resident_bytes() const override {
    return resident_ ? resident_->bytes() : gpu_images_ ? gpu_images_->bytes() : 0;
  }
  void release_resident() override {
    resident_.reset();
    if (gpu_images_) waited_on_gpu_ += gpu_images_->waited();
    gpu_images_.reset();
  }
  void skip_samples(int64_t samples) override {
    LoaderLayer::skip_samples(samples);
    if (resident_) resident_->skip(samples);
    if (gpu_images_) gpu_images_->skip(samples);
  }
  double waited() const override {
    return LoaderLayer::waited() + waited_on_gpu_ + (gpu_images_ ? gpu_images_->waited() : 0);
  }

  std::string waiting_hint() const override {
    if (!gpu_images_ || !gpu_images_->decodes_there()) return LoaderLayer::waiting_hint();
    return "the GPU decodes its images; decoder: CPU may be faster with many cores, and smaller "
           "images (convert_imageset -resize_height and -resize_width) are with either";
  }

  bool reshapes(uint64_t pass) override {
    if (gpu_images_) return set_batch_size(pass);
    if (!resident_) return LoaderLayer::reshapes(pass);
    say_restart(static_cast<int64_t>(pass), resident_->epoch(pass));
    return set_batch_size(pass);
  }

  void forward(Context& context, const Forward& pass) const override {
    const Tensor labels = pass.top.size() > 1 ? pass.top[1] : Tensor();
    if (gpu_images_) {
      const int64_t epoch = gpu_images_->batch(context, pass.pass, pass.top[0], labels);
      return say_restart(static_cast<int64_t>(pass.pass), epoch);
    }
    if (!resident_) return LoaderLayer::forward(context, pass);
    resident_->batch(context, pass.pass, pass.live_pass, pass.top[0], labels);
  }

 protected:
  bool may_decode_on_gpu() const override { return true; }

 private:
  std::shared_ptr<const Source> source_;
  // With one of these the loader makes no batches: records in GPU memory, or images brought there.
  std::unique_ptr<ResidentData> resident_;
  std::unique_ptr<GpuImages> gpu_images_;
  double waited_on_gpu_ = 0;  // for gpu_images_ that are gone
  int64_t records_ = 0;
};

REGISTER_LAYER(Data, DataLayer);

}  // namespace
}  // namespace crema
