// `crema watch`: its pages as a browser gets them, who may stop a training, and what it refuses.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <regex>
#include <thread>

#include "tools/program.h"
// Last: it brings the names of the system's network headers.
#include <httplib.h>

namespace crema::tests {
namespace watch_test {

constexpr const char* secret = "ssssh & \"quiet\"";

std::string quoted_for_url(const std::string& text) {
  std::string out;
  for (const unsigned char c : text) {
    char code[4];
    std::snprintf(code, sizeof code, "%%%02X", c);
    out += code;
  }
  return out;
}

std::string metrics_of(const std::string& id) {
  const std::string run = R"(,"run":")" + id + R"(",)";
  return R"({"iteration":0,"kind":"start")" + run +
         R"("started":"2026-01-01T00:00:00Z","time":0})" + "\n" +
         R"({"iteration":0,"kind":"train")" + run + R"("time":1,"values":{"loss":2.5,"lr":0.1}})" +
         "\n";
}

// A folder with a run that runs, one that is over and one that has diverged; a server about it.
class Watch : public testing::Test {
 protected:
  void SetUp() override {
    char host[256] = {};
    gethostname(host, sizeof host - 1);
    const std::string record =
        nlohmann::json{{"pid", getpid()}, {"host", host}, {"started", "now"}}.dump();
    folder_.write("runs/one/run.json", record);
    folder_.write("runs/one/metrics.jsonl", metrics_of("aaaaaaaa"));
    folder_.write("runs/one/train.log", "first line\n<i>last line</i>\n");
    folder_.write("runs/one/solver.prototxt", "max_iter: 400\n");
    folder_.write(
        "runs/one/train_val.prototxt",
        "layer { name: \"<script>\" type: \"Input\" top: \"x\" input_param { shape { dim: "
        "1 dim: 2 } } }\n");
    folder_.write("runs/group/" + over_ + "/run.json", record);
    folder_.write("runs/group/" + over_ + "/metrics.jsonl",
                  metrics_of("bbbbbbbb") +
                      R"({"iteration":9,"kind":"end","run":"bbbbbbbb","time":2})" + "\n");
    folder_.write("runs/nan/metrics.jsonl",
                  metrics_of("cccccccc") +
                      R"({"iteration":9,"kind":"train","run":"cccccccc","values":{"loss":null}})" +
                      "\n");
    // One whose process is gone, and one that has written nothing for long.
    folder_.write("runs/gone/run.json",
                  std::regex_replace(record, std::regex("\"pid\":[0-9]+"), "\"pid\":4194305"));
    folder_.write("runs/gone/metrics.jsonl", metrics_of("eeeeeeee"));
    folder_.write("runs/quiet/metrics.jsonl", metrics_of("ffffffff"));
    std::filesystem::last_write_time(
        folder_.file("runs/quiet/metrics.jsonl"),
        std::filesystem::file_time_type::clock::now() - std::chrono::hours(48));
    folder_.write("secret/metrics.jsonl", metrics_of("dddddddd"));
    folder_.write("secret/run.json", record);
    server_ = std::thread([this] {
      outcome_ = run_shell(folder_, "\"$TOOLS\"/crema watch runs -port 0 -token '" +
                                        std::string(secret) + "' & echo $! > pid; wait $!");
    });
    const std::regex address("http://127\\.0\\.0\\.1:([0-9]+)/");
    for (int i = 0; i < 500 && port_ == 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      std::smatch match;
      const std::string log = folder_.has(".stderr") ? folder_.read(".stderr") : "";
      if (std::regex_search(log, match, address)) port_ = std::stoi(match[1]);
    }
    ASSERT_NE(port_, 0);
    client_ = std::make_unique<httplib::Client>("127.0.0.1", port_);
  }

  void TearDown() override {
    kill(std::stoi(folder_.read("pid")), SIGINT);
    server_.join();
    EXPECT_EQ(outcome_.code, 0) << outcome_.err;
  }

