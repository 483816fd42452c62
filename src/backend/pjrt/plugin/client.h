#pragma once
// The devices of a plugin, and what is done with them: buffers, programs.
#include <atomic>
#include <functional>

#include "backend/pjrt/plugin/plugin.h"
#include "backend/pjrt/stablehlo.h"
#include "tensor/tensor.h"

namespace sfumato::pjrt {

class Client {
 public:
  /// `devices` of them; 0 for all, of a CPU for one. A CPU plugin is asked for as many as wanted.
  static Result<std::shared_ptr<Client>> create(std::shared_ptr<const Plugin> plugin, int devices);

  const Plugin& plugin() const { return *plugin_; }
  int devices() const { return static_cast<int>(devices_.size()); }
  const std::string& device_kind() const { return kind_; }  ///< "TPU v5 lite"
  double seconds_on_devices() const { return seconds_; }    ///< of all execute() so far
  bool is_tpu() const { return platform_ == "tpu"; }
  bool is_cpu() const { return platform_ == "cpu" || platform_ == "host"; }
  const std::string& version() const { return version_; }  ///< of plugin, platform and kind of device

  /// A copy of `data` on a device. `strides` in bytes, one an axis; empty: dense. `data` may go when this returns.
  Result<BufferHandle> upload(const void* data, const Shape& shape, DType dtype, const std::vector<int64_t>& strides,
                              int device) const;
  Result<Tensor> download(PJRT_Buffer* buffer, const Shape& shape) const;

  /// A program from StableHLO text, or from bytes that serialize() gave.
  Result<LoadedExecutableHandle> compile(const std::string& text, const std::string& options) const;
  Result<LoadedExecutableHandle> deserialize(std::string_view bytes) const;
  Result<std::string> serialize(PJRT_LoadedExecutable* program) const;

  /// One run on as many devices as there are lists of arguments. Waits for the end.
  Result<std::vector<std::vector<BufferHandle>>> execute(PJRT_LoadedExecutable* program,
                                                         const std::vector<std::vector<PJRT_Buffer*>>& arguments,
                                                         size_t results) const;

 private:
  Client(std::shared_ptr<const Plugin> plugin, ClientHandle client)
      : plugin_(std::move(plugin)), client_(std::move(client)) {}
  Result<void> find_platform();
  Result<void> find_devices(int wanted);
  Result<void> describe();
  BufferHandle own(PJRT_Buffer* buffer) const { return {buffer, {plugin_}}; }
  EventHandle own(PJRT_Event* event) const { return {event, {plugin_}}; }

  std::shared_ptr<const Plugin> plugin_;
  ClientHandle client_;
  std::vector<PJRT_Device*> devices_;
  std::string platform_, kind_, version_;
  mutable std::atomic<double> seconds_ = 0;
};

}  // namespace sfumato::pjrt
