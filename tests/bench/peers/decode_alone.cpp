// JPEGs decoded whole by libjpeg-turbo, and nothing else: what data_loading.py sets the loader against.
//   decode_alone FOLDER FILES IMAGES THREADS     prints images a second
// The files FOLDER/0.jpg ... are in memory before the clock starts.
// jpeglib.h needs it before.
// clang-format off
#include <cstdio>
#include <jpeglib.h>
// clang-format on

#include <atomic>
#include <chrono>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace {

// In the order blue, green, red, as OpenCV and so Caffe request it.
void decode(const std::vector<unsigned char>& file, std::vector<unsigned char>& pixels) {
  jpeg_decompress_struct decoder;
  jpeg_error_mgr errors;
  decoder.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&decoder);
  jpeg_mem_src(&decoder, file.data(), file.size());
  jpeg_read_header(&decoder, TRUE);
  decoder.out_color_space = JCS_EXT_BGR;
  jpeg_start_decompress(&decoder);
  const size_t row = decoder.output_width * 3;
  pixels.resize(row * decoder.output_height);
  while (decoder.output_scanline < decoder.output_height) {
    JSAMPROW at = pixels.data() + row * decoder.output_scanline;
    jpeg_read_scanlines(&decoder, &at, 1);
  }
  jpeg_finish_decompress(&decoder);
  jpeg_destroy_decompress(&decoder);
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 5) return std::cerr << "decode_alone FOLDER FILES IMAGES THREADS\n", 1;
  std::vector<std::vector<unsigned char>> files(std::stoul(arguments[2]));
  for (size_t i = 0; i < files.size(); ++i) {
    std::ifstream in(std::string(arguments[1]) + "/" + std::to_string(i) + ".jpg",
                     std::ios::binary);
    files[i].assign(std::istreambuf_iterator<char>(in), {});
  }
  const size_t images = std::stoul(arguments[3]);
  std::atomic<size_t> next{0};
  std::vector<std::thread> threads;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < std::stoi(arguments[4]); ++i) {
    threads.emplace_back([&] {
      std::vector<unsigned char> pixels;
      for (size_t image; (image = next++) < images;) decode(files[image % files.size()], pixels);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  std::cout << static_cast<double>(images) / seconds.count() << '\n';
}
