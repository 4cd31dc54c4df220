// Fully connected layers by cuBLASLt, with bias and ReLU in the epilogue. cuBLAS is column-major,
// which is our row-major transposed: it computes y' = w x'.
#include <cublasLt.h>

#include <cstring>

#include "device/gpu.h"
#include "kernels/conv/dense.h"
#include "tensor/on.h"

namespace crema {
namespace {

cudaDataType_t cuda_type(DType type) {
  switch (type) {
    case DType::f16:
      return CUDA_R_16F;
    case DType::bf16:
      return CUDA_R_16BF;
    default:
      return CUDA_R_32F;
  }
}

std::string as_hex(const void* bytes, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    const unsigned char byte = static_cast<const unsigned char*>(bytes)[i];
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

bool from_hex(const std::string& text, void* bytes, size_t count) {
  if (text.size() != 2 * count) return false;
  for (size_t i = 0; i < count; ++i) {
    const int value = std::stoi(text.substr(2 * i, 2), nullptr, 16);
    static_cast<unsigned char*>(bytes)[i] = static_cast<unsigned char>(value);
  }
  return true;
}

// One product d = op(a) op(b) + beta d of fixed sizes, column-major, with its chosen algorithm.
class Product {
 public:
  struct Case {
    bool transpose_a = false, transpose_b = false;
    int64_t m = 0, n = 0, k = 0;
    DType in = DType::f32, out = DType::f32;
    bool bias = false, relu = false;
    Precision precision = Precision::fp32;
  };

  explicit Product(const Case& c) : c_(c) {
    const auto layout = [](DType type, int64_t rows, int64_t columns) {
      cublasLtMatrixLayout_t made;
      check_cublas(cublasLtMatrixLayoutCreate(&made, cuda_type(type), rows, columns, rows),
                   "describing a matrix");
      return made;
    };
    a_ = layout(c.in, c.transpose_a ? c.k : c.m, c.transpose_a ? c.m : c.k);
    b_ = layout(c.in, c.transpose_b ? c.n : c.k, c.transpose_b ? c.k : c.n);
    d_ = layout(c.out, c.m, c.n);
    const cublasComputeType_t compute =
        c.precision == Precision::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    check_cublas(cublasLtMatmulDescCreate(&product_, compute, CUDA_R_32F), "describing a product");
    set(CUBLASLT_MATMUL_DESC_TRANSA, c.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, c.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    if (c.bias || c.relu) {
      set(CUBLASLT_MATMUL_DESC_EPILOGUE,
          c.bias ? c.relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS
                 : CUBLASLT_EPILOGUE_RELU);
    }
  }
  ~Product() {
    cublasLtMatmulDescDestroy(product_);
    for (cublasLtMatrixLayout_t layout : {a_, b_, d_}) cublasLtMatrixLayoutDestroy(layout);
  }
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;

  bool choose_algorithm(Context& context, std::string& reason) {
    Tuning& tuning = context.gpu().tuning;
    const std::string key =
        cat("product ", name_of(c_.precision), " ", name_of(c_.in), " ", name_of(c_.out), " ",
            c_.transpose_a, c_.transpose_b, " ", c_.m, "x", c_.n, "x", c_.k, c_.bias ? " bias" : "",
            c_.relu ? " relu" : "");
    const auto take = [&](const std::optional<std::string>& answer) {
      const cublasLtMatmulAlgo_t before = algorithm_;
      if (answer && from_hex(*answer, &algorithm_, sizeof algorithm_) && checks(context))
        return true;
      algorithm_ = before;
      return false;
    };
    if (take(tuning.find(key))) return true;

    cublasLtMatmulPreference_t preference;
    check_cublas(cublasLtMatmulPreferenceCreate(&preference), "choosing a product's algorithm");
    const size_t maximum = Gpu::kBlasBytes;
    cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                         &maximum, sizeof maximum);
    std::vector<cublasLtMatmulHeuristicResult_t> found(std::min(tuning.candidates(), 32));
    int count = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        context.gpu().cublas_lt, product_, a_, b_, d_, d_, preference,
        static_cast<int>(found.size()), found.data(), &count);
    cublasLtMatmulPreferenceDestroy(preference);
    if (status != CUBLAS_STATUS_SUCCESS || count == 0) {
      reason = cat("cuBLAS has no algorithm: ", cublasGetStatusString(status));
      return false;
    }
    algorithm_ = found[0].algo;
    const bool known_best = count == 1 || fastest(context, {found.begin(), found.begin() + count});
    if (known_best && tuning.candidates() > 1)
      take(tuning.remember(key, as_hex(&algorithm_, sizeof algorithm_)));
    return true;
  }

  void run(Context& context, const void* a, const void* b, void* d, const void* bias = nullptr,
           bool accumulate = false) {
    if (c_.bias) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    check_cublas(queue(context, a, b, d, accumulate), "a matrix product");
  }

 private:
  template <typename Value>
  void set(cublasLtMatmulDescAttributes_t attribute, Value value) {
    check_cublas(cublasLtMatmulDescSetAttribute(product_, attribute, &value, sizeof value),
                 "describing a product");
  }

  cublasStatus_t queue(Context& context, const void* a, const void* b, void* d, bool accumulate) {
    const float one = 1, beta = accumulate ? 1.f : 0.f;
    const Gpu& gpu = context.gpu();
    return cublasLtMatmul(gpu.cublas_lt, product_, &one, a, a_, b, b_, &beta, d, d_, d, d_,
                          &algorithm_, gpu.blas_workspace, Gpu::kBlasBytes, gpu.stream);
  }

  bool checks(Context& context) {
    cublasLtMatmulHeuristicResult_t result;
    return cublasLtMatmulAlgoCheck(context.gpu().cublas_lt, product_, a_, b_, d_, d_, &algorithm_,
                                   &result) == CUBLAS_STATUS_SUCCESS &&
           result.workspaceSize <= Gpu::kBlasBytes;
  }

  // False: not enough memory to benchmark them.
  bool fastest(Context& context, const std::vector<cublasLtMatmulHeuristicResult_t>& found) {
    const auto padded = [](int64_t count, DType type) {
      return aligned(static_cast<size_t>(count) * size_of(type));
    };
    const size_t a_bytes = padded(c_.m * c_.k, c_.in), b_bytes = padded(c_.k * c_.n, c_.in),
                 d_bytes = padded(c_.m * c_.n, c_.out), bias_bytes = padded(c_.m, c_.out);
    Tuning& tuning = context.gpu().tuning;
    char* const a =
        static_cast<char*>(tuning.scratch(context, a_bytes + b_bytes + d_bytes + bias_bytes));
    if (!a) return false;
    char *const b = a + a_bytes, *const d = b + b_bytes;
    if (c_.bias) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(d + d_bytes));
    cublasLtMatmulAlgo_t best = algorithm_;
    double best_time = 1e30;
    for (const cublasLtMatmulHeuristicResult_t& result : found) {
      algorithm_ = result.algo;
      if (queue(context, a, b, d, false) != CUBLAS_STATUS_SUCCESS) continue;
      double shortest = 1e30;
      for (int i = 0; i < 5; ++i)
        shortest =
            std::min(shortest, tuning.time(context, [&] { queue(context, a, b, d, false); }));
      if (shortest < kClearlyFaster * best_time) {
        best_time = shortest;
        best = result.algo;
      }
    }
    algorithm_ = best;
    return true;
  }

