#include "server/multipart.h"

#include "base/strings.h"

namespace sfumato::server {
namespace {

constexpr size_t kMostParts = 64;

Error bad(const char* what) {
  return usage_error(str("[server.form] expected multipart/form-data, got ", what));
}

/// The value of `name=` in a header such as `form-data; name="image"; filename="a.png"`; empty if it is not there.
std::string parameter(std::string_view header, std::string_view name) {
  for (size_t at = header.find(';'); at != std::string_view::npos; at = header.find(';', at + 1)) {
    std::string_view rest = trim(header.substr(at + 1));
    if (lowercase_ascii(rest.substr(0, name.size())) != name || rest.size() <= name.size() || rest[name.size()] != '=')
      continue;
    rest.remove_prefix(name.size() + 1);
    if (!rest.starts_with('"')) return std::string(trim(rest.substr(0, rest.find(';'))));
    std::string value;
    for (size_t i = 1; i < rest.size() && rest[i] != '"'; ++i) {
      if (rest[i] == '\\' && i + 1 < rest.size()) ++i;
      value += rest[i];
    }
    return value;
  }
  return "";
}

/// A part's own header lines and body.
Result<FormPart> parse_part(std::string_view text) {
  const size_t end = text.find("\r\n\r\n");
  if (end == std::string_view::npos) return bad("a part without a header");
  FormPart part;
  part.body = text.substr(end + 4);
  for (const std::string& line : split(text.substr(0, end), '\n'))
    if (lowercase_ascii(line).starts_with("content-disposition:")) {
      part.name = parameter(trim(line), "name");
      part.filename = parameter(trim(line), "filename");
    }
  if (part.name.empty()) return bad("a part without a name");
  return part;
}

}  // namespace

Result<std::vector<FormPart>> parse_form(std::string_view content_type, std::string_view body) {
  if (!lowercase_ascii(content_type).starts_with("multipart/form-data")) return bad("another content type");
  const std::string boundary = "\r\n--" + parameter(content_type, "boundary");
  constexpr size_t kMark = 4;  // the line break and dashes before the boundary's own text
  if (boundary.size() == kMark) return bad("no boundary");
  // The first boundary has no line break before it.
  if (!body.starts_with(std::string_view(boundary).substr(2)))
    return bad("a body that does not begin with its boundary");
  body.remove_prefix(boundary.size() - 2);
  std::vector<FormPart> parts;
  while (!body.starts_with("--")) {
    if (!body.starts_with("\r\n")) return bad("a boundary that goes on");
    body.remove_prefix(2);
    const size_t end = body.find(boundary);
    if (end == std::string_view::npos) return bad("a body that breaks off");
    if (parts.size() == kMostParts) return bad("more than 64 parts");
    parts.push_back(TRY(parse_part(body.substr(0, end))));
    body.remove_prefix(end + boundary.size());
  }
  return parts;
}

}  // namespace sfumato::server
