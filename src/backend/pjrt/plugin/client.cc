#include "backend/pjrt/plugin/client.h"

#include <chrono>

#include "base/strings.h"

namespace sfumato::pjrt {
namespace {

PJRT_Buffer_Type buffer_type(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return PJRT_Buffer_Type_F32;
    case DType::kF16:
      return PJRT_Buffer_Type_F16;
    case DType::kBF16:
      return PJRT_Buffer_Type_BF16;
    case DType::kI32:
      return PJRT_Buffer_Type_S32;
    default:
      CHECK(false, "a type that programs do not take");
  }
}

/// XLA's CPU client has as many threads as cores or devices, whichever is more, and how a product's sums are cut, so
/// their bits, follows the number of threads. A CPU is therefore always told to be this many devices, used or not:
/// what few of them draw equals what one draws.
constexpr int kLeastCpuDevices = 8;

/// A client, told how many devices a CPU is to be; plugins that refuse an option they do not know are asked again.
Result<ClientHandle> create_client(const std::shared_ptr<const Plugin>& plugin, int devices) {
  constexpr std::string_view kCount = "cpu_device_count";
  PJRT_NamedValue count{};
  count.struct_size = PJRT_NamedValue_STRUCT_SIZE;
  count.name = kCount.data();
  count.name_size = kCount.size();
  count.type = PJRT_NamedValue_kInt64;
  count.int64_value = std::max(devices, kLeastCpuDevices);
  count.value_size = 1;
  auto args = PJRT_ARGS(Client_Create);
  args.create_options = &count;
  args.num_options = 1;
  if (!PJRT_CALL(*plugin, Client_Create, args)) {
    args = PJRT_ARGS(Client_Create);
    TRY(PJRT_CALL(*plugin, Client_Create, args));
  }
  return ClientHandle(args.client, {plugin});
}

}  // namespace

Result<std::shared_ptr<Client>> Client::create(std::shared_ptr<const Plugin> plugin, int devices) {
  ClientHandle handle = TRY(create_client(plugin, devices));
  std::shared_ptr<Client> client(new Client(std::move(plugin), std::move(handle)));
  TRY(client->find_platform());
  TRY(client->find_devices(devices == 0 && client->is_cpu() ? 1 : devices));
  TRY(client->describe());
  return client;
}

Result<void> Client::find_devices(int wanted) {
  auto args = PJRT_ARGS(Client_AddressableDevices);
  args.client = client_.get();
  TRY(PJRT_CALL(*plugin_, Client_AddressableDevices, args));
  const auto found = static_cast<int>(args.num_addressable_devices);
  if (found == 0 || wanted > found)
    return usage_error(str("[backend.pjrt] expected ", std::max(wanted, 1), " devices, \"", plugin_->path(), "\" has ",
                           found, "; ask for fewer with --devices"));
  devices_.assign(args.addressable_devices, args.addressable_devices + (wanted > 0 ? wanted : found));
  return {};
}

Result<void> Client::find_platform() {
  auto name = PJRT_ARGS(Client_PlatformName);
  name.client = client_.get();
  TRY(PJRT_CALL(*plugin_, Client_PlatformName, name));
  platform_ = lowercase_ascii({name.platform_name, name.platform_name_size});
  return {};
}

Result<void> Client::describe() {
  auto version = PJRT_ARGS(Client_PlatformVersion);
  version.client = client_.get();
  TRY(PJRT_CALL(*plugin_, Client_PlatformVersion, version));
  auto description = PJRT_ARGS(Device_GetDescription);
  description.device = devices_[0];
  TRY(PJRT_CALL(*plugin_, Device_GetDescription, description));
  auto kind = PJRT_ARGS(DeviceDescription_Kind);
  kind.device_description = description.device_description;
  TRY(PJRT_CALL(*plugin_, DeviceDescription_Kind, kind));
  kind_.assign(kind.device_kind, kind.device_kind_size);
  version_ = str(plugin_->version(), "; ", platform_, " ",
                 std::string_view(version.platform_version, version.platform_version_size), "; ", kind_);
  return {};
}

Result<BufferHandle> Client::upload(const void* data, const Shape& shape, DType dtype,
                                    const std::vector<int64_t>& strides, int device) const {
  auto args = PJRT_ARGS(Client_BufferFromHostBuffer);
  args.client = client_.get();
  args.data = data;
  args.type = buffer_type(dtype);
  args.dims = shape.dims().data();
  args.num_dims = shape.dims().size();
  args.byte_strides = strides.empty() ? nullptr : strides.data();
  args.num_byte_strides = strides.size();
  args.host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableOnlyDuringCall;
  args.device = devices_.at(static_cast<size_t>(device));
  TRY(PJRT_CALL(*plugin_, Client_BufferFromHostBuffer, args));
  BufferHandle buffer = own(args.buffer);
  TRY(await(*plugin_, own(args.done_with_host_buffer)));
  return buffer;
}

