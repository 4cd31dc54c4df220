#include "layers/absent.h"

#include <map>

namespace crema {

const char* instead_of(const std::string& what) {
  static const std::map<std::string, const char*> advice = {
      {"DenseCRF",
       "write the scores with MatWrite and apply the CRF to them outside, or train "
       "MultiStageMeanfield (CRF-RNN) in the net"},
      {"LayerParameter.dense_crf_param",
       "write the scores with MatWrite and apply the CRF to them outside, or train "
       "MultiStageMeanfield (CRF-RNN) in the net"},
      {"Padding", "Convolution, Pooling and Im2col have `pad`, and Crop cuts"},
      {"LayerParameter.padding_param", "Convolution, Pooling and Im2col have `pad`, and Crop cuts"},
      {"BiasChannel",
       "it serves DeepLab's training with labels of whole images; label maps from another program "
       "can take its place"},
      {"LayerParameter.bias_channel_param",
       "it serves DeepLab's training with labels of whole images; label maps from another program "
       "can take its place"},
      {"AdaptiveBiasChannel",
       "it serves DeepLab's training with labels of whole images; label maps from another program "
       "can take its place"},
      {"LayerParameter.adaptive_bias_channel_param",
       "it serves DeepLab's training with labels of whole images; label maps from another program "
       "can take its place"},
      {"DominantChannel", "ArgMax finds the strongest channels"},
      {"LayerParameter.dominant_channel_param", "ArgMax finds the strongest channels"},
      {"ChannelAggregator", "a Convolution of 1 x 1 with given weights adds channels up"},
      {"LayerParameter.channel_aggregator_param",
       "a Convolution of 1 x 1 with given weights adds channels up"},
      {"GainChannel", "Scale learns a factor for each channel"},
      {"LayerParameter.gain_channel_param", "Scale learns a factor for each channel"},
      {"LayerParameter.unique_label_param",
       "it serves DeepLab's training with labels of whole images; label maps from another program "
       "can take its place"},
      {"UniqueLabel",
       "it serves DeepLab's training with labels of whole images; label maps from another program "
       "can take its place"},
      {"LayerParameter.onehot_param", "Embed with the identity as weights makes vectors of labels"},
      {"OneHot", "Embed with the identity as weights makes vectors of labels"},
      {"TransformationParameter.rand_resize",
       "scale_factors resizes by one of several factors, augment { resized_crop { } } by any"},
      {"TransformationParameter.rand_rotate", "write augment { rotate { } }"},
      {"TransformationParameter.rand_aspect_ratio",
       "write augment { resized_crop { } }, which draws a ratio, too"},
      {"TransformationParameter.gaussian_blur", "write augment { blur { } }"},
      {"TransformationParameter.rotate90n", "write augment { rotate { } }"},
      {"TransformationParameter.label_scalefactor",
       "scale numbers before they are written into the list"},
      {"TransformationParameter.label_offset",
       "shift numbers before they are written into the list"},
      {"InterpParameter.interp_type",
       "Interp is bilinear; Upsample with one bottom repeats the nearest pixel"},
      {"PoolingParameter.do_spm",
       "AdaptivePooling pools into a given number of cells, SPP into a pyramid of them"},
      {"PoolingParameter.pool_size",
       "AdaptivePooling pools into a given number of cells, SPP into a pyramid of them"},
      {"HingeLossParameter.type", "SigmoidCrossEntropyLoss takes several labels of one example"},
      {"LayerParameter.euclidean_loss_param",
       "EuclideanLoss is the halved square; a Power with power: 0.5 takes its root"},
      {"PairwiseLoss",
       "the gradient of HashNet's is not that of its loss; ContrastiveLoss and TripletLoss train "
       "codes from pairs"},
      {"LayerParameter.pairwise_param",
       "the gradient of HashNet's is not that of its loss; ContrastiveLoss and TripletLoss train "
       "codes from pairs"},
      {"ScaleTanH", "a Power with a scale before a TanH does it for one factor"},
      {"LayerParameter.scale_tanh_param",
       "a Power with a scale before a TanH does it for one factor"},
      {"LayerParameter.op_transform_param",
       "OpenPose's records are read by its own program only; HDF5Data reads images, masks and heat "
       "maps"},
      {"OPData",
       "OpenPose's records are read by its own program only; HDF5Data reads images, masks and heat "
       "maps"},
      {"LayerParameter.cpm_transform_param",
       "OpenPose's records are read by its own program only; HDF5Data reads images, masks and heat "
       "maps"},
      {"CPMData",
       "OpenPose's records are read by its own program only; HDF5Data reads images, masks and heat "
       "maps"},
      {"Correlation", "it is FlowNet's; a Python layer can do it"},
      {"LayerParameter.correlation_param", "it is FlowNet's; a Python layer can do it"},
      {"FlowWarp", "SpatialTransformer warps by an affine map; a Python layer can follow a flow"},
      {"LayerParameter.flow_warp_param",
       "SpatialTransformer warps by an affine map; a Python layer can follow a flow"},
      {"Resample", "Interp resizes bilinearly"},
      {"LayerParameter.resample_param", "Interp resizes bilinearly"},
      {"DataAugmentation", "transform_param { augment { } } changes images at random"},
      {"LayerParameter.augmentation_param",
       "transform_param { augment { } } changes images at random"},
      {"ROIWarping", "ROIAlign takes the same bottoms"},
      {"LayerParameter.roi_warping_param", "ROIAlign takes the same bottoms"},
      {"GRN", "Normalize scales each vector to length 1"},
      {"LayerParameter.grn_param", "Normalize scales each vector to length 1"},
      {"ReorgYolo", "write type: \"Reorg\" and reorg_param"},
      {"LayerParameter.reorg_yolo_param", "write type: \"Reorg\" and reorg_param"},
      {"RegionYolo", "write type: \"YoloDetectionOutput\"; RegionLoss trains"},
      {"LayerParameter.region_yolo_param",
       "write type: \"YoloDetectionOutput\"; RegionLoss trains"},
      {"PriorBoxParameter.density",
       "one PriorBox for each density, its step divided by it and its offset set, has the same "
       "boxes"},
      {"PriorBoxParameter.fixed_size", "min_size is the side of the first box"},
      {"PriorBoxParameter.fixed_ratio", "aspect_ratio with flip: false"},
      {"DetectionOutputParameter.objectness_score",
       "multiply the scores with a Scale of two bottoms first"},
      {"FillerParameter.file", "write the values as `blobs` of the layer, or load weights"},
      {"FillerParameter.diag_val", "write the values as `blobs` of the layer, or load weights"},
  };
  const auto found = advice.find(what);
  return found == advice.end() ? nullptr : found->second;
}

}  // namespace crema
