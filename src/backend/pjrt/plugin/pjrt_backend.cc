// Compiles a graph for the devices of a PJRT plugin, keeps its weights on them, and runs it on one or all.
#include <numeric>

#include "backend/backend.h"
#include "backend/hoisted.h"
#include "backend/pjrt/compile_cache.h"
#include "backend/pjrt/discovery.h"
#include "backend/pjrt/plugin/client.h"
#include "backend/pjrt/stablehlo.h"
#include "base/cpu.h"
#include "base/half.h"
#include "base/strings.h"
#include "passes/hoist.h"
#include "passes/passes.h"

namespace sfumato::pjrt {
namespace {

/// `view` in another float type. What the file already holds in that type goes to the device from where it is mapped.
Tensor converted(const TensorView& view, DType dtype) {
  Tensor out(view.shape, dtype);
  constexpr size_t kPart = 1 << 16;
  std::vector<float> part(kPart);
  const auto count = static_cast<size_t>(view.shape.elements());
  for (size_t at = 0; at < count; at += kPart) {
    const size_t n = std::min(kPart, count - at);
    const auto* source = static_cast<const std::byte*>(view.data) + at * dtype_size(view.dtype);
    auto* target = static_cast<std::byte*>(out.data()) + at * dtype_size(dtype);
    if (dtype == DType::kF32) {
      convert_to_f32(source, view.dtype, n, reinterpret_cast<float*>(target));
      continue;
    }
    convert_to_f32(source, view.dtype, n, part.data());
    auto* halves = reinterpret_cast<uint16_t*>(target);
    for (size_t i = 0; i < n; ++i) halves[i] = dtype == DType::kBF16 ? f32_to_bf16(part[i]) : f32_to_f16(part[i]);
  }
  return out;
}

/// Bytes from one element to the next along each axis of `shape`, as the argument's layout wants to walk the stored
/// one.
std::vector<int64_t> strides_of(const Argument& argument) {
  if (argument.layout != WeightLayout::kConvolution) return {};
  const Shape& s = argument.shape;  // kh kw Ci Co, stored Co Ci kh kw
  const auto size = static_cast<int64_t>(dtype_size(argument.dtype));
  return {s[1] * size, size, s[0] * s[1] * size, s[2] * s[0] * s[1] * size};
}

class Program final : public Executable {
 public:
  Program(std::shared_ptr<const Client> client, std::string name, StableHlo hlo, LoadedExecutableHandle executable,
          int devices)
      : client_(std::move(client)),
        name_(std::move(name)),
        hlo_(std::move(hlo)),
        executable_(std::move(executable)),
        weights_(static_cast<size_t>(devices)) {}

  /// One weight after the other, each to every device: on the host there is never more than one converted weight.
  Result<void> upload_weights(const WeightSource& source) {
    for (const Argument& argument : hlo_.arguments) {
      if (argument.input >= 0) continue;
      const std::optional<TensorView> found = source.find(argument.weight);
      if (!found || found->shape.elements() != argument.shape.elements())
        return runtime_error(str("[backend.pjrt] weight ", argument.weight, " is not what the graph was built for"));
      Tensor copy;
      if (found->dtype != argument.dtype) copy = converted(*found, argument.dtype);
      const void* data = copy.empty() ? found->data : copy.data();
      for (size_t d = 0; d < weights_.size(); ++d)
        weights_[d].push_back(
            TRY(client_->upload(data, argument.shape, argument.dtype, strides_of(argument), static_cast<int>(d))));
      source.release(*found);
    }
    return {};
  }

  Result<std::vector<Tensor>> run(std::span<const TensorView> inputs) override {
    const std::vector<TensorView> one(inputs.begin(), inputs.end());
    auto results = TRY(run_each({&one, 1}));
    return std::move(results[0]);
  }

  Result<std::vector<std::vector<Tensor>>> run_each(std::span<const std::vector<TensorView>> inputs) override {
    return download(TRY(execute(inputs, {})));
  }

