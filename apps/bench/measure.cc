#include "apps/bench/measure.h"

#include <chrono>
#include <fstream>
#include <random>

#include "base/cpu.h"
#include "base/strings.h"
#include "ir/cost.h"
#include "kernels/peak/peak.h"

namespace sfumato {
namespace {

using Clock = std::chrono::steady_clock;

/// From here on the kernel's high-water mark starts anew.
void reset_peak_memory() {
  std::ofstream("/proc/self/clear_refs") << "5";
}

int64_t peak_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6)) << 10;
  return 0;
}

/// A network with the weights it is compiled with.
struct Network {
  ir::Graph graph;
  std::shared_ptr<const WeightSource> weights;
};

/// The networks that `component` stands for: two for SDXL's text encoders.
Result<std::vector<Network>> networks_of(const Model& model, Component component, Size size, int batch) {
  const int height = size.height / model.vae_factor(), width = size.width / model.vae_factor();
  std::vector<Network> networks;
  switch (component) {
    case Component::kText:
      for (size_t i = 0; i < model.text_encoders.size(); ++i)
        networks.push_back(
            {TRY(build_text_encoder(model, static_cast<int>(i), batch)), model.text_encoders[i].weights});
      break;
    case Component::kUnet:
      networks.push_back({TRY(models::build_unet(model.unet, *model.unet_weights, batch, height, width, kPromptTokens)),
                          model.unet_weights});
      break;
    case Component::kVaeDecode:
      networks.push_back(
          {TRY(models::build_vae_decoder(model.vae, *model.vae_weights, batch, height, width)), model.vae_weights});
      break;
    case Component::kVaeEncode:
      networks.push_back({TRY(models::build_vae_encoder(model.vae, *model.vae_weights, batch, size.height, size.width)),
                          model.vae_weights});
      break;
    case Component::kPipeline:
      CHECK(false);
  }
  return networks;
}

double flops_of(const std::vector<Network>& networks) {
  double total = 0;
  for (const Network& network : networks) total += 2 * static_cast<double>(ir::multiply_adds(network.graph));
  return total;
}

/// Normal numbers where the input is float; else the last token of a prompt, which every index may be.
std::vector<Tensor> inputs_of(const ir::Graph& graph) {
  std::mt19937 generator(42);
  std::normal_distribution<float> normal;
  std::vector<Tensor> inputs;
  for (const ir::Value value : graph.inputs()) {
    Tensor& tensor = inputs.emplace_back(graph[value].shape, graph[value].dtype);
    if (tensor.dtype() == DType::kF32)
      for (float& x : tensor.f32()) x = normal(generator);
    else
      std::fill_n(static_cast<int32_t*>(tensor.data()), tensor.shape().elements(), kPromptTokens - 1);
  }
  return inputs;
}

std::vector<TensorView> views_of(const std::vector<Tensor>& tensors) {
  std::vector<TensorView> views;
  for (const Tensor& tensor : tensors) views.push_back(tensor.view());
  return views;
}

template <class Run>
Result<std::vector<double>> time_runs(int warm_up, int repeats, Run run) {
  std::vector<double> seconds;
  for (int i = 0; i < warm_up + repeats; ++i) {
    const Clock::time_point begin = Clock::now();
    TRY(run());
    if (i >= warm_up) seconds.push_back(seconds_since(begin));
  }
  return seconds;
}

Result<void> measure_networks(const BenchCase& bench_case, const Request& request, int warm_up, int repeats,
                              BenchResult& result) {
  const Model model = TRY(open_model(bench_case.run.pipeline));
  result.model = model.info.name;
  result.size = TRY(make_plan(model, request)).size;
  std::vector<Network> networks = TRY(networks_of(model, bench_case.component, result.size, bench_case.batch));
  result.flops = flops_of(networks);
  const std::unique_ptr<Backend> backend = make_cpu_backend(result.threads);
  std::vector<std::vector<Tensor>> inputs;
  std::vector<std::unique_ptr<Executable>> programs;
  const Clock::time_point begin = Clock::now();
  for (Network& network : networks) {
    inputs.push_back(inputs_of(network.graph));
    programs.push_back(TRY(backend->compile(std::move(network.graph), network.weights, {result.precision})));
  }
  result.compile_seconds = seconds_since(begin);
  result.seconds = TRY(time_runs(warm_up, repeats, [&]() -> Result<void> {
    for (size_t i = 0; i < programs.size(); ++i) TRY(programs[i]->run(views_of(inputs[i])));
    return {};
  }));
  return {};
}

/// What a request's networks do: both prompts, each step for both halves of guidance, the decoder.
Result<double> pipeline_flops(const Model& model, const Plan& plan) {
  const int halves = plan.guided ? 2 : 1, pictures = static_cast<int>(plan.prompts.size());
  const double text = flops_of(TRY(networks_of(model, Component::kText, plan.size, 1))) * halves;
  const double step = flops_of(TRY(networks_of(model, Component::kUnet, plan.size, pictures * halves)));
  const double decode = flops_of(TRY(networks_of(model, Component::kVaeDecode, plan.size, 1))) * pictures;
  return text + step * plan.steps + decode;
}

Result<void> measure_pipeline(const BenchCase& bench_case, const Request& request, int warm_up, int repeats,
                              BenchResult& result) {
  const std::unique_ptr<Pipeline> pipeline = TRY(Pipeline::load(bench_case.run.pipeline));
  result.model = pipeline->info().name;
  const Plan plan = TRY(make_plan(pipeline->model(), request));
  result.size = plan.size;
  result.flops = TRY(pipeline_flops(pipeline->model(), plan));
  const auto draw = [&]() -> Result<void> {
    TRY(pipeline->generate(request));
    return {};
  };
  const Clock::time_point begin = Clock::now();
  TRY(draw());  // the one that compiles is a warm-up too
  result.compile_seconds = seconds_since(begin);
  result.seconds = TRY(time_runs(std::max(0, warm_up - 1), repeats, draw));
  return {};
}

}  // namespace

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

std::string_view component_name(Component component) {
  constexpr std::string_view kNames[] = {"text", "unet", "vae-decode", "vae-encode", "pipeline"};
  return kNames[static_cast<int>(component)];
}

Result<BenchResult> measure(const BenchCase& bench_case, int warm_up, int repeats) {
  const PipelineOptions& options = bench_case.run.pipeline;
  BenchResult result;
  result.threads = options.threads > 0 ? options.threads : default_threads();
  result.precision = resolve_precision(options.precision);
  result.peak_flops = kernels::fma_peak(result.threads);
  Request request = bench_case.run.request;
  request.prompts = {"a red apple"};
  request.images = request.batch_size = bench_case.batch;
  const bool is_whole = bench_case.component == Component::kPipeline;
  reset_peak_memory();
  TRY((is_whole ? measure_pipeline : measure_networks)(bench_case, request, warm_up, repeats, result));
  result.rss_peak_bytes = peak_memory();
  return result;
}

}  // namespace sfumato
