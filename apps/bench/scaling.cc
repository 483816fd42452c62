#include "apps/bench/scaling.h"

#include <chrono>
#include <nlohmann/json.hpp>

#include "apps/bench/table.h"
#include "base/strings.h"
#include "commit.h"
#include "pipeline/pipeline.h"

namespace sfumato {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

constexpr char kDescription[] =
    "Pictures a minute of N devices of a PJRT plugin (without --plugin: of a CPU), a batch a device, whole pictures.\n"
    "  sfumato bench scaling --devices 1,2,4,8 --steps 20 --price 1.20 --price-date 2026-12-01";

struct ScalingOptions {
  RunOptions run;
  std::vector<int> devices = {1, 2, 4, 8};
  int warm_up = 1, repeats = 3;
  std::optional<double> price;  // dollars a device-hour
  std::string price_date;
  TableFormat format = TableFormat::kMarkdown;
};

/// Nothing: there is nothing to do (--help).
Result<std::optional<ScalingOptions>> parse(const Words& words) {
  Command command("sfumato bench scaling", kDescription);
  ScalingOptions options;
  command.app.add_option("--devices", options.devices, "a list; default 1,2,4,8")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(1, 4096));
  command.app.add_option("-r,--repeats", options.repeats, "timed runs; default 3")->check(CLI::Range(1, 1000));
  command.app.add_option("--warm-up", options.warm_up, "runs before those, of which the first compiles; default 1")
      ->check(CLI::Range(1, 100));
  command.app.add_option("--price", options.price, "of a device, dollars an hour, for Perf/$")
      ->check(CLI::Range(0.001, 1e6));
  command.app.add_option("--price-date", options.price_date, "when that was the price");
  add_format_option(command.app, options.format);
  command.take({"--model", "--synthetic-weights", "--size", "--width", "--height", "--steps", "--cfg-scale",
                "--sampler", "--scheduler", "--precision", "--plugin", "--batch-size"});
  if (!TRY(command.parse(words))) return std::optional<ScalingOptions>();
  options.run = command.run;
  return std::optional<ScalingOptions>(std::move(options));
}

struct Scaling {
  std::string model, hardware;
  Size size;
  Precision precision = Precision::kF32;
  int devices = 1, images = 0;
  bool share_cores = false;
  double first_seconds = 0;          ///< of the run that compiles
  double host_fraction = 0;          ///< of the timed runs: no program ran on a device
  std::vector<double> seconds = {};  ///< of all images, each repeat

  double images_per_minute() const { return 60 * images / median(seconds); }
};

Result<Scaling> measure_devices(const ScalingOptions& options, int devices) {
  PipelineOptions load = options.run.pipeline;
  load.pjrt = true;
  load.accelerator.devices = devices;
  const std::unique_ptr<Pipeline> pipeline = TRY(Pipeline::load(load));
  Request request = options.run.request;
  request.prompts = {"a red apple"};
  request.images = devices * std::max(request.batch_size, 1);
  Scaling result{pipeline->info().name,
                 pipeline->backend().device_kind(),
                 TRY(make_plan(pipeline->model(), request)).size,
                 pipeline->precision(),
                 devices,
                 request.images,
                 pipeline->backend().devices_share_cores()};
  double on_devices = 0, total = 0;
  for (int i = 0; i < options.warm_up + options.repeats; ++i) {
    const double before = pipeline->backend().seconds_on_devices();
    const Clock::time_point begin = Clock::now();
    TRY(pipeline->generate(request));
    const double seconds = seconds_since(begin);
    if (i == 0) result.first_seconds = seconds;
    if (i < options.warm_up) continue;
    result.seconds.push_back(seconds);
    total += seconds;
    on_devices += pipeline->backend().seconds_on_devices() - before;
  }
  result.host_fraction = 1 - on_devices / total;
  return result;
}

void add_row(Table& table, const ScalingOptions& options, const Scaling& r, const Scaling& first) {
  const double speedup = r.images_per_minute() / first.images_per_minute(),
               more = static_cast<double>(r.devices) / first.devices;
  const double efficiency = r.share_cores ? speedup : speedup / more;
  const auto [least, most] = std::minmax_element(r.seconds.begin(), r.seconds.end());
  Json per_dollar;  // a host's devices have one price together when they share its cores
  if (options.price) per_dollar = r.images_per_minute() / (r.share_cores ? 1 : r.devices) / *options.price;
  const Json f = {{"hardware", r.hardware},
                  {"model", r.model},
                  {"size", str(r.size.width, "x", r.size.height)},
                  {"precision", precision_name(r.precision)},
                  {"devices", r.devices},
                  {"images", r.images},
                  {"seconds_min", *least},
                  {"seconds_median", median(r.seconds)},
                  {"seconds_max", *most},
                  {"first_seconds", r.first_seconds},
                  {"images_per_minute", r.images_per_minute()},
                  {"efficiency", efficiency},
                  {"host_fraction", r.host_fraction},
                  {"price_per_device_hour", options.price ? Json(*options.price) : Json()},
                  {"price_date", options.price_date},
                  {"images_per_minute_per_dollar_hour", per_dollar},
                  {"commit", SFUMATO_COMMIT}};
  table.add(f, {r.hardware, std::to_string(r.devices), std::to_string(r.images),
                str(fixed(f["seconds_median"], 2), " (", fixed(*least, 2), ", ", fixed(*most, 2), ")"),
                fixed(r.images_per_minute(), 2), fixed(efficiency, 2), fixed(100 * r.host_fraction, 2),
                fixed(r.first_seconds, 1), per_dollar.is_null() ? "" : fixed(per_dollar, 2)});
}

}  // namespace

Result<void> bench_scaling(const Words& words) {
  const std::optional<ScalingOptions> options = TRY(parse(words));
  if (!options) return {};
  std::optional<Scaling> first;
  std::optional<Table> table;
  for (const int devices : options->devices) {
    const Scaling result = TRY(measure_devices(*options, devices));
    if (!first) {
      first = result;
      const std::string price = options->price ? str(", ", fixed(*options->price, 2), " $ an hour",
                                                     options->price_date.empty() ? "" : " on ", options->price_date)
                                               : "";
      table.emplace(options->format,
                    str(result.model, ", ", result.size.width, "x", result.size.height, ", ",
                        precision_name(result.precision), price, ", sfumato ", SFUMATO_COMMIT),
                    std::vector<std::string>{"hardware", "devices", "images", "seconds (min, max)", "images a minute",
                                             "efficiency", "host %", "first run s", "Perf/$"});
    }
    add_row(*table, *options, result, *first);
  }
  table->end();
  return {};
}

}  // namespace sfumato
