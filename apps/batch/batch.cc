#include "apps/batch/batch.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <map>
#include <optional>

#include "apps/batch/manifest.h"
#include "apps/batch/report.h"
#include "apps/batch/shard.h"
#include "apps/batch/store.h"
#include "base/strings.h"

namespace sfumato {
namespace {

constexpr const char* kDescription =
    "Draws the pictures of a manifest, one JSON object a line:\n"
    "  {\"prompt\": \"a red apple\", \"seed\": 7, \"steps\": 20, \"size\": \"512x512\"}\n"
    "What a line leaves out is as the options say. Without a seed, picture k of the manifest has --seed (default 0)\n"
    "+ k. Stops at any time and goes on where it was; several processes share the work (docs/batch.md).";

volatile std::sig_atomic_t draining = 0;  // SIGTERM: finish the picture at hand
volatile std::sig_atomic_t stopping = 0;  // SIGINT, or a second SIGTERM: stop within a step

void stop_on_signals() {
  std::signal(SIGTERM, [](int) {
    if (draining) stopping = 1;
    draining = 1;
  });
  std::signal(SIGINT, [](int) {
    if (stopping) std::_Exit(static_cast<int>(ErrorKind::kCancelled));
    stopping = 1;
    draining = 1;
  });
}

struct BatchOptions {
  RunOptions run;
  std::filesystem::path manifest;
  StoreOptions store;
  Shard shard;
};

/// Nothing: there is nothing to do (--help).
Result<std::optional<BatchOptions>> parse(const Words& words) {
  Command command("sfumato batch", kDescription);
  BatchOptions options;
  std::optional<size_t> index, count;
  command.app.add_option("manifest", options.manifest, "a file of JSON lines")->required();
  command.app.add_option("-o,--output", options.store.folder, "the folder for the pictures; made if need be")
      ->required();
  const std::map<std::string, StoreFormat> formats = {{"files", StoreFormat::kFiles},
                                                      {"webdataset", StoreFormat::kWebdataset}};
  command.app.add_option("--format", options.store.format, "files or webdataset (tars)")
      ->transform(CLI::CheckedTransformer(formats));
  command.app.add_option("--suffix", options.store.suffix, "of the pictures: .png, .jpg or .webp")
      ->check(CLI::IsMember({".png", ".jpg", ".webp"}));
  command.app.add_option("--tar-size", options.store.tar_pictures, "pictures in a tar; default 1000")
      ->check(CLI::Range(1, 1'000'000));
  command.app.add_option("--shard-index", index, "which part of the work, from 0; default: as the launcher says");
  command.app.add_option("--shard-count", count, "of how many");
  command.take_all_but({"--prompt", "--prompts-file", "--batch-count", "--batch-size", "--init-img", "--mask",
                        "--output", "--latents-out"});
  if (!TRY(command.parse(words))) return std::optional<BatchOptions>();
  options.shard = TRY(find_shard(index, count));
  options.run = std::move(command.run);
  return std::optional<BatchOptions>(std::move(options));
}

nlohmann::ordered_json record_of(const Manifest& manifest, const Store& store, size_t index) {
  nlohmann::ordered_json record = {{"index", index}, {"file", store.name_of(index).string()}};
  record.update(manifest.record(index));
  return record;
}

Result<void> draw(Pipeline& pipeline, const Manifest& manifest, const Store& store, size_t index) {
  Request request = TRY(manifest.request(index));
  request.on_progress = [](const Progress&) { return stopping == 0; };
  const Result<std::vector<Picture>> drawn = pipeline.generate(request);
  if (!drawn && drawn.error().kind != ErrorKind::kCancelled)
    return Error{drawn.error().kind,
                 str("[batch.draw] line ", manifest.line_number(index), ": ", drawn.error().message)};
  if (!drawn) return drawn.error();
  const Picture& picture = drawn->front();
  return store.write(index, picture.image, picture.parameters, record_of(manifest, store, index));
}

/// One JSON line for each picture of ours that is there, as the manifest has them.
Result<void> write_records(const Manifest& manifest, const Store& store, const Shard& shard,
                           const std::vector<size_t>& ours) {
  std::string lines;
  for (const size_t k : ours)
    if (store.has(k)) lines += record_of(manifest, store, k).dump() + "\n";
  return store.write_records(lines, shard);
}

/// Does it end the whole batch? A broken init image does not; a full disk does, for no picture after it would do
/// better.
bool is_fatal(const Error& error) {
  return error.kind != ErrorKind::kBadInput && error.kind != ErrorKind::kUsage;
}

Result<void> run(const BatchOptions& options, Pipeline& pipeline, const Manifest& manifest, const Store& store) {
  std::vector<size_t> ours;
  for (size_t k = 0; k < manifest.pictures(); ++k)
    if (store.is_ours(k)) ours.push_back(k);
  const auto missing =
      static_cast<size_t>(std::count_if(ours.begin(), ours.end(), [&](size_t k) { return !store.has(k); }));
  BatchReport report(options.run, options.shard, {manifest.pictures(), ours.size(), missing});
  for (const size_t k : ours) {
    if (draining) break;
    if (!store.has(k)) {
      const Result<void> drawn = draw(pipeline, manifest, store, k);
      if (!drawn && drawn.error().kind == ErrorKind::kCancelled) break;
      if (!drawn && is_fatal(drawn.error())) return report.end(), drawn.error();
      drawn ? report.drawn(k, store.name_of(k)) : report.failed(k, drawn.error());
    }
    TRY(store.pack(k, manifest.pictures()));
  }
  if (options.store.format == StoreFormat::kFiles)  // a tar has them inside
    TRY(write_records(manifest, store, options.shard, ours));
  report.end();
  if (draining) return Error{ErrorKind::kCancelled, "[batch] interrupted; the same command goes on from here"};
  if (report.first_failure()) return *report.first_failure();
  return {};
}

}  // namespace

Result<void> batch(const Words& words) {
  const std::optional<BatchOptions> options = TRY(parse(words));
  if (!options) return {};
  stop_on_signals();
  const std::unique_ptr<Pipeline> pipeline = TRY(Pipeline::load(options->run.pipeline));
  const Manifest manifest = TRY(Manifest::open(options->manifest, options->run,
                                               [&](const Request& request) { return pipeline->check(request); }));
  const Store store = TRY(Store::open(options->store, options->shard));
  return run(*options, *pipeline, manifest, store);
}

}  // namespace sfumato
