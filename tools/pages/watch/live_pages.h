// The pages of `crema watch` as HTML: the runs of a folder, one of them, or several compared.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/pages/page.h"
#include "tools/pages/runs/run_settings.h"
#include "tools/pages/watch/watched_runs.h"

namespace crema {

class LivePages {
 public:
  explicit LivePages(const std::string& folder) : runs_(folder) {}

  // The parts of an address.
  struct Question {
    std::vector<std::string> names;  // of runs; none: all, as a list
    std::string token;               // goes into links; "": the pages are read-only
  };
  // Whole pages, and their current parts. False if there is no run of that name.
  bool page(const Question& question, std::string* html);
  bool parts(const Question& question, std::vector<PagePart>* parts);

  // The folder of a run; "": there is no run of this name.
  std::string folder_of_run(const std::string& name);

  enum class Stop { asked, over, no_folder, no_run };
  // Asks a run to stop with a snapshot, through the file "stop" in its folder. Error if that cannot
  // be written.
  Stop stop(const std::string& name);

 private:
  struct Rendered {
    std::string key;
    std::vector<PagePart> parts;
  };
  void read_settings();
  std::vector<PagePart> list_parts(const std::string& token);
  std::vector<PagePart> run_parts(const WatchedRun& run, const std::string& token);
  std::vector<PagePart> compared_parts(const std::vector<const WatchedRun*>& runs,
                                       const std::string& token);
  bool chosen(const std::vector<std::string>& names, std::vector<const WatchedRun*>* chosen);

  WatchedRuns runs_;
  std::vector<WatchedRun> list_;
  std::map<std::string, Rendered> rendered_;  // by name: what depends on a run's records only
  std::string settings_key_;                  // the runs that settings_ are of
  std::vector<SettingColumn> settings_;       // in which the runs of the list differ
};

// For the query of an address.
std::string url_text(const std::string& text);

}  // namespace crema
