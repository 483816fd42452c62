#include "apps/serve/serve.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "apps/serve/haproxy.h"
#include "base/cpu.h"
#include "base/numa.h"
#include "base/strings.h"
#include "pipeline/options_json.h"
#include "server/server.h"
#include "server/worker.h"

namespace sfumato {
namespace {

constexpr int kWorkerFd = 3;  // as server/workers.cc gives it
constexpr const char* kDescription =
    "An HTTP server: a page at /, OpenAI's images API, A1111's, jobs with live previews.\n"
    "  sfumato serve                       the embedded model, http://127.0.0.1:7860\n"
    "  sfumato serve -m xl=/models/sdxl    one model, called xl; -m again adds more";

/// "NAME=PATH", or a path whose folder's name it goes by.
std::pair<std::string, std::string> name_and_path(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals != std::string::npos && text.find('/') > equals) return {text.substr(0, equals), text.substr(equals + 1)};
  std::filesystem::path path(text);
  if (!path.has_filename()) path = path.parent_path();
  return {path.filename().string(), text};
}

Result<std::vector<server::ServedModel>> open_models(const std::vector<std::string>& given) {
  std::vector<server::ServedModel> models;
  const auto add = [&](const std::string& name, const std::string& path) -> Result<void> {
    Model model = TRY(Model::open(path));
    models.push_back({name, path, std::move(model)});
    return {};
  };
  if (given.empty()) TRY(add("emoji", ""));
  for (const std::string& text : given) {
    const auto [name, path] = name_and_path(text);
    for (const server::ServedModel& other : models)
      if (other.name == name) return usage_error(str("[serve] two models are called \"", name, "\"; use -m NAME=PATH"));
    TRY(add(name, path));
  }
  return models;
}

/// One worker a NUMA node, unless told otherwise.
void place_workers(int count, server::WorkerOptions& workers) {
  const std::vector<std::vector<int>> nodes = numa_nodes();
  workers.count = count > 0 ? count : static_cast<int>(nodes.size());
  if (workers.count > 1 && nodes.size() > 1) workers.cpus = nodes;
}

/// Folders by the model's name. "NAME=PATH" is that model's, a path every model's that none is named for. Opened once
/// to find faults.
Result<nlohmann::json> open_taesds(const std::vector<std::string>& given,
                                   const std::vector<server::ServedModel>& models) {
  nlohmann::json taesds = nlohmann::json::object();
  for (const std::string& text : given) {
    const bool is_named = text.find('=') < text.find('/');
    const auto [name, path] = name_and_path(text);
    bool is_used = false;
    for (const server::ServedModel& model : models) {
      if (is_named ? model.name != name : taesds.contains(model.name)) continue;
      PipelineOptions options;
      options.model = model.path;
      options.taesd = path;
      TRY(open_model(options));
      taesds[model.name] = path;
      is_used = true;
    }
    if (!is_used) return usage_error(str("[serve] --taesd \"", printable(text), "\": no model for it"));
  }
  return taesds;
}

nlohmann::json worker_setup(const RunOptions& run, const std::vector<server::ServedModel>& models,
                            nlohmann::json taesds) {
  nlohmann::json paths;
  for (const server::ServedModel& model : models) paths[model.name] = model.path;
  return {{"type", "setup"},
          {"models", paths},
          {"taesds", std::move(taesds)},
          {"preload", models.front().name},
          {"threads", run.pipeline.threads},
          {"precision", precision_name(run.pipeline.precision)}};
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host.starts_with("127.") || host == "::1";
}

std::string is_prefix(std::string& text) {
  constexpr size_t kMost = 32;
  const bool good = text.size() <= kMost && std::all_of(text.begin(), text.end(), [](char c) {
                      return std::isalnum(static_cast<unsigned char>(c)) || c == '-';
                    });
  return good ? "" : "expected letters, digits and -";
}

struct ServeWords {
  std::vector<std::string> models, taesds, hosts;
  std::string key_file;
  int workers = 0, farm = 0;
  std::optional<int> drain_delay;
  std::string balance = "leastconn";
  bool quiet = false;
};

void add_options(CLI::App& app, server::ServerOptions& options, ServeWords& given) {
  app.add_option("-m,--model", given.models, "[NAME=]FOLDER, again for more; default: the embedded emoji model");
  app.add_option("--taesd", given.taesds,
                 "[NAME=]FOLDER, a tiny autoencoder for sharp previews; again for more models");
  app.add_option("--host", options.host, "address to listen on; default 127.0.0.1, 0.0.0.0 for all");
  app.add_option("--port", options.port, "default 7860; 0: any that is free")->check(CLI::Range(0, 65535));
  app.add_option("--agent-port", options.agent_port, "answers HAProxy's agent check there; default: none")
      ->check(CLI::Range(0, 65535));
  app.add_option("--drain-delay", given.drain_delay,
                 "seconds from SIGTERM on in which new work is still taken, until a balancer knows; default 0, with "
                 "--agent-port 3")
      ->check(CLI::Range(0, 3600));
  app.add_option("--api-key-file", given.key_file, "a key a line; requests then need one");
  app.add_option("--allow-host", given.hosts,
                 "a name this server goes by, besides its own on loopback; again for more");
  app.add_option("--workers", given.workers, "processes that draw; default: one a NUMA node")->check(CLI::Range(1, 64));
  app.add_option("--queue", options.queue.queued, "jobs that may wait; default 64")->check(CLI::Range(1, 100000));
  app.add_option("--max-pixels", options.requests.pixels, "of a picture; default 4194304")
      ->check(CLI::Range(64, 1 << 24));
  app.add_option("--max-steps", options.requests.steps, "default 150")->check(CLI::Range(1, 1000));
  app.add_option("--max-images", options.requests.pictures, "of a request; default 10")->check(CLI::Range(1, 1000));
  app.add_option("--max-body", options.http.body_bytes, "bytes of a request; default 67108864")
      ->check(CLI::Range(size_t{1} << 10, size_t{1} << 30));
  app.add_option("--id-prefix", options.queue.id_prefix, "what job ids begin with, for a balancer; letters, digits, -")
      ->check(CLI::Validator(is_prefix, "PREFIX"));
  app.add_option("--print-haproxy", given.farm, "prints HAProxy's configuration for N servers, and ends")
      ->check(CLI::Range(1, 99));
  app.add_option("--balance", given.balance, "with --print-haproxy: leastconn or random")
      ->check(CLI::IsMember({"leastconn", "random"}));
  app.add_flag("--quiet", given.quiet, "no log");
}

}  // namespace