  Case c_;
  cublasLtMatrixLayout_t a_, b_, d_;
  cublasLtMatmulDesc_t product_;
  cublasLtMatmulAlgo_t algorithm_ = {};
};

class CublasDense final : public LinearKernel {
 public:
  explicit CublasDense(const DenseCase& c) : c_(c), leaky_(c.relu.on && c.relu.slope != 0) {}

  bool prepare(Context& context, std::string& reason) {
    Product::Case fprop;
    fprop.transpose_a = !c_.transposed;
    fprop.m = c_.outputs, fprop.n = c_.rows, fprop.k = c_.inputs;
    fprop.in = fprop.out = c_.dtype;
    fprop.precision = c_.precision;
    Product::Case dgrad = fprop, wgrad = fprop;
    fprop.bias = c_.bias;
    fprop.relu = c_.relu.on && !leaky_;
    dgrad.transpose_a = c_.transposed;
    dgrad.m = c_.inputs, dgrad.k = c_.outputs;
    // dw' = x' dy, or if transposed dw' = dy' x.
    wgrad.transpose_a = false;
    wgrad.transpose_b = true;
    wgrad.m = c_.transposed ? c_.outputs : c_.inputs;
    wgrad.n = c_.transposed ? c_.inputs : c_.outputs;
    wgrad.k = c_.rows;
    wgrad.out = DType::f32;
    return make(context, fprop_, fprop, reason) &&
           (!c_.backward_data || make(context, dgrad_, dgrad, reason)) &&
           (!c_.backward_weights || make(context, wgrad_, wgrad, reason));
  }

  void forward(Context& context, const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& y,
               const Tensor&) override {
    fprop_->run(context, w.raw(), x.raw(), y.raw(), b.raw());
    if (!leaky_) return;
    on_real(y, [&]<typename T>() {
      add_bias<T>(context, c_.rows, c_.outputs, 1, nullptr, c_.relu, y.data<T>());
    });
  }

  void backward_data(Context& context, const OutputGradient& g, const Tensor& w, const Tensor& dx,
                     const Tensor&) override {
    dgrad_->run(context, w.raw(), g.dy.raw(), dx.raw());
  }

  void backward_weights(Context& context, const Tensor& x, const OutputGradient& g,
                        const Tensor& dw, const Tensor&, bool accumulate, bool,
                        const Tensor&) override {
    wgrad_->run(context, (c_.transposed ? g.dy : x).raw(), (c_.transposed ? x : g.dy).raw(),
                dw.raw(), nullptr, accumulate);
  }

 private:
  static bool make(Context& context, std::unique_ptr<Product>& product, const Product::Case& c,
                   std::string& reason) {
    product = std::make_unique<Product>(c);
    return product->choose_algorithm(context, reason);
  }

  DenseCase c_;
  bool leaky_;
  std::unique_ptr<Product> fprop_, dgrad_, wgrad_;
};

std::unique_ptr<LinearKernel> make_dense_cublas(Context& context, const DenseCase& c,
                                                std::string& reason) {
  if (c.dtype == DType::f64) {
    reason = "no float64";
  } else if (c.rows * c.inputs * c.outputs == 0) {
    reason = "nothing to compute";
  } else {
    auto dense = std::make_unique<CublasDense>(c);
    if (dense->prepare(context, reason)) return dense;
  }
  return nullptr;
}

REGISTER_KERNEL(dense_kernels, "cublas", RunsOn::gpu, 10, make_dense_cublas);

}  // namespace
}  // namespace crema
