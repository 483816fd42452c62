#pragma once
// Reading config.json: typed access with errors that name the file's field.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"

namespace sfumato::models {

/// A parsed config. The first fault is kept and returned by finish(), so that reading is a list of plain lines.
class ConfigReader {
 public:
  /// `component` names the config in errors: "unet".
  static Result<ConfigReader> parse(const std::string& component, const std::string& text);

  int64_t integer(const char* key, int64_t fallback, int64_t least = 1, int64_t most = 1 << 20);
  double number(const char* key, double fallback);
  bool boolean(const char* key, bool fallback);
  std::string text(const char* key, const std::string& fallback);
  std::vector<std::string> texts(const char* key, const std::vector<std::string>& fallback);
  std::vector<int64_t> integers(const char* key, const std::vector<int64_t>& fallback);
  /// One number for all `count` entries, or a list of `count`.
  std::vector<int64_t> per_block(const char* key, int64_t fallback, size_t count);
  std::vector<bool> per_block_flags(const char* key, bool fallback, size_t count);
  bool has(const char* key) const { return json_.contains(key) && !json_[key].is_null(); }
  /// A feature that is not implemented: anything but absent, null or `neutral` is a fault that names it.
  void refuse(const char* key, const nlohmann::json& neutral = nullptr);
  void fault(const std::string& message);
  Result<void> finish() const;

 private:
  const nlohmann::json* find(const char* key) const;

  std::string component_;
  nlohmann::json json_;
  std::string fault_;
};

}  // namespace sfumato::models
