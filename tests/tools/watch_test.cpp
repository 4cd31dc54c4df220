// `crema watch`: its pages in a browser, who may stop a run, and what it refuses.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
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

int connected(int port) {
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(client, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  return client;
}

// A server's answer to bytes that no client library would send.
std::string answer_to(int port, const std::string& request) {
  const int client = connected(port);
  send(client, request.data(), request.size(), MSG_NOSIGNAL);
  std::string answer;
  char buffer[4096];
  for (ssize_t got; (got = recv(client, buffer, sizeof buffer, 0)) > 0;)
    answer.append(buffer, static_cast<size_t>(got));
  close(client);
  return answer;
}

// A folder with a run that is active, one that is over and one that has diverged; and a server for
// it.
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
    if (server_.joinable()) end(SIGINT);
  }

  void end(int signal) {
    const auto begin = std::chrono::steady_clock::now();
    kill(std::stoi(folder_.read("pid")), signal);
    server_.join();
    EXPECT_EQ(outcome_.code, 0) << outcome_.err;
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
    // Everybody may read the log's files.
    EXPECT_NE(outcome_.out.find("/?token="), std::string::npos);
    EXPECT_EQ(outcome_.err.find("ssssh"), std::string::npos);
    for (const char* file : {".log/crema.INFO", ".log/crema.WARNING"})
      EXPECT_EQ(folder_.read(file).find("ssssh"), std::string::npos);
    expect_part(outcome_.err, "-token: other users of this machine can read the commands");
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
  // New runs appear by themselves, and foreign files are named.
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
  expect_part(get("/?run=one" + token_).body, "will stop with a snapshot");
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
                                                {"127.0.0.2:9", 200},
                                                {"[::1]:9", 200}}) {
    const httplib::Result result = client_->Get("/", httplib::Headers{{"Host", host}});
    ASSERT_TRUE(result);
    EXPECT_EQ(result->status, status) << host;
  }
  // Neither does a name get into a header.
  for (const auto& [name, value] :
       get("/?run=one%0d%0aX-Evil:%20yes&token=%0d%0aX-Evil:%20yes").headers)
    EXPECT_NE(name, "X-Evil") << value;
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

// The folder of a run in which each file that a page shows is a link to one of the user, or a pipe.
TEST_F(Watch, ShowsNoFileThatALinkLeadsTo) {
  folder_.write("private/key", "TOPSECRET\nsecond line\n");
  folder_.write("private/a.json",
                R"({"title":"TOPSECRET","pictures":[{"src":"data:image/png;base64,AAAA"}]})");
  const std::string run = "runs/evil/";
  folder_.write(run + "run.json", "{}");
  folder_.write(
      run + "metrics.jsonl",
      metrics_of("99999999") +
          R"({"iteration":1,"kind":"confusion","run":"99999999","net":0,"time":1,"file":"c.csv"})" +
          "\n");
  for (const char* name : {"train.log", "solver.prototxt", "labels.txt", "c.csv"})
    std::filesystem::create_symlink(folder_.file("private/key"), folder_.file(run + name));
  std::filesystem::create_directory_symlink(folder_.file("private"),
                                            folder_.file(run + "pictures"));
  ASSERT_EQ(mkfifo(folder_.file(run + "train.prototxt").c_str(), 0600), 0);
  // A net that others may have written names a file: its lines would be in the message of an error.
  folder_.write(
      run + "train_val.prototxt",
      "layer { name: \"data\" type: \"ImageData\" top: \"x\" image_data_param { source: \"" +
          folder_.file("private/key") + "\" batch_size: 1 } }\n");
  ASSERT_EQ(chmod(folder_.file(run + "train_val.prototxt").c_str(), 0666), 0);
  // One whose layout would take minutes, and a thread.
  std::string wide, bottoms;
  for (int i = 0; i < 300; ++i) {
    wide += cat("layer { name: \"l\" type: \"Concat\"", bottoms, " top: \"", i, "\" }\n");
    bottoms += cat(" bottom: \"", i, "\"");
  }
  folder_.write("runs/wide/metrics.jsonl", metrics_of("88888888"));
  folder_.write("runs/wide/train_val.prototxt", wide);
  ASSERT_EQ(chmod(folder_.file("runs/wide/train_val.prototxt").c_str(), 0666), 0);
  std::string list;
  for (int i = 0; i < 100 && list.find(">evil</a>") == std::string::npos; ++i) list = get("/").body;
  expect_part(list, ">evil</a>");
  for (const char* address : {"/", "/parts", "/?run=evil", "/parts?run=evil", "/?run=evil&run=one",
                              "/net.svg?run=evil"}) {
    const httplib::Response response = get(address);
    EXPECT_EQ(response.status, 200) << address;
    for (const char* part : {"TOPSECRET", "second line"})
      EXPECT_EQ(response.body.find(part), std::string::npos) << address;
  }
  EXPECT_EQ(get("/net.svg?run=wide").status, 404);
  expect_part(get("/net.svg?run=evil").body, "others can write to the folder of this run");
  EXPECT_EQ(get("/net.svg?run=one").body.find("others can write"), std::string::npos);
}

