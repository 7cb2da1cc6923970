// The cache against a real store, and against one that answers wrongly.
//
//     test STORE FAULTS CREDENTIALS

#include "line_cache.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>
#include <random>
#include <thread>
#include <vector>

using namespace lines;

namespace {

int failed = 0;

void expect(bool holds, const std::string &what) {
    if (!holds) {
        ++failed;
        std::cerr << "failed: " << what << "\n";
    }
}

void expect_failure(Failure wanted, const std::string &what, const std::function<void()> &act) {
    try {
        act();
        expect(false, what + ": no error");
    } catch (const StoreError &error) {
        expect(error.failure == wanted, what + ": " + name(error.failure) + ", " + error.what());
    }
}

Account account(const std::string &endpoint, const std::string &credentials) {
    std::ifstream file(credentials);
    std::string id, secret;
    std::getline(file, id, ':');
    std::getline(file, secret);
    return {endpoint, "lines", "us-east-1", id, secret};
}

constexpr std::size_t kNumbers = (2 * kLineBytes + kLineBytes / 2) / 8;

std::uint64_t number_at(const Line &line, std::size_t index) {
    std::uint64_t value = 0;
    std::memcpy(&value, line.bytes.data() + index * 8, 8);
    return value;
}

void lines_and_ranges(const ObjectStore &store) {
    const Object numbers = store.look_up("numbers");
    expect(numbers.size == kNumbers * 8, "the store says how large an object is");
    LineCache cache(store, 1 << 30);
    expect(LineCache::lines_of(numbers) == 3, "two and a half lines are three");
    for (std::uint64_t index = 0; index < 3; ++index) {
        const auto line = cache.line(numbers, index);
        const std::size_t count = line->filled / 8, first = index * (kLineBytes / 8);
        expect(line->filled == (index < 2 ? kLineBytes : kLineBytes / 2), "a line is full");
        expect(number_at(*line, 0) == first, "a line begins where it should");
        expect(number_at(*line, count - 1) == first + count - 1, "and ends where it should");
    }
    // Across all three lines, at odd places.
    std::vector<std::byte> bytes(kLineBytes + 100'003);
    cache.read(numbers, kLineBytes - 77, bytes);
    bool same = true;
    for (std::size_t at = 0; at < bytes.size(); ++at) {
        const std::uint64_t whole = (kLineBytes - 77 + at) / 8, part = (kLineBytes - 77 + at) % 8;
        same = same && std::to_integer<std::uint64_t>(bytes[at]) == (whole >> (8 * part) & 0xff);
    }
    expect(same, "a range comes from as many lines as it lies in");
    expect(cache.statistics().fetched == 3, "each line was fetched once");
    expect_failure(Failure::wrong_size, "a read past the end",
                   [&] { cache.read(numbers, numbers.size - 1, std::span(bytes).first(2)); });
    expect_failure(Failure::wrong_size, "a line past the end", [&] { cache.line(numbers, 3); });

    const Object odd = store.look_up("a name with + and \xc3\xbc");
    expect(cache.line(odd, 0)->filled == 1000, "a name may hold any bytes");
    const Object empty = store.look_up("empty");
    expect(empty.size == 0 && LineCache::lines_of(empty) == 0, "an empty object has no lines");
    cache.read(empty, 0, {});
    expect_failure(Failure::wrong_size, "an empty object's line", [&] { cache.line(empty, 0); });
}

void least_recently_used_goes_first(const ObjectStore &store) {
    const Object numbers = store.look_up("numbers");
    LineCache cache(store, 2 * sizeof(Line));
    const auto held = cache.line(numbers, 0);
    cache.line(numbers, 1);
    cache.line(numbers, 0);
    cache.line(numbers, 2); // Lets go of 1.
    expect(cache.statistics().evicted == 1, "one line too many is let go");
    cache.line(numbers, 0);
    expect(cache.statistics().fetched == 3, "the line used last is kept");
    cache.line(numbers, 1);
    expect(cache.statistics().fetched == 4, "the line that was let go is fetched again");
    cache.line(numbers, 2);
    expect(number_at(*held, 7) == 7, "a reader keeps what it holds");

    LineCache small(store, 1);
    expect(small.line(numbers, 1)->filled == kLineBytes, "a cache of no size still serves");
    std::vector<std::byte> bytes(numbers.size);
    small.read(numbers, 0, bytes);
}

void many_readers(const ObjectStore &store) {
    const Object numbers = store.look_up("numbers");
    LineCache cache(store, 2 * sizeof(Line));
    std::atomic<bool> right = true;
    {
        std::vector<std::jthread> readers;
        for (unsigned seed = 0; seed < 6; ++seed) {
            readers.emplace_back([&, seed] {
                std::minstd_rand random(seed + 1);
                for (int round = 0; round < 40; ++round) {
                    const std::size_t at = random() % kNumbers;
                    const auto line = cache.line(numbers, at / (kLineBytes / 8));
                    if (number_at(*line, at % (kLineBytes / 8)) != at) {
                        right = false;
                    }
                }
            });
        }
    }
    expect(right, "readers at once read what is there");
    const auto did = cache.statistics();
    expect(did.hits + did.joined + did.fetched == 240, "every request is counted once");
}

void one_fetch_for_all(const ObjectStore &store, const Object &slow) {
    LineCache cache(store, 1 << 30);
    std::atomic<const Line *> first = nullptr;
    std::atomic<bool> same = true;
    {
        std::vector<std::jthread> readers;
        for (int reader = 0; reader < 8; ++reader) {
            readers.emplace_back([&] {
                const auto line = cache.line(slow, 0);
                const Line *expected = nullptr;
                if (!first.compare_exchange_strong(expected, line.get()) &&
                    expected != line.get()) {
                    same = false;
                }
            });
        }
    }
    const auto did = cache.statistics();
    expect(same && did.fetched == 1, "eight readers share one line of one fetch");
    expect(did.joined + did.hits == 7, "and seven of them found it or waited for it");
}

/// No reader ever sees a line that is not whole, though every other fetch breaks off.
void flaky(const ObjectStore &store, const Object &object) {
    LineCache cache(store, 1);
    std::atomic<int> served = 0, refused = 0, wrong = 0;
    {
        std::vector<std::jthread> readers;
        for (int reader = 0; reader < 4; ++reader) {
            readers.emplace_back([&] {
                for (std::uint64_t round = 0; round < 12; ++round) {
                    const std::uint64_t index = round % 2, start = index * kLineBytes;
                    try {
                        const auto line = cache.line(object, index);
                        ++served;
                        bool whole = line->filled == (index == 0 ? kLineBytes : 1000);
                        for (std::size_t at = 0; whole && at < line->filled; ++at) {
                            whole = std::to_integer<std::uint64_t>(line->bytes[at]) ==
                                    (start + at) % 251;
                        }
                        wrong += whole ? 0 : 1;
                    } catch (const StoreError &error) {
                        ++refused;
                        wrong += error.failure == Failure::truncated ? 0 : 1;
                    }
                }
            });
        }
    }
    expect(wrong == 0, "a line is whole or an error");
    expect(served > 0 && refused > 0, "both happened");
}

void wrong_answers(const std::string &faults) {
    const ObjectStore store(Account{faults, "lines", "us-east-1", "id", "secret"});
    const std::uint64_t size = kLineBytes + 1000;
    LineCache cache(store, 1 << 30);
    const std::pair<const char *, Failure> kinds[] = {
        {"short", Failure::truncated},      {"less", Failure::truncated},
        {"more", Failure::wrong_size},      {"grown", Failure::wrong_size},
        {"elsewhere", Failure::wrong_size}, {"unranged", Failure::wrong_size},
        {"whole", Failure::refused},        {"broken", Failure::refused},
        {"silent", Failure::unreachable},
    };
    for (const auto &[kind, failure] : kinds) {
        expect_failure(failure, kind, [&] { cache.line({kind, size}, 0); });
    }
    const auto did = cache.statistics();
    expect(did.fetched == 0 && did.failed == std::size(kinds), "nothing of it is kept");
    expect(cache.line({"good", size}, 1)->filled == 1000, "the next good answer is served");
    one_fetch_for_all(store, {"slow", size});
    flaky(store, {"flaky", size});
}

void refusals(const Account &good) {
    const ObjectStore store(good);
    LineCache cache(store, 1 << 30);
    expect_failure(Failure::missing, "404", [&] { cache.line({"nothing", 100}, 0); });
    expect_failure(Failure::missing, "404 of a size", [&] { store.look_up("nothing"); });
    expect_failure(Failure::wrong_size, "a smaller object", [&] {
        cache.line({"numbers", 100}, 0);
    });
    expect_failure(Failure::wrong_size, "416", [&] { cache.line({"numbers", 4 * kLineBytes}, 3); });

    Account wrong = good;
    wrong.secret += "x";
    const ObjectStore other(wrong);
    LineCache others(other, 1 << 30);
    expect_failure(Failure::forbidden, "403", [&] { others.line({"numbers", kNumbers * 8}, 0); });

    Account nowhere = good;
    nowhere.endpoint = "http://127.0.0.1:1";
    const ObjectStore gone(nowhere);
    LineCache without(gone, 1 << 30);
    expect_failure(Failure::unreachable, "no server", [&] {
        without.line({"numbers", kNumbers * 8}, 0);
    });
    expect(others.statistics().fetched + without.statistics().fetched == 0, "nothing was kept");
}

} // namespace

int main(int argc, char **argv) {
    if (argc != 4) {
        std::cerr << "usage: test STORE FAULTS CREDENTIALS\n";
        return 2;
    }
    const Account good = account(argv[1], argv[3]);
    const ObjectStore store(good);
    lines_and_ranges(store);
    least_recently_used_goes_first(store);
    many_readers(store);
    refusals(good);
    wrong_answers(argv[2]);
    std::printf("%s: %s\n", argv[0], failed == 0 ? "passed" : "failed");
    return failed == 0 ? 0 : 1;
}
