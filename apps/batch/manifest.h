#pragma once
// The list of pictures to draw: JSON lines.
//
//     {"prompt": "a red apple"}
//     {"prompt": "a boat", "seed": 7, "batch_count": 4, "size": "512x768", "sampler": "Euler a", "id": "boat"}
//
// A line's fields are the options of the command line that concern a picture (docs/batch.md); what a line leaves out
// is as the command line says. Pictures are numbered through the whole file from 0: the global index.
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "pipeline/options.h"

namespace sfumato {

class Manifest {
 public:
  using Check = std::function<Result<void>(const Request&)>;

  /// Reads every line; the first bad one is an error that names it. `check` is asked once for each combination of
  /// settings. Files that a line names must be there, relative to the manifest's folder.
  static Result<Manifest> open(const std::filesystem::path& path, const RunOptions& defaults, const Check& check);

  size_t pictures() const { return pictures_; }
  /// The picture with this global index: one prompt, one image; its seed is the line's + its place in the line, or else
  /// the command line's + the global index. Reads the files that the line names.
  Result<Request> request(size_t index) const;
  /// The fields of its line as they are there, but for its own seed, and no batch_count.
  nlohmann::ordered_json record(size_t index) const;
  /// The number of its line, from 1.
  size_t line_number(size_t index) const { return line_of(index).number; }

 private:
  struct Line {
    size_t number, begin, length;
    size_t first;  ///< global index of its first picture
  };
  std::string_view text_of(const Line& line) const { return file_->text().substr(line.begin, line.length); }
  const Line& line_of(size_t index) const;
  /// The command line's options with the line's over them.
  Result<RunOptions> parse(std::string_view line, bool with_files) const;
  Result<void> set_file(RunOptions& run, const Option& option, const std::string& field, const nlohmann::json& value,
                        bool with_files) const;
  /// How many pictures it stands for. `checked`: the settings that `check` has seen.
  Result<size_t> check_line(const Line& line, const Check& check, std::set<std::string>& checked) const;
  uint64_t seed_of(const RunOptions& run, size_t index, const Line& line) const;

  std::shared_ptr<const MappedFile> file_;
  RunOptions defaults_;
  std::vector<Line> lines_;
  size_t pictures_ = 0;
};

}  // namespace sfumato
