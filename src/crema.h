// Crema as a library: Model runs a net, Trainer trains one, both from Caffe's files.
//
// Errors: whatever goes wrong (a mistake in a file, a name or a size that does not fit, a full
// disk, no memory on the GPU) is thrown as crema::Error, whose what() is a message for a person.
// Only std::bad_alloc may be thrown besides. After an Error in a constructor there is no object;
// after one in a member function the object can still be used, unless it was a DeviceLost.
//
// Threads: an object is used by one thread at a time, which need not be the one that made it.
// Different objects may be used by different threads at the same time. To run one net in n threads,
// open a Model and give each other thread a Model::shared() of it: the weights are stored once. On a
// CPU each calling thread has its own OpenMP threads, so n busy threads need OMP_NUM_THREADS =
// cores / n. Two Trainers must not have the same snapshot_prefix. Nets that
// read HDF5 files need an HDF5 library that was built thread-safe, as Debian's is.
//
// Paths: relative ones are those of the working directory; files that a file names are also looked
// up in its folder.
#ifndef CREMA_H
#define CREMA_H

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/exceptions.h"
#include "layers/custom_layer.h"

namespace crema {

// Where a net computes: ComputeDevice::cpu(), or ComputeDevice::gpu(0), the first GPU.
class ComputeDevice {
 public:
  static ComputeDevice cpu() { return {false, 0}; }
  static ComputeDevice gpu(int ordinal = 0) { return {true, ordinal}; }
  bool is_gpu() const { return is_gpu_; }
  int ordinal() const { return ordinal_; }  // of the GPU

 private:
  ComputeDevice(bool is_gpu, int ordinal) : is_gpu_(is_gpu), ordinal_(ordinal) {}
  bool is_gpu_;
  int ordinal_;
};

// GPUs that this process can use; 0 in a build without CUDA.
int usable_gpus();

// Takes the log, line by line: Caffe's lines about nets and training, and warnings. Called while a
// function of the object runs, never by two threads at once. It must not throw, nor call the
// object.
enum class LogLevel { info, warning, error };
using LogCallback = std::function<void(LogLevel level, std::string_view line)>;

// An array with a name. Shapes count the slowest axis first, as Caffe does: N, C, H, W.
struct BlobInfo {
  std::string name;
  std::vector<int64_t> shape;   // empty: one number
  std::string dtype;            // what it is stored in: "float32", "float16", "bfloat16", ...
  std::string layer_type = {};  // the type of the layer that computes it, if it is an output
};

// A blob of weights: "conv1" has index 0, the weights, and index 1, the bias.
struct ParameterInfo {
  std::string layer;
  int index = 0;
  std::vector<int64_t> shape;
};

// How pictures become an input, in place of what the net's file says: a training file its data layers, a file
// of `crema deploy` its comments. Old deploy files say nothing of it.
struct PictureOptions {
  std::string resize = {};          // "256x256", width first: the size that they get first
  std::string mean = {};            // subtracted: "104,117,123", or a mean file
  std::optional<float> scale = {};  // multiplies values after the mean
  bool rgb = false;                 // the net's planes are red, green, blue
  std::string labels = {};          // file with the names of the classes, one a line
};

enum class PictureFormat { grey, bgr, rgb };

// A picture in memory: rows from the top, the bytes of a pixel next to each other.
struct PictureView {
  int width = 0, height = 0;
  PictureFormat format = PictureFormat::rgb;
  std::span<const uint8_t> pixels = {};
};

// A class that a Model proposes.
struct ClassScore {
  int index = 0;
  std::string name;  // "": the classes have no names
  float score = 0;
};

struct ModelOptions {
  ComputeDevice device = ComputeDevice::cpu();
  // Files to load in turn, .caffemodel or .h5; layers are matched by name.
  std::vector<std::string> weights = {};
  // Contents of .caffemodel files in memory, embedded or decrypted by the program, loaded after those
  // files. Only the constructor reads them.
  std::vector<std::string_view> weights_contents = {};
  // Where stored blobs do not fit the layer of their name: "strict" is an Error, "match" leaves that
  // layer as it is.
  std::string weights_mode = "strict";
  // "TEST" or "TRAIN", level and stages choose among the net's layers (include, exclude).
  std::string phase = "TEST";
  int level = 0;
  std::vector<std::string> stages = {};
  // Opens a net that is trained as what it is used for, as `crema deploy` writes it: Input layers in
  // place of data and labels, one sample at a time unless `batch` says otherwise; probabilities in
  // place of losses.
  bool deploy = false;
  // With deploy: shapes of inputs whose data are not at hand, "data=1x3x224x224,rois=300x5".
  std::string assume = {};
  PictureOptions pictures = {};
  // Samples per batch, in place of what Input and data layers say; 0: what they say.
  int batch = 0;
  // "fp32", "tf32", "bf16", "fp16"; the last three on a GPU only. "": tf32 on a GPU, else fp32.
  std::string precision = {};
  // Every blob can be read, not only the outputs. It costs memory and speed: nothing is fused.
  bool keep_blobs = false;
  // Model::backward() can be called. Implies keep_blobs, and takes memory for the gradients of blobs
  // and weights.
  bool gradients = false;
  // The same bits on every run, also on a GPU, which is slower there.
  bool deterministic = false;
  LogCallback log = {};  // none: silent
};

// A net that computes. Its blobs are float32 to the caller whatever they are stored in.
class Model {
 public:
  // Opens a net; text of any of Caffe's generations. Error with file:line:column for a mistake in
  // it, and for weights that do not fit.
  explicit Model(const std::string& net_file, ModelOptions options = {});
  // The same for text in memory. Messages call it `name`; files that it names are looked up in the
  // working directory.
  static Model from_text(const std::string& text, ModelOptions options = {},
                         const std::string& name = "net");
  ~Model();
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;

