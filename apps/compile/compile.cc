#include "apps/compile/compile.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "apps/compile/report.h"
#include "backend/pjrt/ahead_of_time.h"
#include "backend/pjrt/discovery.h"
#include "base/strings.h"
#include "passes/hoist.h"
#include "pipeline/parse.h"

namespace sfumato {
namespace {

constexpr char kDescription[] =
    "Compiles a model's programs ahead of time for an accelerator that need not be there, and reports what they take.";

struct CompileArguments {
  RunOptions run;
  std::string topology;
  std::vector<int> batches = {1};
  std::vector<std::string> others;
  double price = 1.20;
  std::vector<std::string> components = {"text", "unet", "vae-decode"};
  bool json = false;
};

/// Nothing: there is nothing to do (--help).
Result<std::optional<CompileArguments>> parse(const Words& words) {
  Command command("sfumato compile", kDescription);
  CompileArguments arguments;
  std::string model, format = "md";
  command.app.add_option("--topology", arguments.topology, "as the plugin calls it: v5e:2x2")->required();
  command.app.add_option("--batch", arguments.batches, "pictures a chip at once, a list; default 1")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(1, 64));
  command.app
      .add_option("--stablehlo", arguments.others, "files with programs of another's making, for rows beside these")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::ExistingFile);
  command.app.add_option("--price", arguments.price, "of a chip, dollars an hour; default 1.20")
      ->check(CLI::Range(0.001, 1e6));
  command.app.add_option("--component", arguments.components, "text, unet, vae-decode; default: all")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember(arguments.components));
  command.app.add_option("-o,--output", format, "md or json, on standard output")->check(CLI::IsMember({"md", "json"}));
  command.app.add_option("MODEL", model, "folder in diffusers layout; or use -m");
  command.take({"--model", "--synthetic-weights", "--size", "--width", "--height", "--steps", "--cfg-scale",
                "--precision", "--plugin"});
  if (!TRY(command.parse(words))) return std::optional<CompileArguments>();
  arguments.run = command.run;
  if (!model.empty()) arguments.run.pipeline.model = model;
  arguments.json = format == "json";
  return std::optional<CompileArguments>(std::move(arguments));
}

/// A program before compiling; see CompiledProgram.
struct Planned {
  std::string name;
  ir::Graph graph;
  int batch = 0;
  double runs = 1;
};

Result<std::vector<Planned>> plan_programs(const Model& model, const CompileArguments& arguments, const Plan& plan) {
  const auto wants = [&](const char* name) {
    return std::find(arguments.components.begin(), arguments.components.end(), name) != arguments.components.end();
  };
  const int halves = plan.guided ? 2 : 1;
  std::vector<Planned> programs;
  for (size_t i = 0; i < model.text_encoders.size() && wants("text"); ++i) {
    ir::Graph graph = TRY(build_text_encoder(model, static_cast<int>(i), 1));
    programs.push_back({str("text encoder ", i + 1), std::move(graph), 0, static_cast<double>(halves)});
  }
  for (size_t i = 0; i < arguments.batches.size() && wants("unet"); ++i) {
    const int batch = arguments.batches[i];
    auto [once, rest] = passes::hoist(TRY(models::build_unet(model.unet, *model.unet_weights, batch * halves,
                                                             plan.latent.height, plan.latent.width, kPromptTokens)),
                                      models::kUNetSlowInputs);
    programs.push_back({"U-Net, of the prompt", std::move(once), batch});
    programs.push_back({"U-Net, of each step", std::move(rest), batch, static_cast<double>(plan.steps)});
  }
  if (wants("vae-decode"))
    programs.push_back({"VAE decoder", TRY(models::build_vae_decoder(model.vae, *model.vae_weights, 1,
                                                                     plan.latent.height, plan.latent.width))});
  return programs;
}

}  // namespace

Result<void> compile(const Words& words) {
  const std::optional<CompileArguments> arguments = TRY(parse(words));
  if (!arguments) return {};
  const PipelineOptions& options = arguments->run.pipeline;
  const auto compiler =
      TRY(pjrt::AheadOfTime::open(TRY(pjrt::find_plugin(options.accelerator.plugin)), arguments->topology));
  const Model model = TRY(open_model(options));
  Request request = arguments->run.request;
  request.prompts = {""};
  const Plan plan = TRY(make_plan(model, request));

  CompileReport report;
  report.topology = arguments->topology;
  report.device_kind = compiler->device_kind();
  report.devices = compiler->devices();
  report.model = model.info.name;
  report.precision = options.precision == Precision::kAuto ? Precision::kBF16 : options.precision;
  report.size = plan.size;
  report.batches = arguments->batches;
  report.steps = plan.steps;
  report.price = arguments->price;
  for (Planned& planned : TRY(plan_programs(model, *arguments, plan))) {
    std::fprintf(stderr, "compiling %s\n", planned.name.c_str());
    const pjrt::ProgramCost cost =
        TRY(compiler->compile(std::move(planned.graph), report.precision, compiler->devices()));
    report.programs.push_back({planned.name, planned.batch, planned.runs, cost});
  }
  for (const std::string& file : arguments->others) {
    std::fprintf(stderr, "compiling %s\n", file.c_str());
    std::ifstream in(file, std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(in), {});
    const pjrt::ProgramCost cost = TRY(compiler->compile(text, compiler->devices()));
    report.programs.push_back({std::filesystem::path(file).stem().string(), 0, 0, cost});
  }
  std::fputs((arguments->json ? to_json(report) : to_markdown(report)).c_str(), stdout);
  return {};
}

}  // namespace sfumato
