#include "weights/random_weights.h"

#include <zlib.h>

#include <charconv>
#include <cmath>

#include "base/half.h"
#include "base/strings.h"

namespace sfumato {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 32;

Result<std::string> unzipped(const std::filesystem::path& path) {
  const gzFile file = gzopen(path.c_str(), "rb");
  if (!file) return input_error(str("[weights.shapes] cannot read \"", path.string(), "\""));
  std::string text;
  char block[1 << 14];
  int bytes = 0;
  while ((bytes = gzread(file, block, sizeof block)) > 0) text.append(block, static_cast<size_t>(bytes));
  gzclose(file);
  if (bytes < 0) return input_error(str("[weights.shapes] \"", path.string(), "\" is damaged"));
  return text;
}

/// "320x4x3x3"; empty if it is none.
std::vector<int64_t> parse_dims(const std::string& text) {
  std::vector<int64_t> dims;
  int64_t elements = 1;
  for (const std::string& part : split(text, 'x')) {
    int64_t dim = 0;
    const char* end = part.data() + part.size();
    if (std::from_chars(part.data(), end, dim).ptr != end || dim < 1 || dim > kMaxElements) return {};
    elements *= dim;
    if (elements > kMaxElements) return {};
    dims.push_back(dim);
  }
  return dims;
}

/// A 16-bit linear congruential generator would repeat within a tensor; 64 bits (Knuth's MMIX constants) do not.
class Uniform {
 public:
  /// -1..1
  float operator()() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<float>(static_cast<int32_t>(state_ >> 32)) * 0x1p-31f;
  }

 private:
  uint64_t state_ = 42;
};

void fill(Tensor& tensor, const std::string& name, Uniform& uniform) {
  const Shape& shape = tensor.shape();
  auto* out = static_cast<uint16_t*>(tensor.data());
  const auto count = static_cast<size_t>(shape.elements());
  if (shape.rank() == 1) {
    std::fill_n(out, count, f32_to_f16(name.ends_with("bias") ? 0.0f : 1.0f));
    return;
  }
  // Uniform on -a..a has variance a^2 / 3.
  const float a = std::sqrt(3.0f * static_cast<float>(shape[0]) / static_cast<float>(count));
  constexpr size_t kPeriod = 4099;  // a prime: rows of a matrix differ; and the time is that of a copy
  uint16_t values[kPeriod];
  for (uint16_t& value : values) value = f32_to_f16(a * uniform());
  for (size_t i = 0; i < count; ++i) out[i] = values[i % kPeriod];
}

}  // namespace

Result<std::map<std::string, Shape>> read_shapes(const std::filesystem::path& path) {
  std::map<std::string, Shape> shapes;
  for (const std::string& line : split(TRY(unzipped(path)), '\n')) {
    if (trim(line).empty()) continue;
    const std::vector<std::string> words = split(trim(line), ' ');
    const std::vector<int64_t> dims = words.size() == 2 ? parse_dims(words[1]) : std::vector<int64_t>();
    if (dims.empty())
      return input_error(
          str("[weights.shapes] \"", path.string(), "\": expected \"name 320x4x3x3\", got \"", printable(line), "\""));
    shapes[words[0]] = Shape(dims);
  }
  return shapes;
}

Result<std::shared_ptr<const RandomWeights>> RandomWeights::open(const std::filesystem::path& shapes) {
  auto out = std::make_shared<RandomWeights>();
  Uniform uniform;
  for (const auto& [name, shape] : TRY(read_shapes(shapes)))
    fill(out->tensors_.emplace(name, Tensor(shape, DType::kF16)).first->second, name, uniform);
  return std::shared_ptr<const RandomWeights>(std::move(out));
}

std::optional<TensorView> RandomWeights::find(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? std::nullopt : std::optional(found->second.view());
}

std::vector<std::string> RandomWeights::names() const {
  std::vector<std::string> out;
  for (const auto& [name, tensor] : tensors_) out.push_back(name);
  return out;
}

}  // namespace sfumato
