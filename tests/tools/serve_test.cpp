// `crema serve`: answers as the model itself gives them, and how it ends.
#include <atomic>
#include <cstring>

#include "tools/served.h"

namespace crema::tests {
namespace serve_test {

using namespace served;

TEST_F(Serve, AnswersEachRequestAsTheModelDoes) {
  start("models -batch 8 -batch_delay 20 -threads 2");
  EXPECT_EQ(data_of(post("/v2/models/vector/infer", infer_text(sample(3), 1))), own_results(3));
  // Several samples in a request, and many requests at a time.
  std::vector<float> three;
  for (const int number : {5, 6, 7}) {
    const std::vector<float> one = sample(number);
    three.insert(three.end(), one.begin(), one.end());
  }
  const std::vector<float> found = data_of(post("/v2/models/vector/infer", infer_text(three, 3)));
  ASSERT_EQ(found.size(), 6u);
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(found[2 * i + 1], own_results(5 + i)[1], 1e-5);
  constexpr int kClients = 64;
  std::vector<std::vector<float>> results(kClients);
  std::vector<std::jthread> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.emplace_back([&, i] {
      results[i] = data_of(post("/v2/models/vector/infer", infer_text(sample(i), 1)));
    });
  }
  clients.clear();
  for (int i = 0; i < kClients; ++i) {
    const std::vector<float> want = own_results(i);
    ASSERT_EQ(results[i].size(), want.size()) << i;
    for (size_t k = 0; k < want.size(); ++k) EXPECT_NEAR(results[i][k], want[k], 1e-4) << i;
  }
  // Batches were shared: fewer passes than samples.
  const std::string metrics = get("/metrics").body;
  std::smatch match;
  ASSERT_TRUE(std::regex_search(
      metrics, match, std::regex("crema_batch_samples_count\\{model=\"vector\"\\} (\\d+)")));
  EXPECT_LT(std::stoi(match[1]), kClients);
  expect_part(metrics, "crema_batch_samples_sum{model=\"vector\"} 68\n");
  expect_part(metrics, "crema_requests_total{model=\"vector\",code=\"200\"} 66\n");
  expect_part(metrics, "crema_request_seconds_count{model=\"vector\"} 66\n");
  expect_part(metrics, "crema_queue_requests{model=\"vector\"} 0\n");
}

TEST_F(Serve, TakesSeveralInputsAndSamplesThatConcernEachOther) {
  start();
  const Json a = {
      {"name", "a"}, {"datatype", "FP32"}, {"shape", {2, 2}}, {"data", {{1, 2}, {3, 4}}}};
  Json b = {{"name", "b"}, {"datatype", "FP32"}, {"shape", {2, 2}}, {"data", {10, 20, 30, 40}}};
  const auto ask = [&] { return post("/v2/models/sum/infer", Json{{"inputs", {b, a}}}.dump()); };
  EXPECT_EQ(data_of(ask()), (std::vector<float>{11, 22, 33, 44}));
  b["shape"] = {1, 2};
  b["data"] = {1, 2};
  expect_part(ask().body, "another input has");
  // In the shape of its file only.
  const std::vector<float> found =
      data_of(post("/v2/models/across/infer", infer_text({0, 1, 0, 1}, 2)));
  EXPECT_EQ(found, (std::vector<float>{.5, .5, .5, .5}));
  expect_part(post("/v2/models/across/infer", infer_text({0, 1}, 1)).body,
              "the shape is 1x2; expected 2x2");
}

// One request of a batch that the net refuses spoils no other.
TEST_F(Serve, RefusesOneRequestOfABatch) {
  NetParameter weights;
  weights.ParseFromString(weights_text(3, 2));
  weights.mutable_layer(0)->set_type("Embed");
  weights.mutable_layer(0)->mutable_blobs()->RemoveLast();
  folder_.write("embed/words/net.prototxt",
                input_layer("x", "dim: 1 dim: 1") +
                    "layer { name: \"fc\" type: \"Embed\" bottom: \"x\" top: \"y\" embed_param { "
                    "input_dim: 3 num_output: 2 bias_term: false } }\n");
  folder_.write("embed/words/net.caffemodel", weights.SerializeAsString());
  start("embed -batch_delay 50");
  expect_part(get("/v2/models/words").body, "\"shape\":[-1,1]");
  for (int round = 0; round < 3; ++round) {  // from the second on, requests wait for others
    std::vector<std::jthread> clients;
    for (int i = 0; i < 8; ++i) {
      clients.emplace_back([&, i] {
        const Response answer = post("/v2/models/words/infer",
                                     infer_text({i == 5 ? 7.F : static_cast<float>(i % 3)}, 1));
        EXPECT_EQ(answer.status, i == 5 ? 400 : 200) << answer.body;
        if (i == 5) return;
        EXPECT_EQ(data_of(answer)[1], weights.layer(0).blobs(0).data(i % 3 * 2 + 1));
      });
    }
  }
}

TEST_F(Serve, SpeaksTheProtocol) {
  start();
  EXPECT_EQ(get("/v2").json()["name"], "crema");
  EXPECT_EQ(get("/v2/health/live").json()["live"], true);
  EXPECT_EQ(get("/v2/health/ready").json()["ready"], true);
  EXPECT_EQ(get("/v2/models").json()["models"],
            (std::vector<std::string>{"across", "image", "sum", "vector"}));
  EXPECT_EQ(get("/v2/models/vector/ready").json()["ready"], true);
  const Json vector = get("/v2/models/vector/versions/1").json();
  EXPECT_EQ(vector["inputs"], Json::parse(R"([{"name":"x","datatype":"FP32","shape":[-1,3]}])"));
  EXPECT_EQ(vector["outputs"], Json::parse(R"([{"name":"y","datatype":"FP32","shape":[-1,2]}])"));
  EXPECT_EQ(get("/v2/models/across").json()["inputs"][0]["shape"], (std::vector<int>{2, 2}));
  const Json answer =
      post("/v2/models/vector/infer", infer_text(sample(1), 1, R"(,"outputs":[{"name":"y"}])"))
          .json();
  EXPECT_EQ(answer["id"], "seven");
  EXPECT_EQ(answer["model_name"], "vector");
  EXPECT_EQ(answer["outputs"][0]["shape"], (std::vector<int>{1, 2}));
}

TEST_F(Serve, TakesAndGivesBinaryTensors) {
  start();
  const std::string json =
      R"({"inputs":[{"name":"x","datatype":"FP32","shape":[1,3],"parameters":{"binary_data_size":12}}],)"
      R"("parameters":{"binary_data_output":true}})";
  const std::vector<float> values = sample(4);
  const std::string body = json + std::string(reinterpret_cast<const char*>(values.data()), 12);
  const std::string length = cat("Inference-Header-Content-Length: ", json.size(), "\r\n");
  const Response answer = response_to(port_, post_text("/v2/models/vector/infer", body, length));
  ASSERT_EQ(answer.status, 200) << answer.body;
  std::smatch match;
  ASSERT_TRUE(
      std::regex_search(answer.head, match, std::regex("Inference-Header-Content-Length: (\\d+)")));
  const std::string binary = answer.body.substr(std::stoul(match[1]));
  const std::vector<float> want = own_results(4);
  ASSERT_EQ(binary.size(), 8u);
  EXPECT_EQ(std::memcmp(binary.data(), want.data(), 8), 0);
  for (const char* wrong : {"x", "-1", "99999", "5"})
    EXPECT_EQ(response_to(port_, post_text("/v2/models/vector/infer", body,
                                           cat("Inference-Header-Content-Length: ", wrong, "\r\n")))
                  .status,
              400);
}

TEST_F(Serve, KeepsConnectionsOpen) {
  start();
  Socket client(port_);
  const std::string ready = "GET /v2/health/ready HTTP/1.1\r\nHost: localhost\r\n\r\n";
  const std::string infer = post_text("/v2/models/vector/infer", infer_text(sample(2), 1));
  ASSERT_TRUE(client.send(ready + infer + ready.substr(0, 20)));
  EXPECT_EQ(response_in(client.receive()).status, 200);
  EXPECT_EQ(data_of(response_in(client.receive())), own_results(2));
  ASSERT_TRUE(client.send(ready.substr(20)));
  EXPECT_EQ(response_in(client.receive()).status, 200);
  ASSERT_TRUE(client.send("GET /v2 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"));
  EXPECT_EQ(response_in(client.receive()).status, 200);
  EXPECT_EQ(client.receive(), "");
  // curl sends a large body only after this.
  Socket careful(port_);
  const std::string body = infer_text(sample(2), 1);
  ASSERT_TRUE(
      careful.send(cat("POST /v2/models/vector/infer HTTP/1.1\r\nHost: localhost\r\nExpect: "
                       "100-continue\r\nContent-Length: ",
                       body.size(), "\r\n\r\n")));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  ASSERT_TRUE(careful.send(body));
  EXPECT_EQ(response_in(careful.receive()).status, 200);
  EXPECT_TRUE(careful.continued);
}

TEST_F(Serve, AnswersBesideSlowAndManyClients) {
  start();
  std::vector<std::unique_ptr<Socket>> slow;
  for (int i = 0; i < 400; ++i) {
    slow.push_back(std::make_unique<Socket>(port_));
    if (i % 2 == 0) slow.back()->send("POST /v2/models/vector/infer HTTP/1.1\r\nContent-Le");
  }
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(data_of(post("/v2/models/vector/infer", infer_text(sample(2), 1))), own_results(2));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
}

TEST_F(Serve, EndsAfterAllAnswers) {
  start("models -batch 4");
  std::atomic<int> answered = 0, refused = 0, lost = 0, other = 0;
  std::vector<std::jthread> clients;
  for (int i = 0; i < 16; ++i) {
    clients.emplace_back([&, i] {
      const std::vector<float> want = own_results(i);
      const std::string request = post_text("/v2/models/vector/infer", infer_text(sample(i), 1));
      while (true) {
        Socket client(port_);
        if (!client.connected()) return;
        for (int count = 0; count < 50; ++count) {
          if (!client.send(request)) {
            ++lost;
            break;
          }
          const Response answer = response_in(client.receive());
          if (answer.status == 200) {
            ++answered;
            if (std::abs(data_of(answer)[0] - want[0]) > 1e-4) ++other;
          } else if (answer.status == 503) {
            ++refused;
            return;
          } else {
            ++(answer.status == 0 ? lost : other);
            break;
          }
        }
      }
    });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  end(SIGTERM);
  clients.clear();
  EXPECT_GT(answered, 50);
  EXPECT_GT(refused, 0);
  EXPECT_EQ(lost, 0);
  EXPECT_EQ(other, 0);
}

TEST_F(Serve, HasAPage) {
  start();
  const Response page = get("/");
  EXPECT_EQ(page.status, 200);
  for (const char* part : {"<option data-action=\"classify\">image</option>", "id=\"drop\"",
                           "type=\"file\"", "/crema.js", "/crema.css", "data Nx1x2x2", "prob Nx3"})
    expect_part(page.body, part);
  EXPECT_EQ(page.body.find(">vector</option>"), std::string::npos);
  EXPECT_EQ(page.body.find("http:"), std::string::npos);
  expect_part(page.head, "Content-Security-Policy: default-src 'none'");
  expect_part(get("/crema.js").body, "/v2/models/");
  expect_part(get("/crema.css").body, "prefers-color-scheme: dark");
}

#ifdef CREMA_OPENCV
TEST_F(Serve, ClassifiesPictures) {
  start();
  folder_.write("picture.pgm", std::string("P5\n2 2\n255\n\1\2\3\4"));
  Model model(folder_.file("models/image/deploy.prototxt"),
              {.weights = {folder_.file("models/image/net.caffemodel")}});
  model.set_picture("data", folder_.file("picture.pgm"));
  model.forward();
  const std::vector<ClassScore> want = model.best(2);
  const Response answer = post("/v2/models/image/classify?top=2", folder_.read("picture.pgm"));
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Json classes = answer.json()["classes"];
  ASSERT_EQ(classes.size(), 2u);
  const std::vector<std::string> names = {"cat", "dog", "\"fox\""};
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(classes[i]["index"], want[i].index);
    EXPECT_EQ(classes[i]["name"], names[want[i].index]);
    EXPECT_EQ(classes[i]["score"].get<float>(), want[i].score);
  }
}
#endif

}  // namespace serve_test
}  // namespace crema::tests