  using Buffers = std::vector<std::vector<BufferHandle>>;  // by device

  /// `hoisted`: what the graph reads beside its inputs, from the devices.
  Result<Buffers> execute(std::span<const std::vector<TensorView>> inputs, const Buffers& hoisted) {
    CHECK(inputs.size() == weights_.size(), "as many inputs as devices");
    std::vector<BufferHandle> held;
    std::vector<std::vector<PJRT_Buffer*>> arguments(inputs.size());
    for (size_t d = 0; d < inputs.size(); ++d) {
      TRY(check_inputs(inputs[d]));
      size_t next_weight = 0, next_hoisted = 0;
      for (const Argument& argument : hlo_.arguments) {
        if (argument.input < 0) {
          arguments[d].push_back(weights_[d][next_weight++].get());
          continue;
        }
        if (argument.hoisted) {
          arguments[d].push_back(hoisted[d][next_hoisted++].get());
          continue;
        }
        const TensorView& view = inputs[d][static_cast<size_t>(argument.input)];
        held.push_back(TRY(client_->upload(view.data, view.shape, view.dtype, {}, static_cast<int>(d))));
        arguments[d].push_back(held.back().get());
      }
    }
    return client_->execute(executable_.get(), arguments, hlo_.results.size());
  }

  Result<std::vector<std::vector<Tensor>>> download(const Buffers& outputs) const {
    std::vector<std::vector<Tensor>> results(outputs.size());
    for (size_t d = 0; d < outputs.size(); ++d)
      for (size_t i = 0; i < outputs[d].size(); ++i)
        results[d].push_back(TRY(client_->download(outputs[d][i].get(), hlo_.results[i])));
    return results;
  }

  Result<void> check_inputs(const std::vector<TensorView>& inputs) const {
    for (const Argument& argument : hlo_.arguments) {
      if (argument.input < 0 || argument.hoisted) continue;
      const auto i = static_cast<size_t>(argument.input);
      if (i >= inputs.size() || inputs[i].shape != argument.shape || inputs[i].dtype != argument.dtype)
        return runtime_error(str("[backend.pjrt] ", name_, " input ", argument.weight, " expected ",
                                 argument.shape.to_string(), ", got ",
                                 i < inputs.size() ? inputs[i].shape.to_string() : "none"));
    }
    return {};
  }

  Result<void> reserve() override { return {}; }  // the plugin took what the program needs when it loaded it

 private:
  std::shared_ptr<const Client> client_;
  std::string name_;
  StableHlo hlo_;
  LoadedExecutableHandle executable_;
  std::vector<std::vector<BufferHandle>> weights_;  // by device, in the order of the arguments
};

/// Two programs: the first runs only when the inputs that it depends on have changed; what it gives stays on the
/// devices.
class HoistedProgram final : public Executable {
 public:
  /// `slow_inputs`: one a device.
  HoistedProgram(std::unique_ptr<Program> once, std::unique_ptr<Program> rest, std::vector<SlowInputs> slow_inputs)
      : once_(std::move(once)), rest_(std::move(rest)), slow_inputs_(std::move(slow_inputs)) {}

  Result<std::vector<Tensor>> run(std::span<const TensorView> inputs) override {
    const std::vector<TensorView> one(inputs.begin(), inputs.end());
    auto results = TRY(run_each({&one, 1}));
    return std::move(results[0]);
  }

  Result<std::vector<std::vector<Tensor>>> run_each(std::span<const std::vector<TensorView>> inputs) override {
    CHECK(inputs.size() == slow_inputs_.size(), "as many inputs as devices");
    bool equal = true;
    for (size_t d = 0; d < inputs.size(); ++d) {
      TRY(rest_->check_inputs(inputs[d]));
      equal = equal && slow_inputs_[d].equal(inputs[d]);
    }
    if (!equal) {
      for (SlowInputs& slow : slow_inputs_) slow.forget();
      hoisted_ = TRY(once_->execute(inputs, {}));
      for (size_t d = 0; d < inputs.size(); ++d) slow_inputs_[d].remember(inputs[d]);
    }
    return rest_->download(TRY(rest_->execute(inputs, hoisted_)));
  }

