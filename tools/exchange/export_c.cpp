#include "tools/exchange/export_c.h"

#include <filesystem>
#include <memory>

#include "base/files.h"
#include "base/visible.h"
#include "device/memory_account.h"
#include "exchange/c/export.h"
#include "tools/exchange/verification_report.h"
#include "tools/exchange/verify_c_training.h"
#include "tools/flags/output_files.h"

namespace crema {

namespace {

std::string with_ending(const std::string& path, const std::string& ending) {
  return path.substr(0, path.size() - 2) + ending;
}

// 0: no limit is given.
size_t limit_of(const char* flag, const std::string& text) {
  if (text.empty()) return 0;
  try {
    const size_t bytes = allowed_memory(text, 0);
    require(bytes > 0, "a share of what is unknown");
    return bytes;
  } catch (const Error&) {
    fail("-", flag, " ", text, ": expected a size with a unit, such as 256KiB or 1MiB");
  }
}

// "1.2 million", for numbers of multiplications.
std::string count_text(int64_t count) {
  if (count >= 1000000) return cat(std::round(static_cast<double>(count) / 1e5) / 10, " million");
  return std::to_string(count);
}

void report_size(const CProgram& program, const CExportFlags& flags, ProgramLog& log) {
  const size_t trained = program.trained_bytes();
  const size_t ram = program.arena_bytes() + program.caller_bytes() + trained;
  const size_t constants = program.constant_bytes();
  log.info(cat("RAM: ", size_text(ram), " (", size_text(program.arena_bytes()), " of the net, ",
               trained > 0 ? cat(size_text(trained), " of weights in training, ") : "",
               size_text(program.caller_bytes()), " of its inputs and results)"));
  log.info(cat("Flash: ", size_text(constants), " of constants, and the code"));
  log.info(cat(count_text(program.inference.products), " multiplications with addition",
               program.training ? cat(", and ", count_text(program.training->routine.products),
                                      " in an iteration of training")
                                : ""));
  const size_t most_ram = limit_of("ram", flags.ram), most_flash = limit_of("flash", flags.flash);
  require(most_ram == 0 || ram <= most_ram, "the net needs ", size_text(ram), " of RAM, but -ram ",
          flags.ram, " allows ", size_text(most_ram),
          program.training ? "; freeze more layers, or use a smaller -train_batch"
                           : "; use smaller pictures or fewer channels in the first layers");
  require(most_flash == 0 || constants <= most_flash, "the net has ", size_text(constants),
          " of constants, but -flash ", flags.flash, " allows ", size_text(most_flash),
          "; use fewer channels, or global pooling in place of large inner products");
}

PictureInput picture_of(const CProgram& program, const DeployedNet& deployed,
                        const std::string& folder) {
  require(program.inference.inputs.size() == 1, "-main: the net has ",
          program.inference.inputs.size(), " inputs, and a picture fills one; leave -main out");
  const CValue& value = program.values[program.inference.inputs[0]];
  require(value.shape.axes() == 0 || value.shape[0] == 1, "-main: the net takes ", value.shape[0],
          " pictures at a time; use -batch 1");
  for (const InputPreparation& input : deployed.preparation.input())
    if (input.name() == value.blob) return picture_input(input, value.shape, true, folder, "-main");
  fail("-main: the net does not say that its input \"", visible(value.blob),
       "\" is a picture; -mean, -scale and -resize say it");
}

constexpr int kTrainedIterations = 3;
// Of the largest change of a parameter. Differences of sums in another order are far below.
constexpr double kTrainedDifference = 1e-3;

void verify_training(const CTrainingNet& training, const CheckedC& checked, ProgramLog& log) {
  const VerifiedTraining found = verify_c_training(*training.net, training.solver, checked,
                                                   kTrainedIterations, kTrainedDifference);
  if (!found.problem.empty()) return log.warning(cat("Training is not verified: ", found.problem));
  const std::string noise =
      found.noise > 0 ? cat("; noise of the size of rounding changes these by ", found.noise) : "";
  log.info(cat("Training: ", kTrainedIterations,
               " iterations with random inputs; weights differ from Crema's by at most ",
               found.difference, " of their largest change", noise));
  require(found.passes,
          "training in C changes weights otherwise than Crema, by more than rounding explains. The "
          "files were written");
}

// All of the files, or none.
void write_files(const std::vector<std::pair<std::string, std::string>>& files, ProgramLog& log) {
  std::vector<std::unique_ptr<AtomicFile>> open;
  for (const auto& [path, text] : files) {
    open.push_back(std::make_unique<AtomicFile>(path));
    open.back()->write(text.data(), text.size());
  }
  for (const std::unique_ptr<AtomicFile>& file : open) file->commit();
  for (const auto& [path, text] : files)
    log.info(cat("Wrote ", visible(path), ": ", size_text(text.size())));
}

}  // namespace

void check_c_export_flags(const CExportFlags& flags) {
  require(ends_with(flags.output, ".c") && flags.output.size() > 2, "-output ", flags.output,
          ": expected NET.c; the header becomes NET.h");
  require_apart({{"-output", flags.output},
                 {"the header of -output", with_ending(flags.output, ".h")},
                 {"the program of -main", flags.main ? with_ending(flags.output, "_main.c") : ""},
                 {"-output_weights", flags.output_weights}},
                files_read(flags.model, flags.weights));
  require(flags.proof.empty(), "-proof is for -to onnx and caffe");
  require(flags.train == !flags.solver.empty(),
          flags.train
              ? "-train needs a solver, which says how weights change: -solver FILE.prototxt"
              : "-solver is for -train, which is missing");
  require(flags.train_batch >= 0 && (flags.train || flags.train_batch == 0), "-train_batch ",
          flags.train_batch, ": expected a positive number, and -train");
  limit_of("ram", flags.ram);
  limit_of("flash", flags.flash);
}

int export_c_files(Net& net, const DeployedNet& deployed, const std::vector<std::string>& labels,
                   const std::string& folder, const CTrainingNet* training,
                   const CExportFlags& flags, ProgramLog& log) {
  COptions options;
  options.fold = flags.fold;
  options.weights_file = !flags.output_weights.empty();
  const std::string prefix = c_prefix(flags.output);
  const CProgram program =
      training == nullptr
          ? compile_to_c(net, prefix, options)
          : compile_to_c(net, *training->net, training->solver.solver, prefix, options);
  require(!options.weights_file || program.weights_bytes() > 0, "-output_weights ",
          visible(flags.output_weights), ": the net has no weights; leave the flag out");
  report_size(program, flags, log);
  CAbout about;
  about.model = flags.model;
  const std::string header = with_ending(flags.output, ".h");
  about.header = std::filesystem::path(header).filename().string();
  about.preparation = deployed.preparation;
  about.labels = labels;
  const CFiles written = write_c(program, options, about);
  std::vector<std::pair<std::string, std::string>> files = {{flags.output, written.source},
                                                            {header, written.header}};
  if (options.weights_file) files.emplace_back(flags.output_weights, written.weights);
  if (flags.main)
    files.emplace_back(with_ending(flags.output, "_main.c"),
                       c_main_text(program, options, about, picture_of(program, deployed, folder)));
  write_files(files, log);
  if (!flags.verify) return 0;
  CheckedC checked{program, options.weights_file, flags.output, flags.output_weights};
  const Verification found = verify_c(net, checked, kVerificationDraws);
  if (found.runtime.empty()) {
    log.warning(cat("Not verified: ", found.problem));
    return 0;
  }
  report_one_verification(net, found, flags, ". The files were written", log);
  if (training != nullptr) verify_training(*training, checked, log);
  return 0;
}

}  // namespace crema
