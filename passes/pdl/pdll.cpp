// SPDX-License-Identifier: Apache-2.0
#include "passes/pdl/pdll.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <optional>

#include "lathe/runtime/error.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Program.h"
#include "passes/pdl/pdl_natives.h"
#include "runtime/mapped_file.h"

namespace lathe {
namespace {

namespace fs = std::filesystem;

// What a file includes is opened by the tool: a device or a FIFO among it ends at these.
constexpr unsigned kSecondsToWait = 60, kMegabytes = 1024;

// A folder that goes with everything in it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    llvm::SmallString<128> path;
    if (auto error = llvm::sys::fs::createUniqueDirectory("lathe-pdll", path))
      throw Error(ErrorCode::Io, "cannot make a temporary folder: " + error.message());
    path_ = path.str().str();
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string operator/(const char* name) const { return (path_ / name).string(); }
  std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

std::string findTool(const std::string& folder) {
  for (auto& found : {llvm::sys::findProgramByName("mlir-pdll"),
                      llvm::sys::findProgramByName("mlir-pdll", {folder})})
    if (found) return *found;
  throw Error(ErrorCode::Unsupported,
              "a .pdll file needs LLVM's tool mlir-pdll, which is neither on PATH nor in " +
                  folder +
                  "; install mlir-tools, or write the PDL where the tool is (mlir-pdll FILE -x "
                  "mlir) and give that as an .mlir file");
}

}  // namespace

std::string pdlFromPdll(const std::string& path, const std::string& toolFolder) {
  expectRegularFile(path);
  std::string tool = findTool(toolFolder.empty() ? LATHE_LLVM_TOOLS : toolFolder);
  TemporaryFolder folder;
  std::ofstream(folder / "lathe.pdll") << pdllPrelude();
  std::string output = folder / "out.mlir", errors = folder / "errors";
  std::string beside = fs::absolute(path).parent_path().string(), ours = folder.path();
  std::array<llvm::StringRef, 10> arguments{tool, path, "-x",   "mlir", "-I",
                                            ours, "-I", beside, "-o",   output};
  std::array<std::optional<llvm::StringRef>, 3> redirects{"", "", llvm::StringRef(errors)};
  std::string why;
  int status = llvm::sys::ExecuteAndWait(tool, arguments, std::nullopt, redirects, kSecondsToWait,
                                         kMegabytes, &why);
  std::string words = readWholeFile(errors, kPatternFile);
  // It succeeds with an attribute that it could not read, and leaves the attribute's value out.
  if (status == 0 && words.find("error:") == std::string::npos)
    return readWholeFile(output, kPatternFile);
  while (words.ends_with('\n')) words.pop_back();
  // A tool that crashed printed its stack: that is no help.
  if (status < 0)
    words = "mlir-pdll ended badly" + (why.empty() ? "" : ": " + why) +
            (status == -2 ? "; does the file include itself?" : "");
  throw Error(ErrorCode::InvalidFile,
              path + ": " + (words.empty() ? "mlir-pdll refused the file" : words));
}

}  // namespace lathe
