#include "pipeline/options.h"

#include <charconv>
#include <cmath>
#include <random>

#include "base/mapped_file.h"
#include "base/strings.h"
#include "image/image_io.h"
#include "pipeline/parse.h"

namespace sfumato {
namespace {

/// A setter for a number within a range.
template <class T, class Assign>
SetOption number(const char* name, T low, T high, Assign assign) {
  return [=](RunOptions& o, const std::string& text) -> Result<void> {
    assign(o, TRY(parse_number<T>(name, text, low, high)));
    return {};
  };
}

template <class Parse, class Assign>
SetOption parsed(Parse parse, Assign assign) {
  return [=](RunOptions& o, const std::string& text) -> Result<void> {
    assign(o, TRY(parse(text)));
    return {};
  };
}

template <class Assign>
SetOption plain(Assign assign) {
  return [=](RunOptions& o, const std::string& text) -> Result<void> {
    assign(o, text);
    return {};
  };
}

SetOption side(const char* name, int Size::*member) {
  return number<int>(name, 1, 1 << 20, [member](RunOptions& o, int v) {
    if (!o.request.size) o.request.size = Size{0, 0};
    (*o.request.size).*member = v;
  });
}

SetOption image(std::shared_ptr<const Image> Request::*member) {
  return [member](RunOptions& o, const std::string& path) -> Result<void> {
    o.request.*member = std::make_shared<const Image>(TRY(read_image(path)));
    return {};
  };
}

Result<void> set_seed(RunOptions& o, const std::string& text) {
  const auto seed = TRY(parse_number<int64_t>("--seed", text, -1, UINT32_MAX));
  o.is_seed_given = seed >= 0;
  if (seed >= 0) o.request.seed = static_cast<uint32_t>(seed);
  return {};
}

/// One prompt a line; empty lines do not count.
Result<void> read_prompts(RunOptions& o, const std::string& path) {
  const auto file = TRY(MappedFile::open(path));
  for (const std::string& line : split(file->text(), '\n'))
    if (const std::string_view prompt = trim(line); !prompt.empty()) o.request.prompts.emplace_back(prompt);
  if (o.request.prompts.empty()) return input_error(str("[options] --prompts-file: no prompt in \"", path, "\""));
  return {};
}

Result<void> set_sampler(RunOptions& o, const std::string& text) {
  const sampling::SamplerChoice choice = TRY(sampling::parse_sampler(text));
  o.request.sampler = choice.sampler;
  if (choice.schedule) o.request.schedule = choice.schedule;
  return {};
}

Result<Precision> parse_precision(const std::string& text) {
  for (const Precision p : {Precision::kAuto, Precision::kF32, Precision::kBF16, Precision::kF16})
    if (precision_name(p) == text) return p;
  return usage_error(str("[options] --precision expected auto, fp32, bf16 or fp16, got \"", text, "\""));
}

Result<void> set_backend(RunOptions& o, const std::string& text) {
  if (text != "cpu" && text != "pjrt")
    return usage_error(str("[options] --backend expected cpu or pjrt, got \"", printable(text), "\""));
  o.pipeline.pjrt = text == "pjrt";
  return {};
}

std::vector<Option> make_options() {
  using G = OptionGroup;
  const auto request = [](auto member) {
    return [member](RunOptions& o, auto value) { o.request.*member = std::move(value); };
  };
  std::vector<Option> list;
  const auto add = [&](G group, std::vector<std::string> names, const char* value, const char* help, SetOption set,
                       bool repeats = false) {
    list.push_back({group, std::move(names), value, help, std::move(set), repeats});
  };

  add(G::kModel, {"--model", "-m"}, "FOLDER", "model in diffusers layout; default: the embedded emoji model",
      plain([](RunOptions& o, const std::string& v) { o.pipeline.model = v; }));

  add(G::kModel, {"--synthetic-weights"}, "NAME", "sd15, sd21 or sdxl with random weights: draws noise, at its speed",
      plain([](RunOptions& o, const std::string& v) { o.pipeline.synthetic = v; }));

  add(G::kPicture, {"--prompt", "-p"}, "TEXT", "what to draw; several make several pictures",
      plain([](RunOptions& o, const std::string& v) { o.request.prompts.push_back(v); }), true);
  add(G::kPicture, {"--prompts-file"}, "FILE", "a prompt a line", read_prompts);
  add(G::kPicture, {"--negative-prompt", "-n", "--negative_prompt", "--neg-prompt"}, "TEXT", "what to keep out",
      plain([](RunOptions& o, const std::string& v) { o.request.negative_prompt = v; }));
  add(G::kPicture, {"--seed", "-s"}, "N", "0 to 4294967295; -1 or absent: random, and printed", set_seed);
  add(G::kPicture, {"--width", "-W"}, "N", "a multiple of 8; default: by model", side("--width", &Size::width));
  add(G::kPicture, {"--height", "-H"}, "N", "a multiple of 8; default: by model", side("--height", &Size::height));
  add(G::kPicture, {"--size"}, "WxH", "width and height at once",
      parsed([](const std::string& v) { return parse_size("--size", v); }, request(&Request::size)));
  add(G::kPicture, {"--batch-count", "-b", "--num-images"}, "N", "pictures of each prompt, with seeds N, N+1, ...",
      number<int>("--batch-count", 1, 1000, request(&Request::images)));
  add(G::kPicture, {"--batch-size"}, "N", "pictures computed at once; never changes them",
      number<int>("--batch-size", 1, 64, request(&Request::batch_size)));

  add(G::kSampling, {"--steps", "--num-inference-steps"}, "N", "default: by model",
      number<int>("--steps", 1, 1000, request(&Request::steps)));
  add(G::kSampling, {"--cfg-scale", "--guidance-scale"}, "X", "guidance; 1 or less: none, and twice as fast",
      number<float>("--cfg-scale", -100, 100, request(&Request::guidance)));
  add(G::kSampling, {"--guidance-rescale"}, "X", "0 to 1, against overexposure",
      number<float>("--guidance-rescale", 0, 1, request(&Request::guidance_rescale)));
  add(G::kSampling, {"--sampler", "--sampling-method"}, "NAME",
      "as A1111, sd.cpp or diffusers call it; default: by model", set_sampler);
  add(G::kSampling, {"--scheduler", "--schedule"}, "NAME", "how the steps are spread: karras, exponential, ...",
      parsed(sampling::parse_schedule, request(&Request::schedule)));
  add(G::kSampling, {"--prediction"}, "TYPE", "epsilon, v or sample; default: by model",
      parsed(sampling::parse_prediction, request(&Request::prediction)));
  add(G::kSampling, {"--clip-skip"}, "N", "1: the text encoder's last layer, 2: the one before",
      number<int>("--clip-skip", 1, 12, request(&Request::clip_skip)));
  add(G::kSampling, {"--rng"}, "KIND", "cpu: PyTorch's numbers; philox: those of CUDA",
      parsed(sampling::parse_rng, request(&Request::rng)));

  add(G::kInit, {"--init-img", "-i"}, "FILE", "start from a picture", image(&Request::init_image));
  add(G::kInit, {"--strength"}, "X", "0 to 1: how far from it to go; default 0.75",
      number<float>("--strength", 0, 1, request(&Request::strength)));
  add(G::kInit, {"--mask"}, "FILE", "repaint only where this is white", image(&Request::mask));

  add(G::kXl, {"--original-size"}, "WxH", "SDXL: the size the picture is said to have had",
      parsed([](const std::string& v) { return parse_size("--original-size", v); }, request(&Request::original_size)));
  add(G::kXl, {"--target-size"}, "WxH", "SDXL: the size it is said to get",
      parsed([](const std::string& v) { return parse_size("--target-size", v); }, request(&Request::target_size)));
  add(G::kXl, {"--crop-top"}, "N", "SDXL: rows it is said to have lost at the top",
      number<int>("--crop-top", 0, 1 << 20, request(&Request::crop_top)));
  add(G::kXl, {"--crop-left"}, "N", "SDXL: columns it is said to have lost at the left",
      number<int>("--crop-left", 0, 1 << 20, request(&Request::crop_left)));

  add(G::kMachine, {"--threads", "-t"}, "N", "default: the physical cores this process may use",
      number<int>("--threads", 1, 1024, [](RunOptions& o, int v) { o.pipeline.threads = v; }));
  add(G::kMachine, {"--precision"}, "NAME", "auto, fp32 or bf16; fp16 too with pjrt",
      parsed(parse_precision, [](RunOptions& o, Precision v) { o.pipeline.precision = v; }));
  add(G::kMachine, {"--backend"}, "NAME", "cpu (default), or pjrt: the devices of a PJRT plugin", set_backend);
  add(G::kMachine, {"--plugin"}, "PATH", "PJRT: the plugin's library; default: see docs/pjrt.md",
      plain([](RunOptions& o, const std::string& v) { o.pipeline.accelerator.plugin = v; }));
  add(G::kMachine, {"--devices"}, "N", "PJRT: how many to use, a picture each; default: all",
      number<int>("--devices", 1, 4096, [](RunOptions& o, int v) { o.pipeline.accelerator.devices = v; }));

  add(G::kOutput, {"--output", "-o"}, "FILE", ".png, .jpg or .webp; %03d stands for the picture's number",
      plain([](RunOptions& o, const std::string& v) { o.output = v; }));
  add(G::kOutput, {"--latents-out"}, "FILE", "also write the final latents, as safetensors",
      plain([](RunOptions& o, const std::string& v) { o.latents_output = v; }));
  add(G::kOutput, {"--quiet"}, "", "no progress", plain([](RunOptions& o, const std::string&) { o.quiet = true; }));
  add(G::kOutput, {"--json"}, "", "one JSON event a line on standard output",
      plain([](RunOptions& o, const std::string&) { o.json = true; }));
  return list;
}

}  // namespace

std::string_view group_name(OptionGroup group) {
  constexpr std::string_view kNames[] = {"Model",   "Picture", "Sampling", "From a picture", "SDXL conditioning",
                                         "Machine", "Output"};
  return kNames[static_cast<int>(group)];
}

const std::vector<Option>& all_options() {
  static const std::vector<Option> options = make_options();
  return options;
}

bool concerns_a_picture(const Option& option) {
  const bool is_of_the_run = option.group == OptionGroup::kModel || option.group == OptionGroup::kMachine ||
                             option.group == OptionGroup::kOutput;
  return !is_of_the_run && option.names[0] != "--prompts-file" && option.names[0] != "--batch-size";
}

uint32_t random_seed() {
  return std::random_device{}() & 0x7fffffff;
}

}  // namespace sfumato
