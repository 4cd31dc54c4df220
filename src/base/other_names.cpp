#include "base/other_names.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "base/strings.h"

namespace crema {

namespace {

struct Meaning {
  const char* name;         // ours
  const char* advice = "";  // further requirements, as a sentence without its full stop
};

// Keys are words as key_of() makes them.
using Words = std::map<std::string, Meaning, std::less<>>;

constexpr Meaning kConvolution{"Convolution"}, kDeconvolution{"Deconvolution"},
    kDepthwise{"DepthwiseConvolution"}, kInnerProduct{"InnerProduct"}, kConcat{"Concat"},
    kReshape{"Reshape"}, kInterp{"Interp"}, kAdaptive{"AdaptivePooling"},
    kSoftmaxLoss{"SoftmaxWithLoss"}, kSigmoidLoss{"SigmoidCrossEntropyLoss"},
    kEuclidean{"EuclideanLoss"}, kL1{"L1Loss"}, kAccuracy{"Accuracy"}, kTile{"Tile"},
    kReduction{"Reduction"}, kImages{"ImageData"},
    kPad{"Convolution", "Padding is a field: convolution_param { pad: 1 }"},
    kMax{"Pooling", "Write pooling_param { pool: MAX kernel_size: 2 stride: 2 }"},
    kAverage{"Pooling", "Write pooling_param { pool: AVE kernel_size: 2 stride: 2 }"},
    kGlobalAverage{"Pooling", "Write pooling_param { pool: AVE global_pooling: true }"},
    kGlobalMax{"Pooling", "Write pooling_param { pool: MAX global_pooling: true }"},
    kBatchNorm{"BatchNorm", "A Scale layer with bias_term: true follows it"},
    kInstanceNorm{"MVN", "A Scale layer with bias_term: true follows it"},
    kSum{"Eltwise", "Write eltwise_param { operation: SUM }"},
    kProduct{"Eltwise", "Write eltwise_param { operation: PROD }"},
    kDifference{"Eltwise", "Write eltwise_param { operation: SUM coeff: 1 coeff: -1 }"},
    kMaximum{"Eltwise", "Write eltwise_param { operation: MAX }"},
    kLeaky{"ReLU", "Write relu_param { negative_slope: 0.01 }"},
    kLogSoftmax{"Softmax", "A Log layer follows it; SoftmaxWithLoss has both"};

const Words& layers() {
  static const Words words = {
      {"conv", kConvolution},
      {"convolution", kConvolution},
      {"convolutional", kConvolution},
      {"conv2dlayer", kConvolution},
      {"convtranspose", kDeconvolution},
      {"conv1dtranspose", kDeconvolution},
      {"conv2dtranspose", kDeconvolution},
      {"conv3dtranspose", kDeconvolution},
      {"convolution2dtranspose", kDeconvolution},
      {"deconv", kDeconvolution},
      {"depthwiseconv", kDepthwise},
      {"depthwiseconv2dnative", kDepthwise},
      {"separableconv", {"DepthwiseConvolution", "A Convolution with kernel_size: 1 follows it"}},
      {"linear", kInnerProduct},
      {"lazylinear", kInnerProduct},
      {"dense", kInnerProduct},
      {"denselayer", kInnerProduct},
      {"fullyconnected", kInnerProduct},
      {"connected", kInnerProduct},
      {"fc", kInnerProduct},
      {"gemm", kInnerProduct},
      {"bmm", {"MatMul"}},
      {"affine", kInnerProduct},
      {"maxpool", kMax},
      {"maxpooling", kMax},
      {"maxpool2dlayer", kMax},
      {"avgpool", kAverage},
      {"averagepool", kAverage},
      {"averagepooling", kAverage},
      {"meanpool", kAverage},
      {"pool", kMax},
      {"globalaveragepool", kGlobalAverage},
      {"globalaveragepooling", kGlobalAverage},
      {"globalavgpool", kGlobalAverage},
      {"globalmaxpool", kGlobalMax},
      {"globalmaxpooling", kGlobalMax},
      {"adaptiveavgpool", kAdaptive},
      {"adaptivemaxpool", kAdaptive},
      {"adaptiveaveragepooling", kAdaptive},
      {"adaptivemaxpooling", kAdaptive},
      {"maxunpool", {"Unpooling"}},
      {"batchnorm", kBatchNorm},
      {"batchnormalization", kBatchNorm},
      {"lazybatchnorm", kBatchNorm},
      {"syncbatchnorm", kBatchNorm},
      {"fusedbatchnorm", kBatchNorm},
      {"layernormalization", {"LayerNorm"}},
      {"groupnormalization", {"GroupNorm"}},
      {"instancenorm", kInstanceNorm},
      {"instancenormalization", kInstanceNorm},
      {"localresponsenorm", {"LRN"}},
      {"localresponsenormalization", {"LRN"}},
      {"l2norm", {"Normalize"}},
      {"l2normalize", {"Normalize"}},
      {"unitnormalization", {"Normalize"}},
      {"crossentropyloss", kSoftmaxLoss},
      {"crossentropy", kSoftmaxLoss},
      {"categoricalcrossentropy", kSoftmaxLoss},
      {"sparsecategoricalcrossentropy", kSoftmaxLoss},
      {"softmaxloss", kSoftmaxLoss},
      {"softmaxcrossentropy", kSoftmaxLoss},
      {"nllloss", {"SoftmaxWithLoss", "LogSoftmax is part of it: leave that out"}},
      {"bceloss", {"SigmoidCrossEntropyLoss", "The Sigmoid is part of it: leave that out"}},
      {"bcewithlogitsloss", kSigmoidLoss},
      {"bcewithlogits", kSigmoidLoss},
      {"binarycrossentropy", kSigmoidLoss},
      {"multilabelsoftmarginloss", kSigmoidLoss},
      {"mseloss", kEuclidean},
      {"mse", kEuclidean},
      {"meansquarederror", kEuclidean},
      {"l2loss", kEuclidean},
      {"maeloss", kL1},
      {"meanabsoluteerror", kL1},
      {"huberloss", {"SmoothL1Loss"}},
      {"huber", {"SmoothL1Loss"}},
      {"multimarginloss", {"HingeLoss"}},
      {"multilabelmarginloss", {"HingeLoss"}},
      {"hinge", {"HingeLoss"}},
      {"hingeembeddingloss", {"ContrastiveLoss"}},
      {"tripletmarginloss", {"TripletLoss"}},
      {"diceloss", {"DiceCoefLoss"}},
      {"logsoftmax", kLogSoftmax},
      {"leakyrelu", kLeaky},
      {"leaky", kLeaky},
      {"activation", {"ReLU"}},
      {"rectify", {"ReLU"}},
      {"softplus", {"BNLL"}},
      {"logistic", {"Sigmoid"}},
      {"hardtanh", {"Clip", "Write clip_param { min: -1 max: 1 }"}},
      {"clamp", {"Clip", "Write clip_param { min: 0 max: 1 }"}},
      {"dropout1d", {"SpatialDropout"}},
      {"dropout2d", {"SpatialDropout"}},
      {"dropout3d", {"SpatialDropout"}},
      {"spatialdropout", {"SpatialDropout"}},
      {"alphadropout", {"SeLuDropout"}},
      {"gaussiannoise", {"Noise"}},
      {"embedding", {"Embed"}},
      {"embeddingbag", {"Embed"}},
      {"lstmcell", {"LSTM"}},
      {"convlstm", {"ConvLSTM"}},
      {"simplernn", {"RNN"}},
      {"rnncell", {"RNN"}},
      {"attention", {"MultiHeadAttention"}},
      {"cat", kConcat},
      {"concatenate", kConcat},
      {"concatv2", kConcat},
      {"route", kConcat},
      {"merge", kConcat},
      {"add", kSum},
      {"addv2", kSum},
      {"sum", kSum},
      {"shortcut", kSum},
      {"elementwise", kSum},
      {"multiply", kProduct},
      {"mul", kProduct},
      {"subtract", kDifference},
      {"sub", kDifference},
      {"maximum", kMaximum},
      {"zeropad", kPad},
      {"zeropadding", kPad},
      {"constantpad", kPad},
      {"pad", kPad},
      {"upsampling", kInterp},
      {"upsamplingbilinear", kInterp},
      {"upsamplingnearest", kInterp},
      {"resize", kInterp},
      {"resizebilinear", kInterp},
      {"depthtospace", {"PixelShuffle"}},
      {"pixelunshuffle", {"Reorg"}},
      {"spacetodepth", {"Reorg"}},
      {"channelshuffle", {"ShuffleChannel"}},
      {"unflatten", kReshape},
      {"view", kReshape},
      {"squeeze", kReshape},
      {"unsqueeze", kReshape},
      {"expanddims", kReshape},
      {"chunk", {"Slice"}},
      {"narrow", {"Slice"}},
      {"cropping", {"Crop"}},
      {"repeat", kTile},
      {"repeatvector", kTile},
      {"expand", kTile},
      {"lambda", {"Python"}},
      {"mean", {"Reduction", "Write reduction_param { operation: MEAN }"}},
      {"reducemean", {"Reduction", "Write reduction_param { operation: MEAN }"}},
      {"reducesum", kReduction},
      {"abs", {"AbsVal"}},
      {"pow", {"Power"}},
      {"sqrt", {"Power", "Write power_param { power: 0.5 }"}},
      {"biasadd", {"Bias"}},
      {"inputlayer", {"Input"}},
      {"placeholder", {"Input"}},
      {"dataloader", kImages},
      {"imagefolder", kImages},
      {"roipool", {"ROIPooling"}},
      {"affinegrid", {"SpatialTransformer"}},
      {"gridsample", {"SpatialTransformer"}},
      {"categoricalaccuracy", kAccuracy},
      {"sparsecategoricalaccuracy", kAccuracy},
      {"topkcategoricalaccuracy", {"Accuracy", "Write accuracy_param { top_k: 5 }"}},
  };
  return words;
}

const Words& solvers() {
  static const Words words = {
      {"momentum", {"SGD", "Write momentum: 0.9"}},
      {"sgdm", {"SGD", "Write momentum: 0.9"}},
      {"asgd", {"SGD"}},
      {"gradientdescent", {"SGD"}},
      {"gradientdescentoptimizer", {"SGD"}},
      {"momentumoptimizer", {"SGD", "Write momentum: 0.9"}},
      {"lars", {"SGD", "Write larc: true"}},
      {"nag", {"Nesterov"}},
      {"sgdnesterov", {"Nesterov"}},
      {"nesterovmomentum", {"Nesterov"}},
      {"adamoptimizer", {"Adam"}},
      {"adamax", {"Adam"}},
      {"nadam", {"Adam"}},
      {"radam", {"Adam"}},
      {"amsgrad", {"Adam"}},
      {"sparseadam", {"Adam"}},
      {"rprop", {"RMSProp"}},
      {"rmspropoptimizer", {"RMSProp"}},
      {"adagradoptimizer", {"AdaGrad"}},
  };
  return words;
}

constexpr Meaning kStep{"step", "Write gamma: 0.1 stepsize: 10000"},
    kMultistep{"multistep", "Write gamma: 0.1 stepvalue: 10000 stepvalue: 20000"},
    kExponential{"exp", "Write gamma: 0.9999"}, kPlateau{"plateau"}, kCosine{"cosine"},
    kRestarts{"sgdr"}, kOneCycle{"onecycle"}, kFixed{"fixed"},
    kPolynomial{"poly", "Write power: 1"};

const Words& rate_policies() {
  static const Words words = {
      {"steplr", kStep},
      {"stepdecay", kStep},
      {"multisteplr", kMultistep},
      {"milestones", kMultistep},
      {"piecewiseconstant", kMultistep},
      {"piecewiseconstantdecay", kMultistep},
      {"exponential", kExponential},
      {"exponentiallr", kExponential},
      {"exponentialdecay", kExponential},
      {"cosineannealing", kCosine},
      {"cosineannealinglr", kCosine},
      {"cosinelr", kCosine},
      {"cosinedecay", kCosine},
      {"cosineannealingwarmrestarts", kRestarts},
      {"cosinedecayrestarts", kRestarts},
      {"cosinerestarts", kRestarts},
      {"onecyclelr", kOneCycle},
      {"1cycle", kOneCycle},
      {"reducelronplateau", kPlateau},
      {"reduceonplateau", kPlateau},
      {"polynomial", kPolynomial},
      {"polynomiallr", kPolynomial},
      {"polynomialdecay", kPolynomial},
      {"linear", kPolynomial},
      {"linearlr", kPolynomial},
      {"lineardecay", kPolynomial},
      {"inversetimedecay", {"inv", "Write gamma: 0.0001 power: 0.75"}},
      {"constant", kFixed},
      {"constantlr", kFixed},
      {"none", kFixed},
  };
  return words;
}

constexpr Meaning kMsra{"msra"}, kXavier{"xavier"}, kGaussian{"gaussian", "Write std: 0.01"},
    kUniform{"uniform", "Write min: -0.05 max: 0.05"}, kZeros{"constant", "Write value: 0"};

const Words& fillers() {
  static const Words words = {
      {"kaiming", kMsra},
      {"kaimingnormal", kMsra},
      {"kaiminguniform", kMsra},
      {"he", kMsra},
      {"henormal", kMsra},
      {"heuniform", kMsra},
      {"mcra", kMsra},
      {"glorot", kXavier},
      {"glorotnormal", kXavier},
      {"glorotuniform", kXavier},
      {"xaviernormal", kXavier},
      {"xavieruniform", kXavier},
      {"lecun", kXavier},
      {"lecunnormal", kXavier},
      {"lecununiform", kXavier},
      {"variancescaling", kXavier},
      {"normal", kGaussian},
      {"randn", kGaussian},
      {"randomnormal", kGaussian},
      {"truncnormal", kGaussian},
      {"truncatednormal", kGaussian},
      {"rand", kUniform},
      {"random", kUniform},
      {"randomuniform", kUniform},
      {"zeros", kZeros},
      {"zero", kZeros},
      {"ones", {"constant", "Write value: 1"}},
      {"one", {"constant", "Write value: 1"}},
      {"const", {"constant"}},
      {"eye", {"diagonal"}},
      {"identity", {"diagonal"}},
  };
  return words;
}

const Words& words_of(Vocabulary vocabulary) {
  switch (vocabulary) {
    case Vocabulary::layers:
      return layers();
    case Vocabulary::solvers:
      return solvers();
    case Vocabulary::rate_policies:
      return rate_policies();
    case Vocabulary::fillers:
      return fillers();
  }
  return layers();
}

// "torch.nn.init.kaiming_normal_" -> "kaimingnormal".
std::string key_of(std::string_view word) {
  const size_t dot = word.rfind('.');
  if (dot != std::string_view::npos) word.remove_prefix(dot + 1);
  std::string key;
  for (const char c : word) {
    const auto letter = static_cast<unsigned char>(c);
    if (std::isalnum(letter)) key += static_cast<char>(std::tolower(letter));
  }
  return key;
}

// "conv2d" -> "conv".
std::string without_dimensions(const std::string& key) {
  const size_t size = key.size();
  const bool has = size > 2 && key[size - 1] == 'd' && key[size - 2] >= '1' && key[size - 2] <= '3';
  return has ? key.substr(0, size - 2) : key;
}

}  // namespace

std::string suggestion(Vocabulary vocabulary, std::string_view word,
                       const std::vector<std::string>& candidates) {
  const Words& words = words_of(vocabulary);
  const std::string key = key_of(word);
  auto found = words.find(key);
  if (found == words.end()) found = words.find(without_dimensions(key));
  if (found == words.end()) return did_you_mean(word, candidates);
  const Meaning& meaning = found->second;
  const bool known =
      std::find(candidates.begin(), candidates.end(), meaning.name) != candidates.end();
  if (!known) return did_you_mean(word, candidates);
  return cat(" (did you mean \"", meaning.name, "\"?", *meaning.advice ? " " : "", meaning.advice,
             ")");
}

}  // namespace crema