  Result<void> reserve() override { return {}; }

 private:
  std::unique_ptr<Program> once_, rest_;
  std::vector<SlowInputs> slow_inputs_;  // by device
  Program::Buffers hoisted_;
};

class PjrtBackend final : public Backend {
 public:
  explicit PjrtBackend(std::shared_ptr<const Client> client)
      : client_(std::move(client)), cache_(CompileCache::default_folder()) {}

  Result<std::unique_ptr<Executable>> compile(ir::Graph graph, std::shared_ptr<const WeightSource> weights,
                                              const CompileOptions& options) override {
    const int devices = options.on_every_device ? client_->devices() : 1;
    std::vector<SlowInputs> slow_inputs;
    for (int d = 0; d < devices; ++d) slow_inputs.emplace_back(graph, options.slow_inputs);
    auto [once, rest] = passes::hoist(std::move(graph), options.slow_inputs);
    auto program = TRY(compile(std::move(rest), *weights, options.precision, devices));
    if (once.nodes.empty()) return std::unique_ptr<Executable>(std::move(program));
    auto first = TRY(compile(std::move(once), *weights, options.precision, devices));
    return std::unique_ptr<Executable>(
        std::make_unique<HoistedProgram>(std::move(first), std::move(program), std::move(slow_inputs)));
  }

  /// 16-bit floats are what accelerators are built for; XLA's CPU code only emulates them.
  Precision resolve(Precision asked) const override {
    if (asked != Precision::kAuto) return asked;
    return client_->is_cpu() ? Precision::kF32 : Precision::kBF16;
  }
  int devices() const override { return client_->devices(); }
  bool fills_batches() const override { return true; }
  int compiled() const override { return compiled_; }
  std::string device_kind() const override { return client_->device_kind(); }
  bool devices_share_cores() const override { return client_->is_cpu(); }
  double seconds_on_devices() const override { return client_->seconds_on_devices(); }

 private:
  Result<std::unique_ptr<Program>> compile(ir::Graph graph, const WeightSource& weights, Precision precision,
                                           int devices) {
    passes::run_all(graph);
    StableHlo hlo = to_stablehlo(graph, compute_type(precision));
    LoadedExecutableHandle executable = TRY(load(hlo.text, compile_options(devices, graph, client_->is_tpu())));
    hlo.text.clear();
    ++compiled_;
    auto program = std::make_unique<Program>(client_, graph.name, std::move(hlo), std::move(executable), devices);
    TRY(program->upload_weights(weights));
    return program;
  }

  /// From the cache on disk, or compiled and put there.
  Result<LoadedExecutableHandle> load(const std::string& text, const std::string& options) const {
    // Machine code for one CPU need not run on another.
    const std::string machine = client_->is_cpu() ? str(cpu_model_name(), " ", isa_name(machine_isa())) : "";
    const std::string key = CompileCache::key(text, options, str(client_->version(), "; ", machine));
    if (const std::optional<std::string> found = cache_.find(key)) {
      if (auto executable = client_->deserialize(*found)) return executable;
      cache_.remove(key);
    }
    LoadedExecutableHandle executable = TRY(client_->compile(text, options));
    if (const auto bytes = client_->serialize(executable.get())) cache_.store(key, *bytes);
    return executable;
  }

  std::shared_ptr<const Client> client_;
  CompileCache cache_;
  int compiled_ = 0;
};

}  // namespace
}  // namespace sfumato::pjrt

namespace sfumato {

Result<std::unique_ptr<Backend>> make_pjrt_backend(const PjrtOptions& options) {
  const auto plugin = TRY(pjrt::Plugin::open(TRY(pjrt::find_plugin(options.plugin))));
  return std::unique_ptr<Backend>(
      std::make_unique<pjrt::PjrtBackend>(TRY(pjrt::Client::create(plugin, options.devices))));
}

}  // namespace sfumato
