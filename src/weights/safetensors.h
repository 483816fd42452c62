#pragma once
// The safetensors container: 8 bytes of header length, a JSON header, the data. github.com/huggingface/safetensors
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "base/mapped_file.h"
#include "base/result.h"
#include "weights/weight_source.h"

namespace sfumato {

/// A mapped file, its header checked in full before anything else is looked at: length within the file and at most
/// 100 MB; an object that starts with '{'; no key twice; known dtypes; sizes equal to shape times element; tensors that
/// follow one another without gap or overlap and end where the file ends (bytes after the last tensor are refused).
/// Alignment is not required: views may be unaligned.
class SafetensorsFile final : public WeightSource {
 public:
  static Result<std::shared_ptr<const SafetensorsFile>> open(const std::filesystem::path& path);

  std::optional<TensorView> find(const std::string& name) const override;
  std::vector<std::string> names() const override;
  void release(const TensorView& view) const override { file_->release(view.data, view.bytes()); }
  const std::filesystem::path& path() const { return file_->path(); }
  /// The JSON header: what identifies the file without reading its data.
  std::string_view header() const { return header_; }
  /// Everything after the header.
  std::string_view data() const { return data_; }

 private:
  std::shared_ptr<const MappedFile> file_;
  std::string_view header_, data_;
  std::map<std::string, TensorView> tensors_;
};

}  // namespace sfumato
