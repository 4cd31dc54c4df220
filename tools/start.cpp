// Settles before the libraries start how long OpenMP's threads spin. libgomp reads this once, from
// the environment, when it starts; so if one of our programs finds it unset, it sets it. Linked into
// programs, not into the library.
#include <sys/auxv.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>

#ifdef _OPENMP

namespace {

// The variable's entry, or a null pointer.
char** find(char** environment, const char* name) {
  const size_t length = std::strlen(name);
  for (; *environment; ++environment) {
    if (std::strncmp(*environment, name, length) == 0 && (*environment)[length] == '=')
      return environment;
  }
  return nullptr;
}

int64_t nanoseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * int64_t{1000000000} + now.tv_nsec;
}

// One iteration of a thread that spins, as in libgomp.
#if defined(__x86_64__)
constexpr int64_t kRounds = 200;  // a pause takes 40 to 140 cycles, by CPU
void spin() { __builtin_ia32_pause(); }
#else
constexpr int64_t kRounds = 10000;
void spin() { asm volatile("" ::: "memory"); }
#endif

// Iterations of a spinning thread in `time` ns.
int64_t rounds_in(int64_t time) {
  int64_t minimum = time;
  for (int trial = 0; trial < 3; ++trial) {
    const int64_t before = nanoseconds();
    for (int64_t i = 0; i < kRounds; ++i) spin();
    minimum = std::min(minimum, nanoseconds() - before);
  }
  return time * kRounds / std::max<int64_t>(minimum, 1);
}

// libgomp's threads spin 300,000 iterations, 5 to 20 ms, before they sleep. If another process
// occupies one of the cores, a thread may wait for one that shares its own core: each loop of a
// net, and a step has hundreds, then costs a time slice. Most loops follow each other within this
// many ns.
constexpr int64_t kSpin = 100000;

// Runs before the constructors of any library, so that nothing is done twice.
void set_spins(int, char** arguments, char** environment) {
  if (find(environment, "GOMP_SPINCOUNT") || find(environment, "OMP_WAIT_POLICY")) return;
  static char spins[64];
  std::snprintf(spins, sizeof spins, "GOMP_SPINCOUNT=%lld",
                static_cast<long long>(rounds_in(kSpin)));
  // The environment cannot grow here, but shells set a variable that no program reads: the path of
  // the last command. Otherwise the program executes itself again, which loads all libraries twice.
  if (char** const unused = find(environment, "_")) {
    *unused = spins;
    return;
  }
  const auto path =
      reinterpret_cast<const char*>(getauxval(AT_EXECFN));  // NOLINT(performance-no-int-to-ptr)
  // Without a base address the loader itself was started, with the program as its argument.
  if (!path || getauxval(AT_BASE) == 0) return;
  int count = 0;
  while (environment[count]) ++count;
  constexpr int kMax = 4096;
  if (count > kMax) return;
  char* larger[kMax + 2];
  std::memcpy(larger, environment, count * sizeof(char*));
  larger[count] = spins;
  larger[count + 1] = nullptr;
  execve(path, arguments, larger);
  // If that fails, the program continues, with longer spins.
}

[[gnu::section(".preinit_array"), gnu::used]] void (*const early)(int, char**, char**) = set_spins;

}  // namespace

#endif
