// `crema serve`: requests and models that it refuses.
#include "tools/served.h"

namespace crema::tests {
namespace serve_refusals_test {

using namespace served;

class ServeRefusals : public Serve {};

TEST_F(ServeRefusals, SaysWhatIsWrongWithARequest) {
  start();
  const std::string infer = "/v2/models/vector/infer";
  const auto input = [](const std::string& fields) { return "{\"inputs\":[{" + fields + "}]}"; };
  struct Row {
    std::string path, body;
    int status;
    std::string part;
  };
  const std::string named = R"("name":"x","datatype":"FP32",)";
  for (const auto& [path, body, status, part] : std::vector<Row>{
           {"/v2/models/none/infer", "{}", 404,
            "there is no model \"none\"; there are: across, image"},
           {"/v2/models/vector/versions/2/infer", "{}", 404, "there is no"},
           {"/v2/models/vector", "{}", 405, "takes GET"},
           {"/v2/health/live", "{}", 404, "nothing is posted"},
           {infer, "", 400, "not JSON"},
           {infer, "{\"inputs\":", 400, "not JSON"},
           {infer, "[]", 400, "no JSON object"},
           {infer, "{}", 400, "\"inputs\" is missing"},
           {infer, "{\"inputs\":[]}", 400, "input \"x\" is missing"},
           {infer, "{\"inputs\":[3]}", 400, "something else than objects"},
           {infer, input(R"("name":"z")"), 400, "no input \"z\"; it has: x"},
           {infer, input(R"("name":"x","datatype":"INT8","shape":[1,3],"data":[1,2,3])"), 400,
            "input \"x\": the datatype is INT8; expected FP32"},
           {infer, input(named + R"("shape":[1,4],"data":[1,2,3,4])"), 400,
            "the shape is 1x4; expected Nx3 with N from 1 to 8"},
           {infer, input(named + R"("shape":[9,3],"data":[])"), 400, "N from 1 to 8"},
           {infer, input(named + R"("shape":[0,3],"data":[])"), 400, "N from 1 to 8"},
           {infer, input(named + R"("shape":[-1,3],"data":[])"), 400, "other than sizes"},
           {infer, input(named + R"("shape":[18446744073709551615,3],"data":[])"), 400,
            "N from 1 to 8"},
           {infer, input(named + R"("shape":[1,3],"data":[1,2])"), 400,
            "2 values were given; the shape takes 3"},
           {infer, input(named + R"("shape":[1,3],"data":[1,2,"a"])"), 400, "which is no number"},
           {infer, input(named + R"("shape":[1,3],"data":[1,2,1e999])"), 400, "not JSON"},
           {infer, input(named + R"("shape":[1,3])"), 400, "\"data\" is missing"},
           {infer, std::string(100000, '['), 400, "too many arrays"},
           {infer, infer_text({1, 2, 3}, 1, R"(,"outputs":[{"name":"z"}])"), 400,
            "no output \"z\"; it has: y"},
           {"/v2/models/vector/classify", "x", 400,
            "does not take pictures; post tensors to /v2/models/vector/infer"},
           {"/v2/models/image/detect", "x", 400,
            "gives classes, not boxes; post pictures to /v2/models/image/classify"},
           {"/v2/models/image/segment", "x", 400, "gives classes, not a mask"},
           {"/v2/models/image/classify", "", 400, "the body is empty"},
           {"/v2/models/image/classify", "no picture", 400,
            "the picture in the body: its 10 bytes"},
           {"/v2/models/image/classify", "P5\n60000 60000\n255\n", 413, "60000 x 60000 pixels"},
           {"/v2/models/image/classify", std::string("\xff\xd8\xff\xe0\0\x10JFIF", 10), 400, ""},
           {"/v2/models/image/classify?top=x", "x", 400, "top is \"x\"; expected a number"},
           {"/v2/models/image/classify?score=1", "x", 400, "it takes ?top=NUMBER"}}) {
    const Response answer = post(path, body);
    EXPECT_EQ(answer.status, status) << path << " " << body.substr(0, 200) << answer.body;
    const Json json = answer.json();
    ASSERT_TRUE(json.is_object() && json.contains("error")) << answer.body;
    expect_part(json["error"], part);
  }
}

// One that two servers could read differently is refused, and its connection ends.
TEST_F(ServeRefusals, RefusesAmbiguousRequests) {
  start();
  const std::string to = "POST /v2/models/vector/infer HTTP/1.1\r\n", host = "Host: localhost\r\n";
  for (const auto& [request, status] : std::vector<std::pair<std::string, int>>{
           {to + host + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 411},
           {to + host + "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n{}", 400},
           {to + host + "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", 400},
           {to + host + "Content-Length: 2\r\ncontent-length: 3\r\n\r\n{}", 400},
           {to + host + "Content-Length: 2, 2\r\n\r\n{}", 400},
           {to + host + "Content-Length: +2\r\n\r\n{}", 400},
           {to + host + "Content-Length: -2\r\n\r\n{}", 400},
           {to + host + "Content-Length: 0x2\r\n\r\n{}", 400},
           {to + host + "Content-Length : 2\r\n\r\n{}", 400},
           {to + host + "Content-Length: \r\n\r\n", 400},
           {to + host + "\r\n", 411},
           {to + host + "Content-Length: 99999999999999999999999\r\n\r\n", 413},
           {to + host + "Content-Length: 20000000\r\n\r\n", 413},
           {to + host + host + "Content-Length: 2\r\n\r\n{}", 400},
           {to + "Content-Length: 2\r\n\r\n{}", 400},
           {to + "Host: evil.example\r\nContent-Length: 2\r\n\r\n{}", 403},
           {to + host + "X: a\r\n b\r\nContent-Length: 2\r\n\r\n{}", 400},
           {to + host + "X: a\nContent-Length: 2\r\n\r\n", 400},
           {to + host + "no header\r\nContent-Length: 2\r\n\r\n{}", 400},
           {to + host + "Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}", 415},
           {"GET / HTTP/2.0\r\n" + host + "\r\n", 505},
           {"GET  / HTTP/1.1\r\n" + host + "\r\n", 400},
           {"GET http://localhost/ HTTP/1.1\r\n" + host + "\r\n", 400},
           {"GET /%0 HTTP/1.1\r\n" + host + "\r\n", 400},
           {"GET /%00 HTTP/1.1\r\n" + host + "\r\n", 400},
           {"GET\r\n\r\n", 400},
           {"\r\n\r\n", 400},
           {std::string("\0\1\2\r\n\r\n", 7), 400},
           {"GET / HTTP/1.1\r\n" + host + "X: " + std::string(20000, 'x'), 431},
           {"PUT / HTTP/1.1\r\n" + host + "Content-Length: 0\r\n\r\n", 405}}) {
    Socket client(port_);
    ASSERT_TRUE(client.send(request));
    const Response answer = response_in(client.receive());
    EXPECT_EQ(answer.status, status) << request.substr(0, 200) << "\n" << answer.body;
    EXPECT_TRUE(answer.json().contains("error")) << answer.body;
    if (status != 405) {
      expect_part(answer.head, "Connection: close");
    }
  }
  EXPECT_EQ(get("/v2/health/live").status, 200);
}

TEST_F(ServeRefusals, SaysWhatCannotBeServed) {
  folder_.write("wrong/one/net.prototxt", "name: \"one\"\nlayer { name: \"a\" type: \"Relu\" }\n");
  folder_.write("wrong/one/net.caffemodel", weights_text(1, 1));
  folder_.write("bare/one/net.prototxt", "");
  folder_.write("empty/readme.txt", "");
  folder_.write("one.txt", "cat\n");
  folder_.write("unread.prototxt",
                "layer { name: \"data\" type: \"Data\" top: \"data\" top: \"label\" data_param { "
                "source: \"none\" batch_size: 4 } }\n"
                "layer { name: \"fc\" type: \"InnerProduct\" bottom: \"data\" top: \"fc\" "
                "inner_product_param { num_output: 2 } }\n");
  const std::string model = "serve -model models/vector/net.prototxt ";
  const std::string image =
      "serve -model models/image/deploy.prototxt -weights models/image/net.caffemodel ";
  const std::string unread = "serve -model unread.prototxt -weights models/vector/net.caffemodel";
  for (const auto& [command, part] : std::vector<std::pair<std::string, std::string>>{
           {"serve", "a net is needed: -model NET.prototxt, or a folder of models"},
           {"serve none", "none: there is no such folder"},
           {"serve wrong", "wrong/one/net.prototxt:2:1: "},
           {"serve bare", "bare/one: has net.prototxt but no net.caffemodel"},
           {"serve empty", "empty: no folder in it has net.prototxt"},
           {"serve models -name x", "-name is for one -model"},
           {"serve models -port 65536", "-port 65536: expected 0, a free one, to 65535"},
           {"serve models -weights_mode all", "-weights_mode all: expected strict or match"},
           {"serve models -batch -1", "-batch -1: expected 1 to"},
           {"serve models -max_body 0", "-max_body 0: expected 1 to"},
           {"serve models -batch_delay -1", "-batch_delay -1: expected 0 to"},
           {model, "weights are needed: -weights FILE.caffemodel"},
           {model + "-weights none.caffemodel", "none.caffemodel"},
           {model + "-weights none.caffemodel -resize 3", "-resize 3: expected width x height"},
           {model + "-weights models/image/net.caffemodel", "fc"},
           {image + "-resize 1x1", "; -resize WIDTHxHEIGHT gives images another size"},
           {image + "-labels one.txt", "one.txt: names 1 class, but the net has 3"},
           {unread, "for example -assume data=SHAPE (with"},
           {unread + " -assume x=1x2", "-assume: no data layer has a top \"x\""},
           {model + "-weights models/vector/net.caffemodel -name a/b",
            "-name a/b: a name has no"}}) {
    const Outcome outcome = run(folder_, "crema " + command);
    EXPECT_EQ(outcome.code, 1) << command;
    expect_part(outcome.err, part);
  }
}

}  // namespace serve_refusals_test
}  // namespace crema::tests