  // The same net on the same weights, for another thread: all Models that share weights can run
  // forward() at the same time. Each has its own blobs and, on a GPU, its own stream and CUDA graph.
  // It has the input shapes of this one, but no values yet; data layers read their files from the
  // beginning, recurrent layers start from zero. The weights live as long as one of the Models.
  // Error for a net whose passes change weights: one of phase "TRAIN", or with layers that do.
  Model shared() const;

  const std::string& name() const;  // that the file gives the net

  // The blobs that the caller fills: tops of Input layers, and what old files name with `input:`.
  // Data layers read their own files.
  std::vector<BlobInfo> inputs() const;
  // The results: blobs that no layer reads, in Caffe's order. Where a shape depends on the data
  // (detections), it is the largest before the first forward(), and then that of the last one.
  std::vector<BlobInfo> outputs() const;

  // Copies values, in row-major order, into an input, where they stay until set again. Error for a
  // name that is not an input and for another number of values than its shape has.
  void set_input(const std::string& name, std::span<const float> values);
  // The values of an input, to be written in place, in row-major order: each pass reads what is there
  // then. At first they are those set before, or 0. The memory stays where it is until set_input() or
  // set_picture() for this input, or any reshape().
  std::span<float> input(const std::string& name);
  // Makes one sample of an input from a picture: resized, cropped and transformed as the net expects. The
  // other samples keep theirs; all of the first batch must be set. Error for what is no picture, and if its
  // size does not fit.
  void set_picture(const std::string& name, const std::string& file, int sample = 0);
  void set_picture(const std::string& name, const PictureView& picture, int sample = 0);
  // The same from the content of an image file.
  void set_picture_content(const std::string& name, std::string_view file, int sample = 0);
  // What set_picture() makes of a picture: the values of one sample, from the content of an image file. Any
  // threads may call it at the same time, also while the Model runs or after its end. Error for what is no
  // picture. picture_reader() itself is Error for what is not an input of pictures.
  using PictureReader = std::function<std::vector<float>(std::string_view file)>;
  PictureReader picture_reader(const std::string& name) const;
  // Gives an input another shape and plans the net anew. What inputs held is lost: all must be set
  // again. Error for what is not an input, or when layers cannot take the shape: then it keeps
  // its shape.
  void reshape(const std::string& name, const std::vector<int64_t>& shape);
  // The same for several inputs at once, for layers that need the same batch of each.
  using InputShape = std::pair<std::string, std::vector<int64_t>>;
  void reshape(const std::vector<InputShape>& shapes);

  // One pass. Data layers advance by a batch each time. Error when an input has not been set, or a
  // label is not a class.
  void forward();
  // A pass that ends after a layer, or after the last layer that writes a blob of this name. Blobs are
  // then what the layers up to there have made of them. Error without keep_blobs.
  void forward_to(const std::string& last);
  // After a forward(), or a forward_to() that computes it: the gradients of the blobs before `blob`,
  // from `gradient`, which has a value for each of blob's. A 1 for a class and 0 for others gives the
  // class's saliency. Error without ModelOptions::gradients.
  void backward(const std::string& blob, std::span<const float> gradient);
  // A copy of a blob's gradient after a backward(), in row-major order: of an input or any blob
  // between. Error where none flows.
  std::vector<float> gradient(const std::string& name) const;

  // The classes of a sample with the highest scores, the highest first, after a forward(). The scores are those of `blob`, or
  // "": the output that is a Softmax or Sigmoid, else the only one with a row for each sample.
  std::vector<ClassScore> best(int count, int sample = 0, const std::string& blob = {}) const;
  // The names of the classes, from pictures.labels or else the file that the net's text names; empty: they have none.
  // Error unless there are `count` names; 0: any number is right.
  std::vector<std::string> class_names(int64_t count = 0) const;

