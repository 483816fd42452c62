#pragma once
// Which handler a request goes to.
#include <string>
#include <vector>

#include "server/http.h"

namespace sfumato::server {

struct Route {
  std::string method;
  std::string path;  ///< a segment {} is any: it becomes one of HttpRequest::parameters
  Handler handler;
  bool is_open = false;      ///< without an API key: health and the page
  std::string summary = {};  ///< for the OpenAPI document
};

class Router {
 public:
  void add(Route route) { routes_.push_back(std::move(route)); }
  /// Null: `status` is 404, or 405 where the path is known by another method. HEAD goes where GET goes.
  const Route* find(HttpRequest& request, unsigned& status) const;
  const std::vector<Route>& routes() const { return routes_; }

 private:
  std::vector<Route> routes_;
};

class Service;
// Each family adds its routes.
void add_job_routes(Router& router, Service& service);
void add_openai_routes(Router& router, Service& service);
void add_a1111_routes(Router& router, Service& service);
void add_about_routes(Router& router, Service& service);  ///< health, metrics, models, options, OpenAPI, PNG text
void add_page_routes(Router& router);

}  // namespace sfumato::server
