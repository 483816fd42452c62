#include "weights/safetensors.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "base/strings.h"

namespace sfumato {
namespace {

using Json = nlohmann::json;
constexpr uint64_t kMaxHeader = 100'000'000;  // the reference reader's limit

struct Entry {
  std::string name;
  DType dtype;
  Shape shape;
  uint64_t begin = 0, end = 0;
};

/// Parses, and notes the first key that stands twice in one object (nlohmann would keep the last).
Json parse_unique(std::string_view text, std::string& duplicate) {
  std::vector<std::set<std::string>> open;
  return Json::parse(
      text,
      [&](int, Json::parse_event_t event, Json& parsed) {
        if (event == Json::parse_event_t::object_start) open.emplace_back();
        if (event == Json::parse_event_t::object_end) open.pop_back();
        if (event == Json::parse_event_t::key && !open.back().insert(parsed.get<std::string>()).second &&
            duplicate.empty())
          duplicate = parsed.get<std::string>();
        return true;
      },
      /*allow_exceptions=*/false);
}

/// shape.elements() * dtype_size without overflow; nothing when a dimension is negative or the product too large.
std::optional<uint64_t> byte_count(const std::vector<int64_t>& dims, DType dtype) {
  uint64_t bytes = dtype_size(dtype);
  for (const int64_t d : dims)
    if (d < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(d), &bytes)) return std::nullopt;
  return bytes;
}

class HeaderReader {
 public:
  HeaderReader(const std::filesystem::path& path, uint64_t data_size) : path_(path), data_size_(data_size) {}

  Result<std::vector<Entry>> read(std::string_view text) const {
    std::string duplicate;
    const Json header = parse_unique(text, duplicate);
    if (header.is_discarded() || !header.is_object()) return fault("expected a JSON object as header, got broken JSON");
    if (!duplicate.empty())
      return fault(str("expected each key once, got duplicate key \"", printable(duplicate), "\""));
    std::vector<Entry> entries;
    for (const auto& [name, value] : header.items())
      if (name != "__metadata__") entries.push_back(TRY(entry(name, value)));
    TRY(check_coverage(entries));
    return entries;
  }

  Error fault(const std::string& what) const {
    return input_error(str("[weights.safetensors] \"", path_.string(), "\": ", what));
  }

 private:
  Result<Entry> entry(const std::string& name, const Json& value) const {
    const auto bad = [&](const std::string& what) { return fault(str("tensor \"", printable(name), "\": ", what)); };
    const auto field = [&](const char* key) { return value.is_object() && value.contains(key) ? value[key] : Json(); };
    const Json dtype = field("dtype"), shape = field("shape"), offsets = field("data_offsets");
    const auto is_count = [](const Json& j) { return j.is_number_unsigned(); };
    if (!dtype.is_string() || !shape.is_array() || !std::all_of(shape.begin(), shape.end(), is_count) ||
        !offsets.is_array() || offsets.size() != 2 || !std::all_of(offsets.begin(), offsets.end(), is_count))
      return bad("expected {dtype, shape, data_offsets: [begin, end]}, got " + value.dump().substr(0, 80));
    const std::optional<DType> type = parse_dtype(dtype.get<std::string>());
    if (!type) return bad(str("unknown dtype \"", printable(dtype.get<std::string>()), "\""));
    Entry out{name, *type, {}, offsets[0].get<uint64_t>(), offsets[1].get<uint64_t>()};
    std::vector<int64_t> dims;
    for (const Json& d : shape) {
      if (d.get<uint64_t>() > INT64_MAX) return bad("a dimension is too large");
      dims.push_back(d.get<int64_t>());
    }
    const std::optional<uint64_t> bytes = byte_count(dims, *type);
    if (out.end < out.begin || out.end > data_size_)
      return bad(str("expected offsets within ", data_size_, " bytes of data, got ", out.begin, " to ", out.end));
    if (!bytes || *bytes != out.end - out.begin)
      return bad(str("expected ", bytes ? str(*bytes) : "fewer", " bytes for its shape, got ", out.end - out.begin));
    out.shape = Shape(std::move(dims));
    return out;
  }

  Result<void> check_coverage(std::vector<Entry>& entries) const {
    std::sort(entries.begin(), entries.end(),
              [](const Entry& a, const Entry& b) { return std::tie(a.begin, a.end) < std::tie(b.begin, b.end); });
    uint64_t at = 0;
    for (const Entry& e : entries) {
      if (e.begin != at)
        return fault(str("tensor \"", printable(e.name), "\" ",
                         e.begin < at ? "overlaps the one before it" : "follows a gap", ": expected it to begin at ",
                         at, ", got ", e.begin));
      at = e.end;
    }
    if (at != data_size_)
      return fault(str("expected the data to end with the last tensor at ", at, " bytes, got ", data_size_,
                       "; the file was cut off or has bytes appended"));
    return {};
  }

  const std::filesystem::path& path_;
  uint64_t data_size_;
};

}  // namespace

Result<std::shared_ptr<const SafetensorsFile>> SafetensorsFile::open(const std::filesystem::path& path) {
  auto out = std::make_shared<SafetensorsFile>();
  out->file_ = TRY(MappedFile::open(path));
  const std::span<const std::byte> bytes = out->file_->bytes();
  uint64_t length = 0;
  const uint64_t after_length = bytes.size() < sizeof length ? 0 : bytes.size() - sizeof length;
  const HeaderReader no_data(path, 0);
  if (bytes.size() < sizeof length)
    return no_data.fault(str("expected a safetensors file, got only ", bytes.size(), " bytes"));
  std::memcpy(&length, bytes.data(), sizeof length);
  if (length > kMaxHeader)
    return no_data.fault(str("expected a header of at most ", kMaxHeader, " bytes, got a length of ", length,
                             "; is this a safetensors file?"));
  if (length > after_length)
    return no_data.fault(str("expected a header within the file's ", bytes.size(), " bytes, got a length of ", length,
                             "; the download may be incomplete"));
  out->header_ = {reinterpret_cast<const char*>(bytes.data()) + sizeof length, length};
  if (out->header_.empty() || out->header_[0] != '{') return no_data.fault("expected the header to start with '{'");
  out->data_ = {out->header_.data() + length, after_length - length};
  const HeaderReader reader(path, after_length - length);
  for (Entry& e : TRY(reader.read(out->header_)))
    out->tensors_[e.name] = {bytes.data() + sizeof length + length + e.begin, std::move(e.shape), e.dtype};
  return std::shared_ptr<const SafetensorsFile>(std::move(out));
}

std::optional<TensorView> SafetensorsFile::find(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<std::string> SafetensorsFile::names() const {
  std::vector<std::string> out;
  for (const auto& [name, view] : tensors_) out.push_back(name);
  return out;
}

}  // namespace sfumato
