#include "tools/pages/replay/iteration_page.h"

#include <cmath>

#include "base/strings.h"
#include "tools/pages/charts/chart.h"
#include "tools/pages/page.h"
#include "tools/pages/report/report_page.h"
#include "tools/pages/runs/run_sections.h"

namespace crema {
namespace {

constexpr size_t kShownInReports = 12;  // the page itself shows all

std::string number(double value) { return std::isnan(value) ? "" : short_number(value); }

std::string class_name(int64_t label, const std::vector<std::string>& classes) {
  return label >= 0 && label < std::ssize(classes) ? classes[static_cast<size_t>(label)]
                                                   : cat(label);
}

// Numbers are on the right. Columns without values are left out.
std::string table(const std::vector<std::vector<std::string>>& rows, size_t numbers_from) {
  std::string text;
  std::vector<bool> shown(rows[0].size());
  for (size_t row = 1; row < rows.size(); ++row) {
    for (size_t i = 0; i < shown.size(); ++i) shown[i] = shown[i] || !rows[row][i].empty();
  }
  for (size_t row = 0; row < rows.size(); ++row) {
    text += "<tr>";
    for (size_t i = 0; i < rows[row].size(); ++i) {
      if (!shown[i]) continue;
      const char* const cell = row == 0 ? "th" : "td";
      text += cat("<", cell, i >= numbers_from ? " class=\"number\">" : " class=\"text\">",
                  html_text(rows[row][i]), "</", cell, ">");
    }
    text += "</tr>\n";
  }
  return "<div class=\"wide\"><table class=\"rows\">" + text + "</table></div>";
}

std::string samples_table(const OpenedIteration& opened, const std::vector<std::string>& classes) {
  std::vector<std::vector<std::string>> rows = {
      {"record", "label", "answer", "loss", "least value", "largest", "sample"}};
  for (const OpenedSample& sample : opened.samples) {
    rows.push_back({sample.record, sample.label < 0 ? "" : class_name(sample.label, classes),
                    sample.answer < 0 ? "" : class_name(sample.answer, classes),
                    number(sample.loss), number(sample.low), number(sample.high),
                    cat(sample.number)});
  }
  return table(rows, 3);
}

std::string parameters_table(const OpenedIteration& opened) {
  std::vector<std::vector<std::string>> rows = {
      {"layer", "shape", "number", "norm", "gradient", "update", "update : norm", "not finite"}};
  for (const OpenedParameter& one : opened.parameters) {
    rows.push_back({one.layer, one.shape, cat(one.index), number(one.norm), number(one.gradient),
                    number(one.update), one.norm > 0 ? number(one.update / one.norm) : "",
                    one.not_finite > 0 ? cat(one.not_finite) : ""});
  }
  return table(rows, 2);
}

std::string blobs_table(const OpenedIteration& opened) {
  std::vector<std::vector<std::string>> rows = {{"layer", "type", "blob", "shape", "mean",
                                                 "deviation", "least", "largest", "zeros",
                                                 "gradient", "not finite"}};
  for (const OpenedBlob& one : opened.blobs) {
    rows.push_back({one.layer, one.type, one.blob, one.shape, number(one.mean),
                    number(one.deviation), number(one.low), number(one.high), percent(one.zeros),
                    number(one.gradient), one.not_finite > 0 ? cat(one.not_finite) : ""});
  }
  return table(rows, 4);
}

PagePictures page_pictures(const event::Pictures& shown, const std::string& note) {
  PagePictures pictures{shown.title, -1, note, {}};
  for (const Picture& picture : shown.pictures)
    pictures.pictures.push_back({picture_address(picture), picture.caption});
  return pictures;
}

event::Pictures all_pictures(const OpenedIteration& opened, const std::vector<std::string>& classes,
                             size_t most) {
  event::Pictures shown{opened.iteration,
                        cat("iteration_", opened.iteration),
                        cat("Samples of iteration ", opened.iteration),
                        {}};
  for (const OpenedSample& sample : opened.samples) {
    if (sample.picture.bytes.empty() || shown.pictures.size() == most) continue;
    shown.pictures.push_back(sample.picture);
    shown.pictures.back().caption = sample_caption(sample, classes);
  }
  return shown;
}

}  // namespace

std::string sample_caption(const OpenedSample& sample, const std::vector<std::string>& classes) {
  std::vector<std::string> parts;
  if (sample.label >= 0)
    parts.push_back(
        cat(class_name(sample.label, classes), " → ", class_name(sample.answer, classes)));
  if (!std::isnan(sample.loss)) parts.push_back(cat("loss ", short_number(sample.loss)));
  return parts.empty() ? cat("sample ", sample.number) : join(parts, ", ");
}

event::Pictures sample_pictures(const OpenedIteration& opened,
                                const std::vector<std::string>& classes) {
  return all_pictures(opened, classes, kShownInReports);
}

std::string iteration_page(const OpenedIteration& opened, const IterationReport& report) {
  const std::string title = cat("Iteration ", opened.iteration, " of ", report.run);
  std::string body = cat("<h1>", html_text(title), "</h1>\n");
  for (const std::string& sentence : report.about)
    body += cat("<p class=\"note\">", html_text(sentence), "</p>\n");
  body += warnings_of(report.warnings);
  const bool sorted = knows_losses(opened);
  const std::string order =
      sorted ? "Those with the highest loss come first: label → answer."
             : "In the order of the batch: the losses do not divide into samples.";
  const event::Pictures pictures = all_pictures(opened, report.classes, opened.samples.size());
  if (!pictures.pictures.empty()) body += picture_section(page_pictures(pictures, order));
  body += section("Samples", pictures.pictures.empty() ? order : "",
                  samples_table(opened, report.classes));
  body +=
      section("Parameters",
              "Norms: of the values before the update, of the gradient, of what the update adds.",
              parameters_table(opened));
  body += section("Blobs", "Of the last batch; gradient: its norm.", blobs_table(opened));
  if (!report.files.empty())
    body += section("Files", cat("For numpy.load: ", join(report.files, ", "), "."), "");
  return whole_page(title, body);
}

}  // namespace crema
