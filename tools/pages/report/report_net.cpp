#include "tools/pages/report/report_net.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/png.h"
#include "solver/test/pictures.h"
#include "tools/pages/charts/chart.h"

namespace crema {

namespace {

constexpr size_t most_mistakes = 40;
constexpr int64_t usual_batches = 50;

std::string judgement(const Mistakes& mistakes) {
  char share[32];
  std::snprintf(
      share, sizeof share, "%.2f%%",
      100 * static_cast<double>(mistakes.wrong()) / static_cast<double>(mistakes.tested()));
  std::string note =
      cat(short_number(static_cast<double>(mistakes.wrong())), " of ",
          short_number(static_cast<double>(mistakes.tested())), " test samples (", share, ")");
  const auto shown = static_cast<int64_t>(mistakes.samples().size());
  if (shown == 0) return note + ".";
  note += mistakes.wrong() > shown ? cat("; the ", shown, " most confident ones are shown. ")
                                   : ", the most confident ones first. ";
  return note + "Below each: label → the net's prediction and its confidence.";
}

}  // namespace

PagePictures filters_of(Net& net, bool rgb) {
  const event::Pictures filters = first_filters(net, rgb);
  PagePictures shown{.title = filters.title,
                     .note =
                         "Each picture is scaled to its own range: black is its smallest "
                         "weight, white its largest."};
  for (const Picture& filter : filters.pictures)
    shown.pictures.push_back({picture_address(filter), ""});
  return shown;
}

PagePictures mistakes_of(Net& net, int batches, bool rgb, const std::vector<std::string>& classes) {
  Mistakes mistakes(net, most_mistakes, rgb);
  if (!mistakes.possible()) return {};
  const int64_t records = mistakes.records(), batch = mistakes.batch();
  int64_t passes = records > 0 ? (records + batch - 1) / batch : usual_batches;
  if (batches > 0) passes = std::min<int64_t>(passes, batches);
  for (int64_t pass = 0; pass < passes; ++pass) {
    net.forward(static_cast<uint64_t>(pass));
    mistakes.add();
  }
  if (mistakes.tested() == 0) return {};
  PagePictures shown{.title = "Misclassified samples", .note = judgement(mistakes)};
  for (const Mistakes::Sample& sample : mistakes.samples()) {
    shown.pictures.push_back(
        {picture_address(sample.picture),
         mistake_caption(sample.label, sample.predicted,
                         static_cast<int>(std::lround(100 * sample.confidence)), classes)});
  }
  return shown;
}

}  // namespace crema
