#include "server/base64.h"

#include <openssl/evp.h>

#include <algorithm>

#include "base/strings.h"

namespace sfumato::server {
namespace {

bool is_digit(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '/';
}

}  // namespace

std::string to_base64(std::string_view bytes) {
  std::string out(4 * ((bytes.size() + 2) / 3) + 1, '\0');  // EVP adds a zero
  EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()), reinterpret_cast<const unsigned char*>(bytes.data()),
                  static_cast<int>(bytes.size()));
  out.pop_back();
  return out;
}

Result<std::string> from_base64(std::string_view field, std::string_view text) {
  const auto fault = [&](const char* got) {
    return usage_error(str("[server.base64] ", field, " expected a picture in base64, got ", got));
  };
  if (text.starts_with("http://") || text.starts_with("https://") || text.starts_with("file:"))
    return fault("an address; this server fetches nothing, send the picture itself");
  if (text.starts_with("data:")) {
    const size_t comma = text.find(',');
    if (comma == std::string_view::npos || !text.substr(0, comma).ends_with(";base64"))
      return fault("a data: URL that is not base64");
    text.remove_prefix(comma + 1);
  }
  std::string clean(text);
  std::erase_if(clean, [](char c) { return c == '\n' || c == '\r'; });
  const size_t padding = clean.ends_with("==") ? 2 : clean.ends_with("=") ? 1 : 0;
  if (clean.empty() || clean.size() % 4 != 0 ||
      !std::all_of(clean.begin(), clean.end() - static_cast<ptrdiff_t>(padding), is_digit))
    return fault(clean.empty() ? "nothing" : "something else");
  std::string out(clean.size() / 4 * 3, '\0');
  const int bytes =
      EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                      reinterpret_cast<const unsigned char*>(clean.data()), static_cast<int>(clean.size()));
  if (bytes < 0) return fault("something else");
  out.resize(static_cast<size_t>(bytes) - padding);
  return out;
}

}  // namespace sfumato::server
