#include "backend/pjrt/plugin/plugin.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/strings.h"

namespace sfumato::pjrt {
namespace {

/// Older tables lack functions and fields that every call here relies on.
constexpr int kOldestMinor = 54;

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

}  // namespace

Result<std::shared_ptr<const Plugin>> Plugin::open(const std::string& path) {
  std::error_code failed;
  if (!std::filesystem::is_regular_file(path, failed))
    return input_error(str("[backend.pjrt] no plugin at \"", path, "\"; give its path with --plugin"));
  // What goes wrong comes back through the interface; the log of XLA repeats it, among much else, on standard error.
  setenv("TF_CPP_MIN_LOG_LEVEL", "3", 0);
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return input_error(str("[backend.pjrt] \"", path, "\" does not load: ", one_line(dlerror())));
  const auto get = reinterpret_cast<const PJRT_Api* (*)()>(dlsym(library, "GetPjrtApi"));
  const PJRT_Api* api = get ? get() : nullptr;
  if (!api) return input_error(str("[backend.pjrt] \"", path, "\" is no PJRT plugin: it has no GetPjrtApi"));
  std::shared_ptr<const Plugin> plugin(new Plugin(path, api));
  TRY(plugin->check_version());
  auto initialize = PJRT_ARGS(Plugin_Initialize);
  TRY(PJRT_CALL(*plugin, Plugin_Initialize, initialize));
  return plugin;
}

Result<void> Plugin::check_version() const {
  const PJRT_Api_Version& version = api_->pjrt_api_version;
  if (version.major_version != PJRT_API_MAJOR || version.minor_version < kOldestMinor)
    return input_error(str("[backend.pjrt] \"", path_, "\": expected PJRT API ", PJRT_API_MAJOR, ".", kOldestMinor,
                           " or newer, got ", version.major_version, ".", version.minor_version,
                           "; use a newer plugin"));
  return {};
}

Error Plugin::missing(std::string_view name) const {
  return runtime_error(str("[backend.pjrt] \"", path_, "\" has no ", name, "; use a newer plugin"));
}

std::string Plugin::take_message(PJRT_Error* error) const {
  auto message = PJRT_ARGS(Error_Message);
  message.error = error;
  api_->PJRT_Error_Message(&message);
  std::string text = one_line({message.message, message.message_size});
  auto destroy = PJRT_ARGS(Error_Destroy);
  destroy.error = error;
  api_->PJRT_Error_Destroy(&destroy);
  return text;
}

Result<void> Plugin::check(std::string_view name, PJRT_Error* error) const {
  if (!error) return {};
  auto code = PJRT_ARGS(Error_GetCode);
  code.error = error;
  const bool is_known = api_->PJRT_Error_GetCode(&code) == nullptr;
  const bool is_memory = is_known && code.code == PJRT_Error_Code_RESOURCE_EXHAUSTED;
  return Error{is_memory ? ErrorKind::kOutOfMemory : ErrorKind::kRuntime,
               str("[backend.pjrt] ", name, ": ", take_message(error))};
}

std::string Plugin::version() const {
  std::string text = str("PJRT ", api_->pjrt_api_version.major_version, ".", api_->pjrt_api_version.minor_version);
  auto args = PJRT_ARGS(Plugin_Attributes);
  if (!PJRT_CALL(*this, Plugin_Attributes, args)) return text;
  for (size_t i = 0; i < args.num_attributes; ++i) {
    const PJRT_NamedValue& value = args.attributes[i];
    text += "; " + std::string(value.name, value.name_size) + " ";
    if (value.type == PJRT_NamedValue_kString) text.append(value.string_value, value.value_size);
    if (value.type == PJRT_NamedValue_kInt64) text += std::to_string(value.int64_value);
    if (value.type == PJRT_NamedValue_kInt64List)
      text += join(std::vector<int64_t>(value.int64_array_value, value.int64_array_value + value.value_size), ".");
  }
  return text;
}

Result<void> await(const Plugin& plugin, EventHandle event) {
  if (!event) return {};
  auto args = PJRT_ARGS(Event_Await);
  args.event = event.get();
  return PJRT_CALL(plugin, Event_Await, args);
}

namespace {

/// Protocol buffers' wire format, as much of it as is needed.
std::string varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
  return out;
}
std::string field(int number, uint64_t value) {
  return varint(static_cast<uint64_t>(number) << 3) + varint(value);
}
std::string field(int number, const std::string& bytes) {
  return varint(static_cast<uint64_t>(number) << 3 | 2) + varint(bytes.size()) + bytes;
}

}  // namespace

PJRT_Program program_of(const std::string& text) {
  constexpr static std::string_view kFormat = "mlir";
  PJRT_Program program{};
  program.struct_size = PJRT_Program_STRUCT_SIZE;
  program.code = const_cast<char*>(text.data());  // not written to
  program.code_size = text.size();
  program.format = kFormat.data();
  program.format_size = kFormat.size();
  return program;
}

std::string compile_options(int replicas, const std::vector<std::string>& off) {
  std::string ids;
  for (int i = 0; i < replicas; ++i) ids += varint(static_cast<uint64_t>(i));
  const std::string assignment =  // DeviceAssignmentProto: replica_count, computation_count, computation_devices
      field(1, static_cast<uint64_t>(replicas)) + field(2, 1) + field(3, field(1, ids));
  const std::string build =  // ExecutableBuildOptionsProto: device_ordinal, num_replicas, num_partitions, assignment
      field(1, ~uint64_t{0}) + field(4, static_cast<uint64_t>(replicas)) + field(5, 1) + field(9, assignment);
  std::string options = field(3, build);  // CompileOptionsProto.executable_build_options
  for (const std::string& flag : off)     // .env_option_overrides: a map to OptionOverrideProto.bool_field
    options += field(7, field(1, flag) + field(2, field(2, uint64_t{0})));
  return options;
}

std::string compile_options(int replicas, const ir::Graph& graph, bool is_tpu) {
  if (!is_tpu) return compile_options(replicas);
  std::vector<std::string> off = {"xla_allow_excess_precision"};
  const std::vector<ir::Value> inputs = graph.inputs();
  const bool is_batch = !inputs.empty() && graph[inputs[0]].shape[0] > 1;
  if (is_batch) off.insert(off.end(), {"xla_tpu_run_space_to_batch", "xla_tpu_run_space_to_batch_on_new_platforms"});
  return compile_options(replicas, off);
}

}  // namespace sfumato::pjrt