TEST_F(Watch, EscapesWhatFilesSay) {
  const std::string evil = "</title></pre><script>alert(1)</script>'\\\"";
  const std::string run = "runs/<script>alert(1)<script>/";
  folder_.write(run + "run.json", "{}");
  const std::string metrics =
      R"({"iteration":0,"kind":"start","run":"E","started":"E","net_name":"E","net_file":"E","solver_file":"E","time":0}
{"iteration":1,"kind":"train","run":"E","time":1,"values":{"loss":1,"E":2}}
{"iteration":1,"kind":"test","run":"E","net":0,"time":1,"values":{"E":2}}
{"iteration":1,"kind":"rollback","run":"E","reason":"E","time":1}
{"iteration":1,"kind":"confusion","run":"E","net":0,"time":1,"counts":[[3,4],[5,6]]}
{"iteration":1,"kind":"end","run":"E","why":"E","time":1}
)";
  const std::string pictures =
      R"({"title":"E","pictures":[{"src":"data:image/png;base64,AAAA","caption":"E"}]})";
  for (const auto& [file, text] :
       {std::pair("metrics.jsonl", metrics), {"pictures/a.json", pictures}})
    folder_.write(run + file, std::regex_replace(text, std::regex("E\""), evil + "\""));
  for (const char* file : {"labels.txt", "train.log"})
    folder_.write(run + file, "<script>alert(1)</script>\n<b>\n");
  for (const char* file : {"solver.prototxt", "train_val.prototxt"})
    folder_.write(run + file, "layer { name: \"<script>alert(1)\" type: \"<script>\" }\n");
  const std::string name = quoted_for_url("<script>alert(1)<script>");
  std::string list;
  for (int i = 0; i < 100 && list.find("&lt;script&gt;alert(1)") == std::string::npos; ++i)
    list = get("/").body;
  expect_part(list, ">&lt;script&gt;alert(1)&lt;script&gt;</a>");
  for (const std::string& address :
       {"/" + std::string(), "/?run=" + name, "/?run=one&run=" + name, "/net.svg?run=" + name}) {
    const httplib::Response response = get(address);
    EXPECT_EQ(response.status, 200) << address;
    expect_part(response.body, "&lt;script&gt;");
    EXPECT_EQ(response.body.find("<script>"), std::string::npos) << address;
  }
  for (const nlohmann::json& part : nlohmann::json::parse(get("/parts?run=" + name).body))
    EXPECT_EQ(part["html"].get<std::string>().find("<script>"), std::string::npos) << part["name"];
}

TEST_F(Watch, AnswersBesideSlowClients) {
  std::vector<int> slow;
  for (int i = 0; i < 150; ++i) {
    slow.push_back(connected(port_));
    const std::string begun = i % 3 == 0   ? "GET / HT"
                              : i % 3 == 1 ? "POST /stop HTTP/1.1\r\nContent-Length: 9\r\n\r\na"
                                           : "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    send(slow.back(), begun.data(), begun.size(), MSG_NOSIGNAL);
  }
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(get("/").status, 200);
  EXPECT_EQ(get("/?run=one").status, 200);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
  // Nor do they delay the end.
  end(SIGTERM);
  for (const int client : slow) close(client);
}

TEST_F(Watch, SurvivesOddRequests) {
  const std::string get_it = "GET / HTTP/1.1\r\nHost: localhost\r\n", much(200000, 'x'),
                    post_it = "POST /stop HTTP/1.1\r\nHost: localhost\r\n";
  std::string ranges = "Range: bytes=0-", headers;
  for (int i = 0; i < 1500; ++i) ranges += ",0-";
  for (int i = 0; i < 5000; ++i) headers += cat("X", i, ": y\r\n");
  for (const auto& [request, status] : std::vector<std::pair<std::string, std::string>>{
           {get_it + "\r\n", "200"},
           {get_it + ranges + "\r\n\r\n", "200"},
           {get_it + headers + "\r\n", "200"},
           {get_it + "Host: evil.example\r\n\r\n", "200"},
           {"GET / HTTP/1.1\r\nHost: evil.example\r\nHost: localhost\r\n\r\n", "403"},
           {"GET / HTTP/1.1\r\n\r\n", "403"},
           {"GET /" + std::string(20000, 'x') + " HTTP/1.1\r\nHost: localhost\r\n\r\n", "414"},
           {"BREW / HTTP/1.1\r\nHost: localhost\r\n\r\n", "400"},
           {"\r\n\r\n", "400"},
           {post_it + "Content-Length: 99999999999999\r\n\r\n" + much, "413"},
           {post_it + "Content-Length: 3\r\nContent-Length: 99\r\n\r\nabc", "403"},
           {post_it + "Transfer-Encoding: chunked\r\n\r\nffffff\r\n" + much, "403"},
           {post_it + "Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc", "403"}}) {
    const std::string answer = answer_to(port_, request);
    EXPECT_EQ(answer.substr(0, 12), "HTTP/1.1 " + status) << request.substr(0, 100);
  }
  EXPECT_EQ(get("/").status, 200);
}

}  // namespace watch_test
}  // namespace crema::tests
