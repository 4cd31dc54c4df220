#include "tools/exchange/verification_report.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <numeric>

#include "base/files.h"
#include "base/larger.h"
#include "base/visible.h"
#include "exchange/quantize/quantized_node.h"
#include "tools/console/table.h"
#include "tools/console/terminal.h"
#include "tools/exchange/runtime_job.h"
#include "tools/tune/differences.h"

namespace crema {

namespace {

// A longer table would push its beginning off the screen.
constexpr size_t kLongTable = 40, kLargestShown = 10;

// Which blobs a table shows: all or, of many, results, those beyond the tolerance and those that
// differ most.
std::vector<bool> shown_blobs(const std::vector<VerifiedBlob>& blobs, double tolerance) {
  std::vector<bool> shown(blobs.size(), blobs.size() <= kLongTable);
  std::vector<size_t> order(blobs.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return blobs[a].relative > blobs[b].relative; });
  for (size_t rank = 0; rank < order.size(); ++rank) {
    const VerifiedBlob& blob = blobs[order[rank]];
    if (rank < kLargestShown || blob.output || !(blob.relative <= tolerance))
      shown[order[rank]] = true;
  }
  return shown;
}

// Rounded down, so that 100 % is all.
std::string share_text(double share) {
  if (share < 0) return "";
  char text[16];
  std::snprintf(text, sizeof text, "%.3f %%", std::floor(share * 1e5) / 1e3);
  return text;
}

// Prints a table of blobs; returns whether the results agree.
bool print_verification(const Verification& one, double tolerance, ProgramLog& log) {
  const std::string runtime(trim(cat(one.runtime, " ", one.version)));
  if (!one.problem.empty()) {
    log.warning(cat(runtime, " cannot run the model: ", one.problem));
    return true;
  }
  const bool colour = has_colour(1);
  bool agree = true;
  double worst = 0;
  std::vector<std::vector<std::string>> rows = {
      {"layer", "blob", "shape", "largest difference", "relative"}};
  const bool has_integers =
      std::any_of(one.blobs.begin(), one.blobs.end(),
                  [](const VerifiedBlob& blob) { return blob.equal_integers >= 0; });
  if (has_integers) rows[0].push_back("equal integers");
  const std::vector<bool> shown = shown_blobs(one.blobs, tolerance);
  for (size_t i = 0; i < one.blobs.size(); ++i) {
    const VerifiedBlob& blob = one.blobs[i];
    const bool within = blob.relative <= tolerance;
    agree = agree && (within || !blob.output);
    worst = larger_or_nan(worst, blob.relative);
    if (!shown[i]) continue;
    const std::string relative = shown_difference(blob.relative, blob.largest == 0);
    rows.push_back({blob.where, blob.blob, blob.shape,
                    shown_difference(blob.largest, blob.largest == 0),
                    within ? relative : painted(relative, Colour::red, colour)});
    if (has_integers) rows.back().push_back(share_text(blob.equal_integers));
  }
  std::cout << runtime << ": " << one.blobs.size()
            << (one.blobs.size() == 1 ? " blob, " : " blobs, ") << kVerificationDraws
            << " random inputs; the largest difference is " << shown_difference(worst, worst == 0)
            << " of a blob's largest value\n";
  print_table(rows, 3);
  if (one.blobs.size() >= rows.size())
    std::cout << "These are the results, the " << kLargestShown
              << " blobs that differ most and all beyond -tolerance; -proof FOLDER keeps all "
              << one.blobs.size() << ".\n";
  return agree;
}

// The same for other programs: a header, and columns separated by tabs.
void keep_table(const std::vector<Verification>& all, const std::string& path) {
  std::string text =
      "runtime\tversion\tlayer\tblob\tshape\tresult\tlargest difference\trelative\tequal "
      "integers\n";
  for (const Verification& one : all)
    for (const VerifiedBlob& blob : one.blobs)
      text += cat(one.runtime, "\t", one.version, "\t", field_text(blob.where), "\t",
                  field_text(blob.blob), "\t", blob.shape, "\t", blob.output ? "yes" : "no", "\t",
                  blob.largest, "\t", blob.relative, "\t",
                  blob.equal_integers < 0 ? "" : cat(blob.equal_integers), "\n");
  write_file_atomically(path, text);
}

VerificationOptions options_of(const VerificationFlags& flags) {
  return {flags.python.empty() ? "python3" : flags.python, kVerificationDraws, flags.proof};
}

void keep_proof(const std::vector<Verification>& all, const VerificationFlags& flags,
                ProgramLog& log) {
  if (flags.proof.empty()) return;
  keep_table(all, flags.proof + "/verification.tsv");
  log.info(cat("Wrote ", visible(flags.proof), ": the table and ", kVerificationDraws,
               " inputs with results"));
}

// Where a net rounds values to integers, a last digit of another program's sums may make a value the next
// integer, and later layers add that up.
double tolerance_of(const VerificationFlags& flags, const Net& net) {
  constexpr double kOfIntegers = 0.05;
  const std::vector<Node>& nodes = net.graph().nodes;
  const bool rounds = std::any_of(nodes.begin(), nodes.end(), [&](const Node& node) {
    return quantization_of(node, net.graph()).has_value();
  });
  return rounds && !flags.tolerance_given ? kOfIntegers : flags.tolerance;
}

}  // namespace

