#include "tools/pages/report/report_page.h"

#include "base/strings.h"
#include "tools/pages/charts/chart.h"
#include "tools/pages/runs/run_sections.h"
#include "tools/pages/runs/run_state.h"

namespace crema {

std::vector<PagePart> parts_of(const std::vector<PageRun>& runs,
                               const std::vector<RunState>& states) {
  if (runs.size() > 1)
    return {{"runs", runs_table(runs, states)}, {"charts", chart_sections(runs)}};
  const PageRun& run = runs[0];
  std::string pictures;
  for (const PagePictures& one : run.pictures) pictures += picture_section(one);
  return {{"figures", warnings_of(incidents(run)) + figure_tiles(*run.run)},
          {"charts", chart_sections(runs)},
          {"confusion", confusion_sections(run)},
          {"pictures", pictures}};
}

std::string drawing_section(const std::string& svg) {
  return svg.empty() ? ""
                     : section("Net", "Click on it for its full size.",
                               "<div class=\"drawing\">" + svg + "</div>");
}

std::string warnings_of(const std::vector<std::string>& notes) {
  std::string text;
  for (const std::string& note : notes)
    text += cat("<p class=\"warning\">", html_text(note), "</p>\n");
  return text;
}

std::string report_page(const Report& report) {
  std::string body =
      cat("<h1>", html_text(report.title), "</h1>\n<p class=\"note\">Training report by Crema. ",
          html_text(report.about), "</p>\n", warnings_of(report.notes));
  std::vector<RunState> states;
  for (const PageRun& run : report.runs) {
    states.push_back(recorded_state(*run.run));
    if (report.runs.size() == 1) continue;
    std::vector<std::string> notes;
    for (const std::string& note : incidents(run)) notes.push_back(run.name + ": " + note);
    body += warnings_of(notes);
  }
  for (const PagePart& part : parts_of(report.runs, states)) body += part.html;
  body += drawing_section(report.drawing);
  for (const auto& [title, text] : report.texts) body += folded_text(title, text);
  return whole_page(report.title, body);
}

}  // namespace crema
