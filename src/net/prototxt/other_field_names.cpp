#include "net/prototxt/other_field_names.h"

#include <cctype>

#include "base/strings.h"

namespace crema {
namespace {

struct OtherField {
  const char* type;         // the message, or several
  const char* words;        // in lower case, without underscores
  const char* name;         // ours; "" for words that are no field
  const char* advice = "";  // a sentence without its full stop
};

constexpr const char* kActivation =
    "an activation is a layer of its own: layer { type: \"ReLU\" bottom: \"conv1\" top: "
    "\"conv1\" }";
constexpr const char* kInputs = "the size of the bottom is known: remove it";

constexpr OtherField kFields[] = {
    {"ConvolutionParameter DeformableConvolutionParameter",
     "filters nfilters numfilter numfilters outchannels outputchannels channels features outputs "
     "units nout",
     "num_output"},
    {"ConvolutionParameter DeformableConvolutionParameter PoolingParameter",
     "kernel ksize kernelshape filtersize size poolsize window windowsize", "kernel_size"},
    {"ConvolutionParameter DeformableConvolutionParameter PoolingParameter",
     "padding pads padsize paddings", "pad",
     "A number: 1 keeps the size with kernel_size: 3 and stride: 1, as \"same\" does"},
    {"ConvolutionParameter DeformableConvolutionParameter", "dilationrate dilations", "dilation"},
    {"ConvolutionParameter DeformableConvolutionParameter", "groups ngroups numgroup", "group"},
    {"ConvolutionParameter DeformableConvolutionParameter InnerProductParameter",
     "bias usebias withbias hasbias", "bias_term"},
    {"ConvolutionParameter DeformableConvolutionParameter InnerProductParameter",
     "kernelinitializer weightinitializer weightinit initializer init filler", "weight_filler"},
    {"ConvolutionParameter DeformableConvolutionParameter InnerProductParameter",
     "biasinitializer biasinit", "bias_filler"},
    {"ConvolutionParameter DeformableConvolutionParameter InnerProductParameter",
     "activation activationfunction nonlinearity", "", kActivation},
    {"ConvolutionParameter DeformableConvolutionParameter InnerProductParameter",
     "inchannels infeatures inputchannels inputsize inputdim inputshape", "", kInputs},
    {"InnerProductParameter",
     "units outfeatures outchannels features outputs neurons nout filters outputdim hidden size",
     "num_output"},
    {"PoolingParameter", "type mode method op kind", "pool", "MAX or AVE"},
    {"PoolingParameter", "global", "global_pooling"},
    {"DropoutParameter", "rate p ratio prob probability dropout", "dropout_ratio"},
    {"BatchNormParameter", "epsilon", "eps"},
    {"BatchNormParameter", "momentum decay", "moving_average_fraction",
     "The share that the old mean keeps: PyTorch's momentum 0.1 is 0.9"},
    {"BatchNormParameter", "affine scale bias center", "",
     "a Scale layer with bias_term: true follows BatchNorm and has the factors"},
    {"ReLUParameter", "alpha slope leak leakiness", "negative_slope"},
    {"ConcatParameter SoftmaxParameter SoftmaxLossParameter SliceParameter", "dim dims", "axis"},
    {"EltwiseParameter", "op type mode", "operation", "SUM, PROD or MAX"},
    {"InputParameter", "dim dims size", "shape", "Write shape { dim: 1 dim: 3 dim: 32 dim: 32 }"},
    {"FillerParameter", "stddev sigma", "std"},
    {"FillerParameter", "val constant", "value"},
    {"DataParameter ImageDataParameter HDF5DataParameter",
     "batch batchsize minibatch minibatchsize", "batch_size"},
    {"DataParameter ImageDataParameter HDF5DataParameter",
     "path file filename database db root folder dataset dir data lmdb", "source"},
    {"DataParameter", "type format kind", "backend", "LMDB, for example"},
    {"TransformationParameter", "mean means", "mean_value"},
    {"TransformationParameter", "crop randomcrop cropsize size", "crop_size"},
    {"TransformationParameter", "flip hflip horizontalflip randomflip randomhorizontalflip",
     "mirror"},
    {"TransformationParameter", "rescale normalize normalise divide", "scale",
     "A factor: 0.00390625 is 1/256"},
    {"LayerParameter", "input inputs from src", "bottom"},
    {"LayerParameter", "output outputs out", "top"},
    {"LayerParameter", "class kind op optype", "type"},
    {"LayerParameter", "id", "name"},
    {"LayerParameter", "activation activationfunction", "", kActivation},
    {"LayerParameter", "filters units outchannels outfeatures", "",
     "write num_output inside convolution_param or inner_product_param { }"},
    {"LayerParameter", "padding kernel", "",
     "write pad and kernel_size inside convolution_param or pooling_param { }"},
    {"LayerParameter", "trainable frozen freeze requiresgrad", "",
     "param { lr_mult: 0 } keeps a layer's weights as they are"},
    {"NetParameter SolverParameter", "loss lossfunction criterion", "",
     "a loss is a layer of the net: layer { type: \"SoftmaxWithLoss\" bottom: \"scores\" bottom: "
     "\"label\" top: \"loss\" }"},
    {"NetParameter SolverParameter", "metric metrics accuracy", "",
     "it is a layer of the net: layer { type: \"Accuracy\" bottom: \"scores\" bottom: \"label\" "
     "top: \"accuracy\" include { phase: TEST } }"},
    {"NetParameter SolverParameter",
     "data dataset datasets traindata trainingdata train testdata valdata source database "
     "traindir",
     "",
     "data come from a layer of the net: layer { type: \"Data\" top: \"data\" top: \"label\" "
     "data_param { source: \"FOLDER\" backend: LMDB batch_size: 64 } }"},
    {"NetParameter SolverParameter", "batch batchsize minibatch", "",
     "the data layers have it: data_param { batch_size: 64 }"},
    {"NetParameter SolverParameter", "shuffle", "",
     "data layers have it: image_data_param { shuffle: true }; `crema convert_imageset -shuffle` "
     "shuffles a database"},
    {"SolverParameter", "lr learningrate eta alpha initiallr lr0", "base_lr"},
    {"SolverParameter", "epochs epoch numepochs nepochs nbepoch nepoch maxepochs", "max_epoch"},
    {"SolverParameter",
     "iterations iters iter niter niters numiterations maxiterations maxsteps steps totalsteps",
     "max_iter"},
    {"SolverParameter", "optimizer optimiser optim algorithm method", "type"},
    {"SolverParameter", "model network arch netfile", "net"},
    {"SolverParameter", "scheduler lrscheduler schedule lrschedule policy lrdecaypolicy",
     "lr_policy"},
    {"SolverParameter", "wd l2 decay weightdecay l2regularization", "weight_decay"},
    {"SolverParameter", "beta1 rho", "momentum"},
    {"SolverParameter", "beta2", "momentum2"},
    {"SolverParameter", "betas", "momentum", "Write momentum: 0.9 momentum2: 0.999"},
    {"SolverParameter", "eps epsilon", "delta"},
    {"SolverParameter", "nesterov", "type", "Write type: \"Nesterov\""},
    {"SolverParameter", "seed manualseed rngseed", "random_seed"},
    {"SolverParameter", "device accelerator", "solver_mode", "CPU or GPU"},
    {"SolverParameter", "gpu gpus cuda deviceids gpuid gpuids", "device_id",
     "Write solver_mode: GPU device_id: 0"},
    {"SolverParameter",
     "loginterval logevery logfreq logsteps loggingsteps printinterval printfreq printevery "
     "verbose logeverynsteps",
     "display"},
    {"SolverParameter",
     "evalinterval valinterval evalevery testevery evalsteps valcheckinterval testfreq",
     "test_interval"},
    {"SolverParameter", "validationsteps valiter valiters valsteps testiters teststeps",
     "test_iter"},
    {"SolverParameter",
     "saveinterval saveevery savesteps savefreq checkpoint checkpointinterval snapshotinterval "
     "snapshotiter",
     "snapshot"},
    {"SolverParameter",
     "checkpointdir checkpointpath outputdir output savedir savepath logdir snapshotpath",
     "snapshot_prefix"},
    {"SolverParameter", "clipnorm gradclip clipgrad maxgradnorm gradientclipval gradclipnorm",
     "clip_gradients"},
    {"SolverParameter", "pretrained pretrainedweights initweights finetune checkpointfile",
     "weights"},
    {"SolverParameter", "warmup warmupsteps warmupiters numwarmupsteps", "warmup_iter"},
    {"SolverParameter",
     "gradientaccumulation accumulationsteps gradientaccumulationsteps accumulategradbatches",
     "iter_size"},
    {"SolverParameter", "fp16 amp mixedprecision dtype", "precision", "\"bf16\", for example"},
};

// "kernelSize" and "kernel_size" -> "kernelsize".
std::string key_of(std::string_view word) {
  std::string key;
  for (const char c : word) {
    const auto letter = static_cast<unsigned char>(c);
    if (std::isalnum(letter)) key += static_cast<char>(std::tolower(letter));
  }
  return key;
}

bool has_word(std::string_view words, const std::string& key) {
  for (const std::string& one : split(std::string(words), ' '))
    if (one == key) return true;
  return false;
}

}  // namespace

std::string other_field_name(const google::protobuf::Descriptor& type, std::string_view word) {
  const std::string key = key_of(word);
  // Layer, kernelSize: only the letters differ.
  for (int i = 0; i < type.field_count(); ++i) {
    const std::string& name = type.field(i)->name();
    if (name != word && key_of(name) == key) return cat(" (did you mean \"", name, "\"?)");
  }
  for (const OtherField& field : kFields) {
    if (!has_word(field.type, type.name()) || !has_word(field.words, key)) continue;
    if (!*field.name) return cat("; ", field.advice);
    if (!type.FindFieldByName(field.name)) continue;
    return cat(" (did you mean \"", field.name, "\"?", *field.advice ? " " : "", field.advice, ")");
  }
  return "";
}

}  // namespace crema
