// Common code of the tests of `crema serve`: models, a server, and a client that may send anything.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <regex>
#include <thread>

#include "crema.h"
#include "proto/net.pb.h"
#include "tools/program.h"

namespace crema::tests {
namespace served {

using Json = nlohmann::json;

class Socket {
 public:
  explicit Socket(int port) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  ~Socket() { close(socket_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  bool connected() const { return connected_; }
  bool send(const std::string& text) const {
    size_t sent = 0;
    while (sent < text.size()) {
      const ssize_t put = ::send(socket_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
      if (put <= 0) return false;
      sent += static_cast<size_t>(put);
    }
    return true;
  }
  // The next response; "" if the connection ends before it is whole.
  std::string receive() {
    char buffer[4096];
    while (true) {
      const std::string goes_on = "HTTP/1.1 100 Continue\r\n\r\n";
      if (starts_with(text_, goes_on)) {
        text_.erase(0, goes_on.size());
        continued = true;
      }
      const size_t end = text_.find("\r\n\r\n");
      if (end != std::string::npos) {
        const size_t length = text_.find("Content-Length: ");
        const size_t whole = end + 4 + std::stoul(text_.substr(length + 16));
        if (text_.size() >= whole) {
          std::string answer = text_.substr(0, whole);
          text_.erase(0, whole);
          return answer;
        }
      }
      const ssize_t got = recv(socket_, buffer, sizeof buffer, 0);
      if (got <= 0) return "";
      text_.append(buffer, static_cast<size_t>(got));
    }
  }

  bool continued = false;  // the server has asked for the body

 private:
  int socket_;
  bool connected_ = false;
  std::string text_;
};

struct Response {
  int status = 0;
  std::string head, body;
  Json json() const { return Json::parse(body, nullptr, false); }
};

inline Response response_in(const std::string& text) {
  if (text.size() < 12) return {};
  const size_t end = text.find("\r\n\r\n");
  return {std::stoi(text.substr(9, 3)), text.substr(0, end), text.substr(end + 4)};
}

inline std::string post_text(const std::string& path, const std::string& body,
                             const std::string& headers = "") {
  return cat("POST ", path, " HTTP/1.1\r\nHost: localhost\r\n", headers,
             "Content-Length: ", body.size(), "\r\n\r\n", body);
}

inline Response response_to(int port, const std::string& request) {
  Socket client(port);
  EXPECT_TRUE(client.send(request));
  return response_in(client.receive());
}

inline std::string input_layer(const std::string& name, const std::string& dims) {
  return "layer { name: \"" + name + "\" type: \"Input\" top: \"" + name +
         "\" input_param { shape { " + dims + " } } }\n";
}

// Weights of layer `fc` that differ from each other.
inline std::string weights_text(int outputs, int inputs) {
  NetParameter net;
  LayerParameter& layer = *net.add_layer();
  layer.set_name("fc");
  layer.set_type("InnerProduct");
  BlobProto& weights = *layer.add_blobs();
  weights.mutable_shape()->add_dim(outputs);
  weights.mutable_shape()->add_dim(inputs);
  for (int i = 0; i < outputs * inputs; ++i) weights.add_data(static_cast<float>(i * 7 % 11) / 8);
  BlobProto& bias = *layer.add_blobs();
  bias.mutable_shape()->add_dim(outputs);
  for (int i = 0; i < outputs; ++i) bias.add_data(static_cast<float>(i));
  return net.SerializeAsString();
}

inline std::string infer_text(const std::vector<float>& values, int samples,
                              const std::string& more = "") {
  const Json input = {{"name", "x"},
                      {"datatype", "FP32"},
                      {"shape", {samples, values.size() / samples}},
                      {"data", values}};
  return cat("{\"id\":\"seven\"", more, ",\"inputs\":[", input.dump(), "]}");
}

inline std::vector<float> sample(int number) {
  return {static_cast<float>(number), static_cast<float>(number % 7) / 3, -1};
}

class Serve : public testing::Test {
 protected:
  void SetUp() override {
    const std::string fc = "layer { name: \"fc\" type: \"InnerProduct\" bottom: ";
    folder_.write("models/vector/net.prototxt",
                  input_layer("x", "dim: 1 dim: 3") + fc +
                      "\"x\" top: \"y\" inner_product_param { num_output: 2 } }\n");
    folder_.write("models/vector/net.caffemodel", weights_text(2, 3));
    folder_.write("models/image/deploy.prototxt",
                  input_layer("data", "dim: 1 dim: 1 dim: 2 dim: 2") + fc +
                      "\"data\" top: \"fc\" inner_product_param { num_output: 3 } }\n"
                      "layer { name: \"prob\" type: \"Softmax\" bottom: \"fc\" top: \"prob\" }\n");
    folder_.write("models/image/net.caffemodel", weights_text(3, 4));
    folder_.write("models/image/labels.txt", "cat\ndog\n\"fox\"\n");
    folder_.write("models/sum/net.prototxt",
                  input_layer("a", "dim: 1 dim: 2") + input_layer("b", "dim: 1 dim: 2") +
                      "layer { name: \"sum\" type: \"Eltwise\" bottom: \"a\" bottom: \"b\" top: "
                      "\"sum\" }\n");
    folder_.write("models/sum/net.caffemodel", weights_text(1, 1));
    // Its samples concern each other.
    folder_.write("models/across/net.prototxt",
                  input_layer("x", "dim: 2 dim: 2") +
                      "layer { name: \"y\" type: \"Softmax\" bottom: \"x\" top: \"y\" "
                      "softmax_param { axis: 0 } }\n");
    folder_.write("models/across/net.caffemodel", weights_text(1, 1));
    folder_.write("models/not_a_model/readme.txt", "");
  }

  void start(const std::string& flags = "models") {
    server_ = std::thread([this, flags] {
      outcome_ = run_shell(folder_,
                           "\"$TOOLS\"/crema serve " + flags + " -port 0 & echo $! > pid; wait $!");
    });
    const std::regex address("http://127\\.0\\.0\\.1:([0-9]+)/");
    for (int i = 0; i < 1000 && port_ == 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      std::smatch match;
      const std::string log = folder_.has(".stderr") ? folder_.read(".stderr") : "";
      if (std::regex_search(log, match, address)) port_ = std::stoi(match[1]);
    }
    ASSERT_NE(port_, 0) << outcome_.err;
  }
  void end(int signal) {
    kill(std::stoi(folder_.read("pid")), signal);
    server_.join();
    EXPECT_EQ(outcome_.code, 0) << outcome_.err;
  }
  void TearDown() override {
    if (server_.joinable()) end(SIGINT);
  }

  Response get(const std::string& path) const {
    return response_to(port_, "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
  }
  Response post(const std::string& path, const std::string& body) const {
    return response_to(port_, post_text(path, body));
  }
  // What the model gives without a server.
  std::vector<float> own_results(int number) const {
    Model model(folder_.file("models/vector/net.prototxt"),
                {.weights = {folder_.file("models/vector/net.caffemodel")}});
    model.set_input("x", sample(number));
    model.forward();
    return model.values("y");
  }
  static std::vector<float> data_of(const Response& response) {
    const Json json = response.json();
    if (response.status != 200) ADD_FAILURE() << response.status << ": " << response.body;
    return response.status == 200 ? json["outputs"][0]["data"].get<std::vector<float>>()
                                  : std::vector<float>();
  }

  const Folder folder_;
  std::thread server_;
  Outcome outcome_;
  int port_ = 0;
};

}  // namespace served
}  // namespace crema::tests
