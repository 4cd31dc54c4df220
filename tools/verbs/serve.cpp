// `crema serve FOLDER`, or `crema serve -model NET.prototxt -weights FILE`: answers HTTP requests with what
// trained nets compute.
#include <atomic>
#include <csignal>
#include <filesystem>
#include <iostream>
#include <thread>

#include "base/error.h"
#include "crema/setting_names.h"
#include "tools/devices.h"
#include "tools/flags/image_flags.h"
#include "tools/flags/net_flags.h"
#include "tools/serve/model_folder.h"
#include "tools/serve/serve_server.h"
#include "tools/verb.h"

namespace crema {

namespace {

using ServeFlags = FlagsOf<"model", "weights", "weights_mode", "name", "labels", "resize", "mean",
                           "scale", "rgb", "assume", "batch", "batch_delay", "threads", "gpu",
                           "precision", "port", "host", "max_body">;

constexpr int kUsualServeBatch = 8;

ModelOptions model_options(const ServeFlags& flags) {
  ModelOptions options;
  const std::vector<int> gpus = flags.gpu.empty() ? std::vector<int>() : gpus_of(flags.gpu);
  require(gpus.size() <= 1, "-gpu ", flags.gpu, ": serve computes on one GPU");
  if (!gpus.empty()) options.device = ComputeDevice::gpu(gpus[0]);
  options.precision = flags.precision;
  options.weights_mode = flags.weights_mode;
  return options;
}

ServedModelOptions served_options(const ServeFlags& flags, const FoundModel& found) {
  ServedModelOptions options;
  options.name = found.name;
  options.net = found.net;
  options.batch = flags.batch > 0 ? flags.batch : kUsualServeBatch;
  options.threads = flags.threads > 0 ? flags.threads : 1;
  options.model = model_options(flags);
  options.model.weights = split(found.weights, ',');
  options.model.pictures.labels = found.labels;
  return options;
}

std::vector<ServedModelOptions> models_of(const VerbCall& call, const ServeFlags& flags) {
  std::vector<ServedModelOptions> models;
  if (!call.arguments.empty()) {
    require(flags.model.empty() && flags.weights.empty(),
            "serve takes a folder of models, or -model and -weights, not both");
    for (const char* name : {"name", "labels", "resize", "mean", "scale", "rgb", "assume"})
      require(call.given.count(name) == 0, "-", name, " is for one -model, not for a folder");
    for (const FoundModel& found : find_models(call.arguments[0]))
      models.push_back(served_options(flags, found));
    return models;
  }
  require(!flags.model.empty(), "a net is needed: -model NET.prototxt, or a folder of models");
  require(!flags.weights.empty(), "weights are needed: -weights FILE.caffemodel");
  const std::string name =
      flags.name.empty() ? std::filesystem::path(flags.model).stem().string() : flags.name;
  require(!name.empty() && name.find('/') == std::string::npos, "-name ", name,
          ": a name has no \"/\"");
  models.push_back(served_options(flags, {name, flags.model, flags.weights, flags.labels}));
  ModelOptions& options = models.back().model;
  options.assume = flags.assume;
  options.pictures.resize = flags.resize;
  options.pictures.mean = flags.mean;
  if (flags.scale_given) options.pictures.scale = static_cast<float>(flags.scale);
  options.pictures.rgb = flags.rgb;
  return models;
}

void check_serve_flags(const ServeFlags& flags) {
  constexpr int kMostBatch = 4096, kMostThreads = 256, kMostMiB = 1024;
  constexpr double kMostDelay = 10000;
  require(flags.port >= 0 && flags.port <= 65535, "-port ", flags.port,
          ": expected 0, a free one, to 65535");
  require(flags.batch >= 0 && flags.batch <= kMostBatch, "-batch ", flags.batch, ": expected 1 to ",
          kMostBatch);
  require(flags.threads >= 0 && flags.threads <= kMostThreads, "-threads ", flags.threads,
          ": expected 1 to ", kMostThreads);
  require(flags.batch_delay >= 0 && flags.batch_delay <= kMostDelay, "-batch_delay ",
          flags.batch_delay, ": expected 0 to ", kMostDelay, " milliseconds");
  require(flags.max_body >= 1 && flags.max_body <= kMostMiB, "-max_body ", flags.max_body,
          ": expected 1 to ", kMostMiB, " MiB");
  weights_mode_of_flag(flags.weights_mode);
  InputPreparation checked;
  change_preparation(picture_settings(flags), &checked);
}

int run_serve(const VerbCall& call, const ServeFlags& flags) {
  check_serve_flags(flags);
  name_settings(SettingStyle::flags);
  ServeOptions options;
  options.models = models_of(call, flags);
  options.host = flags.host;
  options.port = flags.port;
  options.delay = std::chrono::microseconds(static_cast<int64_t>(flags.batch_delay * 1000));
  options.max_body = static_cast<size_t>(flags.max_body) << 20;
  // Blocked before there are other threads, so that only this one receives them.
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  ServeServer server(options, call.log);
  const pthread_t main_thread = pthread_self();
  std::atomic<bool> over = false;
  std::thread serving([&] {
    server.serve();
    over = true;
    pthread_kill(main_thread, SIGTERM);  // NOLINT(bugprone-bad-signal-to-kill-thread)
  });
  const bool any = flags.host == "0.0.0.0" || flags.host == "::";
  const bool v6 = !any && flags.host.find(':') != std::string::npos;
  const std::string host = any ? "127.0.0.1" : v6 ? "[" + flags.host + "]" : flags.host;
  call.log.info(cat("Serving ", options.models.size(),
                    options.models.size() == 1 ? " model" : " models", " at http://", host, ":",
                    server.port(), "/; press Ctrl-C to stop."));
  int signal = 0;
  sigwait(&signals, &signal);
  if (!over) {
    call.log.info("Ending: requests that have come are answered first.");
    server.finish();
    sigwait(&signals, &signal);
  }
  if (!over) server.stop();
  serving.join();
  return 0;
}

REGISTER_VERB(
    serve,
    {.summary = "answers HTTP requests with what trained nets compute",
     .usage = "FOLDER|-model NET.prototxt -weights FILE [flags]",
     .example = "crema serve -model models/lenet/digits_train_val.prototxt -weights "
                "models/lenet/lenet_digits_iter_1500.caffemodel -name digits",
     .meanings =
         {{"gpu", "The number of the GPU to run on. Empty: the CPU."},
          {"precision",
           "The precision: fp32, tf32, bf16 or fp16. Empty: tf32 on a GPU, fp32 on a CPU."},
          {"weights",
           "Trained weights (.caffemodel or .caffemodel.h5); separate several with commas."},
          {"batch", "The most samples per batch; 1: requests never share one. 0: 8."},
          {"threads", "How many batches of a model are computed at a time. 0: 1."},
          {"scale",
           "The factor for values after the mean, such as 0.00390625. Empty: what the net says."},
          {"port", "The port to listen at; 0 takes a free one."},
          {"host",
           "The address to listen at: 127.0.0.1 for this machine only, 0.0.0.0 for all that can "
           "reach it."}},
     .max_arguments = 1,
     .log = LogStyle::brief,
     .run = run_serve});

}  // namespace

}  // namespace crema