  httplib::Response get(const std::string& address) {
    const httplib::Result result = client_->Get(address);
    return result ? *result : httplib::Response();
  }
  int post(const std::string& body) {
    const httplib::Result result =
        client_->Post("/stop", body, "application/x-www-form-urlencoded");
    return result ? result->status : 0;
  }

  const Folder folder_;
  const std::string over_ = "o'ver \"&\" <b>", token_ = "&token=" + quoted_for_url(secret);
  std::thread server_;
  Outcome outcome_;
  int port_ = 0;
  std::unique_ptr<httplib::Client> client_;
};

TEST_F(Watch, ListsTheRuns) {
  const httplib::Response list = get("/");
  EXPECT_EQ(list.status, 200);
  for (const char* part :
       {"<span class=\"state running\">running</span>", "<span class=\"state ended\">ended</span>",
        "<span class=\"state diverged\">diverged</span>", ">one</a>",
        ">group/o&#39;ver &quot;&amp;&quot; &lt;b&gt;</a>"})
    expect_part(list.body, part);
  EXPECT_EQ(list.body.find("secret"), std::string::npos);
  const std::regex silent("<span class=\"state silent\">silent since ([0-9]{4}-[0-9-]+ )?[0-9:]+<");
  std::string years;
  size_t found = 0;
  for (std::sregex_iterator at(list.body.begin(), list.body.end(), silent), end; at != end; ++at) {
    years += (*at)[1].str();
    ++found;
  }
  EXPECT_EQ(found, 2u);
  EXPECT_EQ(years.size(), 11u) << "the one of two days ago says its day";
  const std::string policy = list.get_header_value("Content-Security-Policy");
  expect_part(policy, "default-src 'none'; script-src 'self';");
  EXPECT_EQ(policy.find("http"), std::string::npos);
  EXPECT_EQ(policy.find("unsafe"), std::string::npos);
  // New runs appear by themselves, and a file that is none of ours is named.
  folder_.write("runs/later/metrics.jsonl", metrics_of("eeeeeeee"));
  folder_.write("runs/odd/metrics.jsonl", "what?\n");
  std::string now;
  for (int i = 0; i < 100 && now.find(">later</a>") == std::string::npos; ++i) now = get("/").body;
  expect_part(now, ">later</a>");
  expect_part(now, "runs/odd/metrics.jsonl:1: expected one JSON object");
  const httplib::Response both = get("/?run=one&run=later");
  EXPECT_EQ(both.status, 200);
  expect_part(both.body, "2 runs compared");
  EXPECT_EQ(get("/crema.css").status, 200);
  expect_part(get("/crema.js").body, "fetch(");
}

TEST_F(Watch, SendsWhatHasChanged) {
  const httplib::Response page = get("/?run=one");
  EXPECT_EQ(page.status, 200);
  expect_part(page.body, "&lt;i&gt;last line");
  expect_part(page.body, "iteration 0 of 400");
  expect_part(get("/net.svg?run=one").body, "&lt;script&gt;");
  std::string have = "&have=";
  const std::regex part("data-part=\"([a-z]+)\" data-version=\"([0-9a-f]+)\"");
  for (std::sregex_iterator at(page.body.begin(), page.body.end(), part), end; at != end; ++at)
    have += (*at)[1].str() + ":" + (*at)[2].str() + ",";
  EXPECT_EQ(get("/parts?run=one" + have).body, "[]");
  std::ofstream(folder_.file("runs/one/metrics.jsonl"), std::ios::app)
      << R"({"iteration":100,"kind":"train","run":"aaaaaaaa","time":2,"values":{"loss":0.5,"lr":0.1}})"
      << "\n{\"iteration\":200,\"ki";
  const nlohmann::json changed = nlohmann::json::parse(get("/parts?run=one" + have).body);
  std::vector<std::string> names;
  for (const auto& entry : changed) names.push_back(entry["name"]);
  EXPECT_EQ(names, (std::vector<std::string>{"state", "figures", "charts"}));
  expect_part(changed[2]["html"], "data-points=\"0,2.5 100,0.5\"");
  std::ofstream(folder_.file("runs/one/metrics.jsonl"), std::ios::app)
      << R"(nd":"train","run":"aaaaaaaa","time":3,"values":{"loss":0.25,"lr":0.1}})"
      << "\n";
  expect_part(get("/parts?run=one").body, "0,2.5 100,0.5 200,0.25");
}

