#include "server/router.h"

namespace sfumato::server {
namespace {

/// Does `path` fit `pattern`? `parameter` takes what stands for {}.
bool fits(std::string_view pattern, std::string_view path, std::string& parameter) {
  const size_t hole = pattern.find("{}");
  if (hole == std::string_view::npos) return pattern == path;
  const std::string_view after = pattern.substr(hole + 2);
  if (path.size() <= hole + after.size() || !path.starts_with(pattern.substr(0, hole)) || !path.ends_with(after))
    return false;
  const std::string_view middle = path.substr(hole, path.size() - hole - after.size());
  if (after.empty() && middle.find('/') != std::string_view::npos) return false;
  parameter = middle;
  return true;
}

}  // namespace

const Route* Router::find(HttpRequest& request, unsigned& status) const {
  const std::string method = request.method == "HEAD" ? "GET" : request.method;
  status = 404;
  for (const Route& route : routes_) {
    std::string parameter;
    if (!fits(route.path, request.path, parameter)) continue;
    status = 405;
    if (route.method != method) continue;
    request.parameter = parameter;
    return &route;
  }
  return nullptr;
}

}  // namespace sfumato::server
