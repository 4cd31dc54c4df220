// VideoData: clips of videos, or of folders of image files, in the formats of several forks.
//
//   data[i]  = transform(frames of line (n * batch_size + i) mod lines), all frames alike
//   label[i] = the last number of that line
//   where n counts the batches
//
// Which frames:
//   lines `path first-frame label` (C3D): new_length frames from that one on, every
//     sampling_rate-th
//   lines `path frames label`, if video_data_param has modality, num_segments or name_pattern
//     (TSN): new_length frames of each of num_segments equal parts
//   use_temporal_jitter: likewise of the whole clip; for videos lines are `path label`
// The frames of a part begin at a random one in training, and are its middle ones in testing.
// Without use_image paths are videos, else folders. Their files count from 1 and are called
// %06d.jpg (C3D), image_%04d.jpg or, with modality FLOW, flow_%c_%04d.jpg with x and y for %c
// (TSN), or as name_pattern says. video_type VIDEO (SSD): each frame of video_file is a sample,
// skip_frames are skipped between two; batch_size as in data_param.
//
// Shapes: no bottoms; tops data (batch_size, C, frames, H, W), for TSN (batch_size, frames * C, H,
// W) with C 3 or, for flow, 2, for a video's frames (batch_size, 3, H, W); and label (batch_size).
//
// Parameters: video_data_param, or image_data_param of C3D: source, root_folder, new_height and
// new_width, batch_size, shuffle, rand_skip and those above. transform_param; is_flow inverts the x
// component of a mirrored clip; mean_file has an image, or a clip (1, C, frames, H, W) as C3D's do.
//
// Gradient: none.
#include "base/error.h"
#include "base/files.h"
#include "data/lists/video_clips.h"
#include "layers/data/loader_layer.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

class VideoDataLayer : public LoaderLayer {
 public:
  void setup(Context& context, const std::vector<Shape>&) override {
    const VideoDataParameter& video = params<VideoDataParameter>();
    if (!has_params<VideoDataParameter>()) {
      read_list(context, message().image_data_param(), {});
    } else if (video.has_source()) {
      read_list(context, video, of_segments(video));
    } else {
      play(context, video);
    }
  }

  int64_t records() const override { return records_; }

 private:
  Transform transform(Context& context) const {
    return {params<TransformationParameter>(), training(), folder(), context.log()};
  }

  // Options that only TSN's segments have.
  static ClipOptions of_segments(const VideoDataParameter& video) {
    ClipOptions clips;
    clips.stacked = video.has_modality() || video.has_num_segments() || video.has_name_pattern();
    clips.pattern = video.name_pattern();
    if (!clips.stacked) return clips;
    clips.whole = true;
    clips.flow = video.modality() == VideoDataParameter::FLOW;
    clips.segments = video.num_segments();
    if (clips.pattern.empty()) clips.pattern = clips.flow ? "flow_%c_%04d.jpg" : "image_%04d.jpg";
    return clips;
  }

  // `Parameter`: VideoDataParameter or ImageDataParameter.
  template <typename Parameter>
  void read_list(Context& context, const Parameter& p, ClipOptions clips) {
    require(!p.source().empty(), "VideoData needs a `source`, a list of clips, or a video_file");
    require(p.batch_size() > 0, "VideoData needs a `batch_size` of at least 1");
    require(p.new_length() > 0 && p.sampling_rate() > 0,
            "new_length and sampling_rate must be at least 1, but are ", p.new_length(), " and ",
            p.sampling_rate());
    require((p.new_height() > 0) == (p.new_width() > 0),
            "VideoData gives only one of new_height and new_width; give both");
    clips.length = p.new_length();
    clips.step = p.sampling_rate();
    clips.videos = !p.use_image();
    clips.whole |= p.use_temporal_jitter();
    clips.drawn = training();
    require(clips.segments > 0, "num_segments must be at least 1");
    require(!clips.videos || !clips.flow,
            "modality FLOW reads two image files a frame, not videos: leave use_image: false out");
    if (clips.pattern.empty()) clips.pattern = "%06d.jpg";
    ImageReading reading{p.root_folder(), folder()};
    reading.height = p.new_height();
    reading.width = p.new_width();
    reading.scaled = params<TransformationParameter>().scaled_decoding();
    if constexpr (requires { p.cache(); }) {
      if (p.cache() != DataParameter::false_)
        context.log().warning("VideoData keeps no frames: cache has no effect here.");
    }
    const std::string list = find_file(p.source(), folder());
    context.log().info("Opening file " + list);
    const auto samples =
        std::make_shared<VideoClips>(list, reading, transform(context), std::move(clips));
    records_ = samples->size();
    context.log().info(cat("A total of ", records_, " videos."));
    LoaderOptions options = loader_options(context, p.batch_size(), p.rand_skip());
    options.shuffle = p.shuffle();
    start(context, samples, options);
  }

  void play(Context& context, const VideoDataParameter& video) {
    require(
        !video.video_file().empty(),
        "VideoData needs a `source`, a list of clips, or a video_file; a camera is not supported");
    const auto samples = std::make_shared<VideoFrames>(find_file(video.video_file(), folder()),
                                                       transform(context), video.skip_frames());
    records_ = samples->size();
    start(context, samples, database_options(context));
  }

  int64_t records_ = 0;
};

REGISTER_LAYER(VideoData, VideoDataLayer);

}  // namespace
}  // namespace crema