Result<void> serve(const Words& words) {
  Command command("sfumato serve", kDescription);
  server::ServerOptions options;
  ServeWords given;
  add_options(command.app, options, given);
  command.take({"--threads", "--precision"});
  if (!TRY(command.parse(words))) return {};
  if (given.farm > 0) {
    std::fputs(haproxy_config({given.farm, options.host, options.port, given.balance}).c_str(), stdout);
    return {};
  }
  options.models = TRY(open_models(given.models));
  if (!given.key_file.empty()) options.gate.keys = TRY(server::read_keys(given.key_file));
  if (is_loopback(options.host)) options.gate.hosts = {"localhost", "127.0.0.1", "[::1]", options.host};
  for (const std::string& host : given.hosts) options.gate.hosts.push_back(lowercase_ascii(host));
  options.drain_delay = std::chrono::seconds(given.drain_delay.value_or(options.agent_port > 0 ? 3 : 0));
  place_workers(given.workers, options.workers);
  options.workers.command = {"/proc/self/exe", std::string(kWorkerWord)};
  options.workers.setup = worker_setup(command.run, options.models, TRY(open_taesds(given.taesds, options.models)));
  if (!given.quiet) options.log = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
  std::fprintf(stderr, "Sfumato: http://%s:%d/\n", options.host.c_str(), options.port);
  return server::run_server(std::move(options));
}

Result<void> worker() {
  const int code = server::run_worker(kWorkerFd);
  if (code == 0) return {};
  return Error{static_cast<ErrorKind>(code), "[serve] a worker could not begin"};
}

}  // namespace sfumato