Result<Tensor> Client::download(PJRT_Buffer* buffer, const Shape& shape) const {
  Tensor out(shape);
  std::vector<int64_t> minor_to_major;  // rows last on the host, whatever the device does
  for (int i = shape.rank() - 1; i >= 0; --i) minor_to_major.push_back(i);
  PJRT_Buffer_MemoryLayout layout{};
  layout.struct_size = PJRT_Buffer_MemoryLayout_STRUCT_SIZE;
  layout.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
  layout.tiled.struct_size = PJRT_Buffer_MemoryLayout_Tiled_STRUCT_SIZE;
  layout.tiled.minor_to_major = minor_to_major.data();
  layout.tiled.minor_to_major_size = minor_to_major.size();
  auto args = PJRT_ARGS(Buffer_ToHostBuffer);
  args.src = buffer;
  args.host_layout = &layout;
  args.dst = out.data();
  args.dst_size = out.bytes();
  TRY(PJRT_CALL(*plugin_, Buffer_ToHostBuffer, args));
  TRY(await(*plugin_, own(args.event)));
  return out;
}

Result<LoadedExecutableHandle> Client::compile(const std::string& text, const std::string& options) const {
  const PJRT_Program program = program_of(text);
  auto args = PJRT_ARGS(Client_Compile);
  args.client = client_.get();
  args.program = &program;
  args.compile_options = options.data();
  args.compile_options_size = options.size();
  TRY(PJRT_CALL(*plugin_, Client_Compile, args));
  return LoadedExecutableHandle(args.executable, {plugin_});
}

Result<LoadedExecutableHandle> Client::deserialize(std::string_view bytes) const {
  auto args = PJRT_ARGS(Executable_DeserializeAndLoad);
  args.client = client_.get();
  args.serialized_executable = bytes.data();
  args.serialized_executable_size = bytes.size();
  TRY(PJRT_CALL(*plugin_, Executable_DeserializeAndLoad, args));
  return LoadedExecutableHandle(args.loaded_executable, {plugin_});
}

Result<std::string> Client::serialize(PJRT_LoadedExecutable* program) const {
  auto get = PJRT_ARGS(LoadedExecutable_GetExecutable);
  get.loaded_executable = program;
  TRY(PJRT_CALL(*plugin_, LoadedExecutable_GetExecutable, get));
  const ExecutableHandle executable(get.executable, {plugin_});
  auto args = PJRT_ARGS(Executable_Serialize);
  args.executable = executable.get();
  TRY(PJRT_CALL(*plugin_, Executable_Serialize, args));
  std::string bytes(args.serialized_bytes, args.serialized_bytes_size);
  args.serialized_executable_deleter(args.serialized_executable);
  return bytes;
}

Result<std::vector<std::vector<BufferHandle>>> Client::execute(PJRT_LoadedExecutable* program,
                                                               const std::vector<std::vector<PJRT_Buffer*>>& arguments,
                                                               size_t results) const {
  std::vector<PJRT_Buffer* const*> argument_lists;
  std::vector<std::vector<PJRT_Buffer*>> outputs(arguments.size(), std::vector<PJRT_Buffer*>(results));
  std::vector<PJRT_Buffer**> output_lists;
  for (const auto& list : arguments) argument_lists.push_back(list.data());
  for (auto& list : outputs) output_lists.push_back(list.data());
  std::vector<PJRT_Event*> done(arguments.size());
  PJRT_ExecuteOptions options{};
  options.struct_size = PJRT_ExecuteOptions_STRUCT_SIZE;
  auto args = PJRT_ARGS(LoadedExecutable_Execute);
  args.executable = program;
  args.options = &options;
  args.argument_lists = argument_lists.data();
  args.num_devices = arguments.size();
  args.num_args = arguments[0].size();
  args.output_lists = output_lists.data();
  args.device_complete_events = done.data();
  const auto begin = std::chrono::steady_clock::now();
  TRY(PJRT_CALL(*plugin_, LoadedExecutable_Execute, args));
  std::vector<std::vector<BufferHandle>> owned(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i)
    for (PJRT_Buffer* buffer : outputs[i]) owned[i].push_back(own(buffer));
  Result<void> finished;
  for (PJRT_Event* event : done)  // all of them, lest one still runs when its buffers go
    if (Result<void> one = await(*plugin_, own(event)); !one && finished) finished = std::move(one);
  seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  TRY(std::move(finished));
  return owned;
}

}  // namespace sfumato::pjrt
