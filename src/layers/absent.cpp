#include "layers/absent.h"

#include <map>
#include <vector>

namespace crema {

namespace {

struct Advice {
  const char* text;
  std::vector<const char*> of;  // types of layers and fields
};

const std::vector<Advice>& advice() {
  static const std::vector<Advice> all = {
      {"write the scores with MatWrite and apply the CRF to them outside, or put "
       "MultiStageMeanfield (CRF-RNN) in its place, whose filters have the same form: bottoms are "
       "the scores, the scores again and the image",
       {"DenseCRF", "LayerParameter.dense_crf_param"}},
      {"Convolution, Pooling and Im2col have `pad`, and Crop cuts",
       {"Padding", "LayerParameter.padding_param"}},
      {"it serves DeepLab's training with labels of whole images; label maps from another program "
       "can take its place",
       {"BiasChannel", "LayerParameter.bias_channel_param", "AdaptiveBiasChannel",
        "LayerParameter.adaptive_bias_channel_param", "LayerParameter.unique_label_param",
        "UniqueLabel"}},
      {"ArgMax finds the strongest channels",
       {"DominantChannel", "LayerParameter.dominant_channel_param"}},
      {"a Convolution of 1 x 1 with given weights adds channels up",
       {"ChannelAggregator", "LayerParameter.channel_aggregator_param"}},
      {"Scale learns a factor for each channel",
       {"GainChannel", "LayerParameter.gain_channel_param"}},
      {"Embed with the identity as weights makes vectors of labels",
       {"LayerParameter.onehot_param", "OneHot"}},
      {"write scale_factors with some factors between its two numbers, or augment { resized_crop { "
       "} } for any size",
       {"TransformationParameter.rand_resize"}},
      {"write augment { rotate { probability: 0.5 most: ANGLE } } with the larger of its two "
       "angles",
       {"TransformationParameter.rand_rotate"}},
      {"write augment { resized_crop { least_aspect: A most_aspect: B } } with its two numbers",
       {"TransformationParameter.rand_aspect_ratio"}},
      {"write augment { blur { } }",
       {"TransformationParameter.gaussian_blur", "TransformationParameter.smooth_filtering",
        "TransformationParameter.max_smooth"}},
      {"write augment { rotate { } }", {"TransformationParameter.rotate90n"}},
      {"scale numbers before they are written into the list",
       {"TransformationParameter.label_scalefactor"}},
      {"shift numbers before they are written into the list",
       {"TransformationParameter.label_offset"}},
      {"AdaptivePooling pools into a given number of cells, SPP into a pyramid of them",
       {"PoolingParameter.do_spm", "PoolingParameter.pool_size"}},
      {"SigmoidCrossEntropyLoss takes several labels of one example", {"HingeLossParameter.type"}},
      {"EuclideanLoss is the halved square; a Power with power: 0.5 takes its root",
       {"LayerParameter.euclidean_loss_param"}},
      {"OpenPose's records are read by its own program only; HDF5Data reads images, masks and heat "
       "maps",
       {"LayerParameter.op_transform_param", "OPData", "LayerParameter.cpm_transform_param",
        "CPMData"}},
      {"ROIAlign takes the same bottoms", {"ROIWarping", "LayerParameter.roi_warping_param"}},
      {"write type: \"YoloDetectionOutput\"; RegionLoss trains",
       {"RegionYolo", "LayerParameter.region_yolo_param"}},
      {"multiply the scores with a Scale of two bottoms first",
       {"DetectionOutputParameter.objectness_score"}},
      {"write the values as `blobs` of the layer, or load weights",
       {"FillerParameter.file", "FillerParameter.diag_val"}},
      {"Interp resizes each bottom to the largest one, and Concat joins them",
       {"Accum", "LayerParameter.accum_param"}},
      {"transform_param { augment { } } of a data layer changes images at random; it does not move "
       "flows along",
       {"FlowAugmentation", "GenerateAugmentationParameters", "BlackAugmentation",
        "LayerParameter.black_augmentation_param"}},
      {"HDF5Data reads images, flows and disparities as they are",
       {"CustomData", "DisparityData", "FloatReader", "ImgReader", "LayerParameter.reader_param"}},
      {"HDF5Output, MatWrite and `crema extract_features` write blobs to files",
       {"FloatWriter", "FLOWriter", "ImgWriter", "PFMWriter", "LayerParameter.writer_param"}},
      {"L1Loss with l1_loss_param { l2_per_location: true epsilon: Q_EPSILON } is p: 2 and q: 0.5, "
       "without it p: 1 and q: 1",
       {"LpqLoss", "LayerParameter.lpq_loss_param"}},
      {"leave it out: threads are chosen by themselves",
       {"DataParameter.disk_reader_threads", "DataParameter.huge_video_dataset",
        "DataParameter.verbose"}},
      {"`crema db split` divides a database into parts",
       {"DataParameter.limit_samples", "DataParameter.preselection_file",
        "DataParameter.preselection_label", "DataParameter.range_start",
        "DataParameter.range_end"}},
      {"write shuffle: true; random_seed of the solver decides the order",
       {"DataParameter.rand_permute", "DataParameter.rand_permute_order",
        "DataParameter.rand_permute_seed", "DataParameter.permute_every_iter"}},
      {"FlowNet's binary databases are not read: write images, flows and disparities into HDF5 "
       "files",
       {"DataParameter.slice_point", "DataParameter.encoding", "DataParameter.subtract",
        "DataParameter.block_size"}},
      {"its gradient takes the top for the bottom; ScaleTanH does the same with a TanH",
       {"SignDiffusion", "LayerParameter.sign_diffusion_param"}},
      {"multiply bottoms with Scale by one value each, and add them up with Eltwise",
       {"EltwiseParameter.coeff_blob"}},
      {"accuracy is a share of the labels that count: ignore_label leaves some out",
       {"AccuracyParameter.denominator"}},
      {"min_dim of convert_imageset, or new_height and new_width, make images large enough",
       {"ImageDataParameter.min_height", "ImageDataParameter.min_width"}},
      {"a layer in Python can do it: python_param { }",
       {"CompactBilinear", "LayerParameter.compact_bilinear_param", "SignedSqrt", "Scatter",
        "SpatialProduct", "DomainTransform"}},
      {"RoIs of images only: leave pooled_size out and write pooled_h and pooled_w",
       {"ROIPoolingParameter.pooled_size"}},
      {"channels are axis 1 here; a Permute before and one behind bring another axis there",
       {"PoolingParameter.axis"}},
      {"write type: \"Proposal\" with proposal_param",
       {"SimplerNMS", "LayerParameter.simpler_nms_param"}},
      {"write the images into HDF5 files or as PNGs first",
       {"ImageDataParameter.is_rsdata", "ImageDataParameter.rs_channels",
        "ImageDataParameter.is_modis_bin", "ImageDataParameter.modis_channles",
        "ImageDataParameter.modis_channel_list", "ImageDataParameter.modis_class_num"}},
      {"leave it out: whether frames are encoded is seen from their files",
       {"VideoDataParameter.encoded"}},
      {"ImageSegData reads an image and one label map; HDF5Data any number of maps",
       {"ImageMultiSegData"}},
      {"SoftmaxWithLoss takes a third bottom with a weight for each label",
       {"SoftmaxWithWeightedLoss"}},
      {"DeformableConvolution moves taps in the same way, without the factors",
       {"ModulatedDeformableConvolution", "LayerParameter.modulated_deformable_convolution_param"}},
      {"PSROIPooling takes the same maps and regions, without moving cells",
       {"DeformablePSROIPooling", "LayerParameter.deformable_psroi_pooling_param"}},
      {"write augment { rotate { most: ANGLE } }", {"TransformationParameter.max_rotation_angle"}},
      {"write augment { color { brightness: B contrast: C } }, shares of 1",
       {"TransformationParameter.contrast_brightness_adjustment",
        "TransformationParameter.min_contrast", "TransformationParameter.max_contrast",
        "TransformationParameter.max_brightness_shift", "TransformationParameter.max_color_shift"}},
      {"write img_rand_resize_lower and img_rand_resize_upper, the shortest and longest smaller "
       "side",
       {"TransformationParameter.min_side", "TransformationParameter.min_side_min",
        "TransformationParameter.min_side_max"}},
      {"write augment { resized_crop { } }, whose areas are squares of such factors",
       {"TransformationParameter.min_scaling_factor",
        "TransformationParameter.max_scaling_factor"}},
      {"each change in augment { } has a probability of its own",
       {"TransformationParameter.apply_probability"}},
      {"leave it out: it writes messages only", {"TransformationParameter.debug_params"}},
      {"a Slice and a Concat put channels in another order",
       {"ChannelPermutation", "LayerParameter.channel_permutation_param"}},
      {"Normalize of both and an InnerProduct of two bottoms give cosines",
       {"CosineSimilarityBatch", "LayerParameter.cosine_similarity_batch_param"}},
      {"Bias with given `blobs` adds the values of a file",
       {"PowerFile", "LayerParameter.power_file_param"}},
      {"SpatialTransformer needs no loss: the one of the net trains it",
       {"LocLoss", "STLoss", "LayerParameter.loc_loss_param", "LayerParameter.st_loss_param"}},
      {"SoftmaxWithLoss takes all classes",
       {"RandomSamplingSoftmaxLoss", "LayerParameter.rss_loss_param"}},
      {"Clip with max: N takes any bound", {"LayerParameter.relu6_param"}},
  };
  return all;
}

}  // namespace

const char* instead_of(const std::string& what) {
  static const std::map<std::string, const char*> by_name = [] {
    std::map<std::string, const char*> names;
    for (const Advice& each : advice()) {
      for (const char* name : each.of) names[name] = each.text;
    }
    return names;
  }();
  const auto found = by_name.find(what);
  return found == by_name.end() ? nullptr : found->second;
}

}  // namespace crema
