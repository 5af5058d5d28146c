#include "base/files.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/status.h"

namespace polynao {

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return InvalidInput(path, ": expected a file, found a directory");
  }
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  if (!in || !(text << in.rdbuf())) {
    // An empty file makes operator<< fail without any error.
    if (in && in.eof()) return std::string();
    if (in.is_open() && in.peek() == std::ifstream::traits_type::eof()) return std::string();
    return InvalidInput(path, ": can not be read: ", std::string(std::strerror(errno)));
  }
  return std::move(text).str();
}

absl::Status WriteFile(const std::string& path, std::string_view contents) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    // A device or a pipe takes the text itself; a file of its name would replace it.
    std::ofstream out(path, std::ios::binary);
    out.write(contents.data(), static_cast<std::streamsize>(contents.size()));
    out.close();
    return out ? absl::OkStatus()
               : InvalidInput(path, ": can not be written: ", std::string(std::strerror(errno)));
  }
  const std::string temporary = StrCat(path, ".", getpid(), ".tmp");
  std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
  out.write(contents.data(), static_cast<std::streamsize>(contents.size()));
  out.close();
  if (!out || std::rename(temporary.c_str(), path.c_str()) != 0) {
    const std::string why = std::strerror(errno);
    std::remove(temporary.c_str());
    return InvalidInput(path, ": can not be written: ", why);
  }
  return absl::OkStatus();
}

absl::Status MakeDirectory(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return InvalidInput(path, ": can not be made: ", error.message());
  return absl::OkStatus();
}

}  // namespace polynao
