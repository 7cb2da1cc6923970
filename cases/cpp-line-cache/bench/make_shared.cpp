// What make_shared costs by the size of the object, and by how the object is made.
//
//     make_shared [MEGABYTES]
//
// Each figure is the median of several fresh processes, so that all memory is fresh memory.

#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRepeats = 7;

/// Value-initialised by `make_shared<T>()`, and so set to zero.
template <std::size_t N> struct Plain { std::array<std::byte, N> bytes; };

/// Left as it is, because it has a constructor of its own.
template <std::size_t N> struct Constructed {
    std::array<std::byte, N> bytes;
    Constructed() {}
};

template <typename T> struct Made {
    using Type = T;
    static std::shared_ptr<T> make() { return std::make_shared<T>(); }
};

template <typename T> struct MadeForOverwrite {
    using Type = T;
    static std::shared_ptr<T> make() { return std::make_shared_for_overwrite<T>(); }
};

/// Makes `count` objects that all stay alive, and perhaps writes them.
template <typename Maker> void make_all(std::size_t count, bool written) {
    std::vector<std::shared_ptr<typename Maker::Type>> objects;
    objects.reserve(count);
    for (std::size_t made = 0; made < count; ++made) {
        auto object = Maker::make();
        if (written) {
            std::memset(object->bytes.data(), static_cast<int>(made), object->bytes.size());
        }
        // The optimiser has to believe that somebody reads it.
        asm volatile("" : : "r"(object->bytes.data()) : "memory");
        objects.push_back(std::move(object));
    }
    // Never freed: how long that takes is another question.
    new auto(std::move(objects));
}

/// Milliseconds; all threads start at once, and each makes as many.
template <typename Maker> double timed(std::size_t count, bool written, int threads) {
    std::vector<Clock::time_point> begun(static_cast<std::size_t>(threads));
    std::barrier start(threads);
    {
        std::vector<std::jthread> all;
        for (auto &mine : begun) {
            all.emplace_back([&start, &mine, count, written] {
                start.arrive_and_wait();
                mine = Clock::now();
                make_all<Maker>(count, written);
            });
        }
    }
    const auto first = *std::min_element(begun.begin(), begun.end());
    return std::chrono::duration<double, std::milli>(Clock::now() - first).count();
}

/// The same in a process of its own.
template <typename Maker> double in_child(std::size_t count, bool written, int threads) {
    int ends[2];
    if (pipe(ends) != 0) {
        std::perror("make_shared: pipe");
        std::exit(1);
    }
    const pid_t child = fork();
    if (child == 0) {
        const double took = timed<Maker>(count, written, threads);
        _exit(write(ends[1], &took, sizeof took) == sizeof took ? 0 : 1);
    }
    close(ends[1]);
    double took = 0;
    int status = 0;
    const bool told = child > 0 && read(ends[0], &took, sizeof took) == sizeof took;
    close(ends[0]);
    waitpid(child, &status, 0);
    if (!told || status != 0) {
        std::fprintf(stderr, "make_shared: a process failed; is there enough memory?\n");
        std::exit(1);
    }
    return took;
}

/// A line of the table: the three ways take turns, so that a busy minute hits all of them.
template <std::size_t N> void row(const char *what, std::size_t total, bool written, int threads) {
    const std::size_t count = std::max<std::size_t>(total / N, 1);
    std::array<std::array<double, kRepeats>, 3> took{};
    for (std::size_t repeat = 0; repeat < kRepeats; ++repeat) {
        took[0][repeat] = in_child<Made<Plain<N>>>(count, written, threads);
        took[1][repeat] = in_child<Made<Constructed<N>>>(count, written, threads);
        took[2][repeat] = in_child<MadeForOverwrite<Plain<N>>>(count, written, threads);
    }
    for (auto &times : took) {
        std::sort(times.begin(), times.end());
    }
    const double plain = took[0][kRepeats / 2], constructed = took[1][kRepeats / 2],
                 overwrite = took[2][kRepeats / 2];
    std::printf("%-8s %-22s %10.3f %12.3f %10.3f %8.0f %%\n", what,
                threads > 1 ? "written, 2 threads"
                : written   ? "written"
                            : "untouched",
                plain, constructed, overwrite, 100 * (1 - overwrite / plain));
}

template <std::size_t N> void rows(const char *what, std::size_t total) {
    row<N>(what, total, false, 1);
    row<N>(what, total, true, 1);
    row<N>(what, total, true, 2);
}

} // namespace

int main(int argc, char **argv) {
    const std::size_t megabytes = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 500;
    if (megabytes == 0) {
        std::fprintf(stderr, "usage: make_shared [MEGABYTES]\n");
        return 2;
    }
    const std::size_t total = megabytes * 1'000'000;
    std::printf("%zu MB in all, for each thread; ms, median of %d processes each\n", megabytes,
                kRepeats);
    std::printf("%-8s %-22s %10s %12s %10s %10s\n", "object", "", "value", "constructor",
                "overwrite", "saved");
    rows<100>("100 B", total);
    rows<(std::size_t{8} << 20)>("8 MB", total);
    rows<100'000'000>("100 MB", total);
}
