// Zeroed memory from the operating system, which supplies pages when they are first touched.
#ifndef SIMULATOR_PAGES_H_
#define SIMULATOR_PAGES_H_

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

namespace polynao::simulator {

// A card has tens of megabytes of memory, and a program that runs a microsecond touches few of
// them: unlike malloc and memset, this costs nothing for untouched pages.
class Pages {
 public:
  enum class Sharing {
    kPrivate,
    kWithChildren,  // processes forked from now on see the same memory
  };
  Pages(int64_t bytes, Sharing sharing)
      : bytes_(bytes > 0 ? static_cast<size_t>(bytes) : 1),
        data_(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                   (sharing == Sharing::kPrivate ? MAP_PRIVATE : MAP_SHARED) | MAP_ANONYMOUS |
                       MAP_NORESERVE,
                   -1, 0)) {}
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() {
    if (ok()) munmap(data_, bytes_);
  }
  bool ok() const { return data_ != MAP_FAILED; }
  uint8_t* data() const { return static_cast<uint8_t*>(data_); }

 private:
  const size_t bytes_;
  void* const data_;
};

}  // namespace polynao::simulator

#endif  // SIMULATOR_PAGES_H_