TEST_F(Watch, StopsOnlyForTheToken) {
  EXPECT_EQ(get("/?run=one").body.find("action=\"/stop\""), std::string::npos);
  EXPECT_EQ(get("/?run=one&token=wrong").body.find("action=\"/stop\""), std::string::npos);
  expect_part(get("/?run=one" + token_).body, "action=\"/stop\"");
  for (const std::string& body :
       {std::string("run=one"), std::string("run=one&token="), std::string("run=one&token=wrong"),
        std::string("run=one&token=s"), "run=one" + token_ + "x"})
    EXPECT_EQ(post(body), 403) << body;
  EXPECT_EQ(get("/stop?run=one" + token_).status, 404) << "a link must not stop a training";
  EXPECT_FALSE(folder_.has("runs/one/stop"));
  EXPECT_EQ(post("run=nan" + token_), 409);
  EXPECT_EQ(post("run=" + quoted_for_url("group/" + over_) + token_), 409);
  EXPECT_EQ(post("run=nowhere" + token_), 404);
  EXPECT_EQ(post("run=" + quoted_for_url("../secret") + token_), 404);
  EXPECT_FALSE(folder_.has("secret/stop"));
  EXPECT_EQ(post("run=one" + token_), 303);
  EXPECT_TRUE(folder_.has("runs/one/stop"));
  EXPECT_EQ(post("run=one" + token_), 303);
  expect_part(get("/?run=one" + token_).body, "asked to end with a snapshot");
}

TEST_F(Watch, ShowsNothingElse) {
  for (const char* address :
       {"/?run=../secret", "/?run=..%2Fsecret", "/?run=one/../../secret", "/?run=%2Fetc",
        "/parts?run=../secret", "/net.svg?run=../secret", "/../secret/metrics.jsonl",
        "/secret/metrics.jsonl", "/..%2Fsecret%2Fmetrics.jsonl", "/one/metrics.jsonl",
        "//etc/passwd", "/?run=one%00"}) {
    const httplib::Response response = get(address);
    EXPECT_EQ(response.status, 404) << address;
    EXPECT_EQ(response.body.find("dddddddd"), std::string::npos) << address;
  }
  for (const auto& [host, status] :
       std::vector<std::pair<std::string, int>>{{"evil.example", 403},
                                                {"evil.example:80", 403},
                                                {"127.0.0.1.evil.example", 403},
                                                {"localhost:9", 200},
                                                {"127.0.0.1", 200},
                                                {"[::1]:9", 200}}) {
    const httplib::Result result = client_->Get("/", httplib::Headers{{"Host", host}});
    ASSERT_TRUE(result);
    EXPECT_EQ(result->status, status) << host;
  }
  const Folder other;
  other.write("runs/.here", "");
  for (const auto& [flags, message] : std::vector<std::pair<std::string, std::string>>{
           {"runs -port " + std::to_string(port_),
            "port " + std::to_string(port_) + ": Address already in use; another port: -port N"},
           {"runs -port 70000", "-port 70000: expected 0, a free one, to 65535"},
           {"runs -port 0 -host nowhere.invalid", "cannot serve pages at nowhere.invalid, port 0"},
           {"nowhere", "nowhere: there is no such folder"}}) {
    const Outcome outcome = run(other, "crema watch " + flags);
    EXPECT_EQ(outcome.code, 1);
    ASSERT_EQ(outcome.errors().size(), 1u) << outcome.err;
    expect_part(outcome.errors()[0], message);
  }
}

}  // namespace watch_test
}  // namespace crema::tests