  // Name, shape and type of a blob after a forward(): of an output, or with keep_blobs of any.
  // Error with similar names if there is none. Where in-place layers make several versions, the
  // last one.
  BlobInfo blob(const std::string& name) const;
  // A copy of its values, in row-major order.
  std::vector<float> values(const std::string& name) const;
  // The same into the caller's memory. Error for another number of values.
  void values(const std::string& name, std::span<float> to) const;
  // The values in the net's own memory, without a copy: until the next call that is not const, or
  // the end of the Model. Error, which says so, for a blob that is on a GPU, is not float32, or
  // is not stored row-major; values() always works.
  std::span<const float> view(const std::string& name) const;

  // Loads one more file of weights, as ModelOptions::weights. This and set_parameter() change the
  // weights of all Models that share them, from their next forward() on: a call waits until none of
  // them runs forward(), and a forward() that starts meanwhile waits for the call.
  void load_weights(const std::string& path);
  // The same for the content of a .caffemodel in memory. Messages call it `name`.
  void load_weights_content(std::string_view content, const std::string& name = "weights");
  // The weights in Caffe's order; a blob that layers share is with its first layer.
  std::vector<ParameterInfo> parameters() const;
  // A copy of one, in row-major order; and back. Error for a name that is not there, or another
  // size.
  std::vector<float> parameter(const std::string& layer, int index = 0) const;
  void set_parameter(const std::string& layer, int index, std::span<const float> values);

 private:
  struct Impl;
  explicit Model(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

struct TrainerOptions {
  // The solver's solver_mode and device_id do not count.
  ComputeDevice device = ComputeDevice::cpu();
  // Files to start from, in place of the solver's own `weights`; weights_mode as in ModelOptions.
  std::vector<std::string> weights = {};
  std::string weights_mode = "strict";
  // A .solverstate to resume from; not together with weights.
  std::string snapshot = {};
  // Added to the solver's train_state.
  std::optional<int> level = {};
  std::vector<std::string> stages = {};
  // As in ModelOptions. "": what the solver says, else tf32 on a GPU and fp32 on a CPU.
  std::string precision = {};
  bool deterministic = false;
  LogCallback log = {};
};

// A number that a test gives: an output of n elements gives n of them under one name.
struct TestOutput {
  std::string name;
  float value = 0;        // mean over the batches
  float loss_weight = 0;  // not 0: the number is a loss with this weight
};

struct TestResult {
  std::optional<double> loss;  // with test_compute_loss
  std::vector<TestOutput> outputs;
};

struct SavedFiles {
  std::string weights;
  std::string state;  // "": the solver has snapshot_include_state: false
};

// A net that learns, as a solver.prototxt says. An iteration is one update of the weights.
class Trainer {
 public:
  // Opens a solver with its nets and gives the weights their first values, those of files, or of a
  // snapshot. Error with file:line:column for a mistake in one of the files.
  explicit Trainer(const std::string& solver_file, TrainerOptions options = {});
  ~Trainer();
  Trainer(Trainer&&) noexcept;
  Trainer& operator=(Trainer&&) noexcept;

  // Trains that many iterations, beyond max_iter too, with the tests and snapshots that fall due,
  // whose files are there when it returns. Error when an input has not been set, and when the loss
  // is nan or infinite (unless the solver has on_divergence: IGNORE). A snapshot that cannot be
  // written is an error line of the log.
  void step(int64_t iterations = 1);
  // Trains up to max_iter, as `crema train` does: with the last test and snapshot.
  void solve();

  int64_t iteration() const;       // updates done so far
  int64_t max_iterations() const;  // max_iter, or what max_epoch comes to; 0: neither is given
  // Mean over the last average_loss iterations, as displays show it; by default (1) that of the
  // last one. nan before the first, and after a resume until the next.
  double loss() const;
  // base_lr after lr_policy, of the iteration that comes next.
  double learning_rate() const;

  // Runs each test net for its test_iter batches, or with test_epoch once over its data. One result
  // for each, in the solver's order and without those whose test_iter is 0.
  std::vector<TestResult> test();
  // Writes weights and solver state; each file is whole or absent. Error when that fails: the
  // snapshots before stay.
  SavedFiles snapshot();

  // Nets with Input layers: the blobs that the caller fills, as in Model. Set values stay; with
  // iter_size each of its passes reads the same. Test nets count from 0 in the order of test().
  std::vector<BlobInfo> inputs() const;
  void set_input(const std::string& name, std::span<const float> values);
  std::vector<BlobInfo> test_inputs(int net) const;
  void set_test_input(int net, const std::string& name, std::span<const float> values);

  // As in Model. What a set parameter has gathered in the optimizer (momentum) stays.
  std::vector<ParameterInfo> parameters() const;
  std::vector<float> parameter(const std::string& layer, int index = 0) const;
  void set_parameter(const std::string& layer, int index, std::span<const float> values);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace crema

#endif