void check_verification_flags(const VerificationFlags& flags) {
  require(flags.tolerance >= 0, "-tolerance ", flags.tolerance,
          ": expected a fraction from 0, such as 1e-4");
  if (flags.proof.empty()) return;
  // The folder itself, or the nearest one above it that exists.
  std::filesystem::path above = std::filesystem::absolute(flags.proof);
  std::error_code ignored;
  while (above.has_relative_path() && !std::filesystem::exists(above, ignored))
    above = above.parent_path();
  require(std::filesystem::is_directory(above, ignored), "-proof ", visible(flags.proof), ": ",
          visible(above.string()), " is no folder; expected a folder, or a new one");
  require(access(above.c_str(), W_OK) == 0, "-proof ", visible(flags.proof), ": ",
          visible(above.string()), " cannot be written: ", std::strerror(errno));
}

void report_caffe_verification(Net& net, Net& again, const ComparedModel& compared,
                               const VerificationFlags& flags, const std::string& dialect,
                               ProgramLog& log) {
  const Verification own = verify_net(net, again, compared, kVerificationDraws);
  require(print_verification(own, tolerance_of(flags, net), log),
          "the written files compute other results: results in the table above are beyond "
          "-tolerance ",
          tolerance_of(flags, net));
  std::string problem;
  const VerificationOptions options = options_of(flags);
  std::vector<Verification> all = verify_model(net, compared, options, &problem);
  if (all.empty() && dialect == "opencv4") {
    log.warning(cat("Not verified in OpenCV: ", options.python,
                    problem.empty() ? " has no OpenCV 4" : ": " + problem,
                    ". `pip install opencv-python-headless==4.12.0.88`, or -python PROGRAM for a "
                    "Python that has it"));
  }
  for (const Verification& one : all) {
    const std::string its_dialect = one.runtime == "ncnn" ? "ncnn" : "opencv4";
    const bool agrees = print_verification(one, tolerance_of(flags, net), log);
    require(agrees || dialect != its_dialect, one.runtime,
            " computes other results than Crema: results in the table above are beyond -tolerance ",
            tolerance_of(flags, net), ". The files were written");
    if (!agrees)
      log.warning(
          cat(one.runtime, " computes other results; write for it with -dialect ", its_dialect));
  }
  all.insert(all.begin(), own);
  keep_proof(all, flags, log);
}

int report_verification(Net& net, const ComparedModel& compared, const VerificationFlags& flags,
                        const std::string& consequence, ProgramLog& log) {
  std::string problem;
  const VerificationOptions options = options_of(flags);
  const std::vector<Verification> all = verify_model(net, compared, options, &problem);
  if (all.empty()) {
    log.warning(cat("Not verified: ", options.python,
                    problem.empty() ? " has no runtime for ONNX" : ": " + problem,
                    ". `pip install onnxruntime`, or -python PROGRAM for a Python that has one"));
    return 0;
  }
  keep_proof(all, flags, log);
  int ran = 0;
  for (const Verification& one : all) {
    ran += one.problem.empty() ? 1 : 0;
    report_one_verification(net, one, flags, consequence, log);
  }
  return ran;
}

void report_one_verification(const Net& net, const Verification& one,
                             const VerificationFlags& flags, const std::string& consequence,
                             ProgramLog& log) {
  require(print_verification(one, tolerance_of(flags, net), log), one.runtime,
          " computes other results than Crema: results in the table above are beyond -tolerance ",
          tolerance_of(flags, net), consequence);
}

}  // namespace crema
