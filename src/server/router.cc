#include "server/router.h"

#include "base/strings.h"

namespace sfumato::server {
namespace {

/// Does `path` fit `pattern`, segment by segment? `parameters` takes what stands for each {}; none of it is empty.
bool fits(std::string_view pattern, std::string_view path, std::vector<std::string>& parameters) {
  const std::vector<std::string> wanted = split(pattern, '/'), given = split(path, '/');
  if (wanted.size() != given.size()) return false;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const bool is_hole = wanted[i] == "{}";
    if (is_hole ? given[i].empty() : wanted[i] != given[i]) return false;
    if (is_hole) parameters.push_back(given[i]);
  }
  return true;
}

}  // namespace

const Route* Router::find(HttpRequest& request, unsigned& status) const {
  const std::string method = request.method == "HEAD" ? "GET" : request.method;
  status = 404;
  for (const Route& route : routes_) {
    std::vector<std::string> parameters;
    if (!fits(route.path, request.path, parameters)) continue;
    status = 405;
    if (route.method != method) continue;
    request.parameters = std::move(parameters);
    return &route;
  }
  return nullptr;
}

}  // namespace sfumato::server
