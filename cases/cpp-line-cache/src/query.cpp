// select region, count(*), sum(price * quantity) from orders where day between A and B
// group by region: a scan of four columns through the line cache.

#include "table.hpp"

#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iostream>
#include <thread>

using namespace lines;

namespace {

constexpr const char *kUsage =
    "usage: query --endpoint URL --bucket NAME [OPTION...]\n"
    "  --table NAME        the table's folder (orders)\n"
    "  --credentials FILE  holds KEY_ID:SECRET\n"
    "  --region NAME       what requests are signed for (us-east-1)\n"
    "  --from DAY, --to DAY  rows of these days, both counted (0 to 364)\n"
    "  --limit MIB         how much the cache keeps (1024)\n"
    "  --threads N         how many scan (1)\n"
    "  --passes N          ask again, with the cache warm (1)\n"
    "  --times             say on standard error what each pass took\n";

struct Options {
    Account account;
    std::string table = "orders";
    std::uint32_t from = 0, to = 364;
    std::size_t limit = 1024, threads = 1, passes = 1;
    bool times = false;
};

[[noreturn]] void refuse(const std::string &why) {
    std::cerr << "query: " << why << "\n" << kUsage;
    std::exit(2);
}

template <typename Number> Number number(const std::string &name, const std::string &text) {
    Number value{};
    const auto end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc{} || stopped != end) {
        refuse(name + " wants a number, not `" + text + "`");
    }
    return value;
}

void read_credentials(const std::string &path, Account &account) {
    std::ifstream file(path);
    std::string line;
    if (!std::getline(file, line) || line.find(':') == std::string::npos) {
        refuse(path + ": KEY_ID:SECRET is wanted in its first line");
    }
    account.key_id = line.substr(0, line.find(':'));
    account.secret = line.substr(line.find(':') + 1);
}

Options parse(const std::vector<std::string> &words) {
    Options options;
    for (std::size_t at = 0; at < words.size(); at += 2) {
        const std::string &name = words[at];
        if (name == "--help") {
            std::cout << kUsage;
            std::exit(0);
        }
        if (name == "--times") {
            options.times = true;
            --at;
            continue;
        }
        if (at + 1 == words.size()) {
            refuse(name + " wants a value");
        }
        const std::string &value = words[at + 1];
        if (name == "--endpoint") {
            options.account.endpoint = value;
        } else if (name == "--bucket") {
            options.account.bucket = value;
        } else if (name == "--credentials") {
            read_credentials(value, options.account);
        } else if (name == "--region") {
            options.account.region = value;
        } else if (name == "--table") {
            options.table = value;
        } else if (name == "--from") {
            options.from = number<std::uint32_t>(name, value);
        } else if (name == "--to") {
            options.to = number<std::uint32_t>(name, value);
        } else if (name == "--limit") {
            options.limit = number<std::size_t>(name, value);
        } else if (name == "--threads") {
            options.threads = number<std::size_t>(name, value);
        } else if (name == "--passes") {
            options.passes = number<std::size_t>(name, value);
        } else {
            refuse("no option " + name);
        }
    }
    if (options.account.endpoint.empty() || options.account.bucket.empty()) {
        refuse("--endpoint and --bucket are needed");
    }
    if (options.threads == 0 || options.passes == 0) {
        refuse("--threads and --passes are at least 1");
    }
    return options;
}

constexpr std::size_t kRegions = 8;

struct Sums {
    std::array<std::uint64_t, kRegions> orders{};
    std::array<std::int64_t, kRegions> cents{};

    void operator+=(const Sums &other) {
        for (std::size_t region = 0; region < kRegions; ++region) {
            orders[region] += other.orders[region];
            cents[region] += other.cents[region];
        }
    }
};

Sums scan(LineCache &cache, const Group &group, const Options &options) {
    Column<std::uint32_t> days(cache, group, "day"), regions(cache, group, "region"),
        quantities(cache, group, "quantity");
    Column<std::int64_t> prices(cache, group, "price");
    const std::uint64_t rows = days.size();
    if (regions.size() != rows || quantities.size() != rows || prices.size() != rows) {
        throw std::runtime_error("the columns of a group differ in length");
    }
    Sums sums;
    for (std::uint64_t row = 0; row < rows; ++row) {
        if (const auto day = days[row]; day < options.from || day > options.to) {
            continue;
        }
        const auto region = regions[row] % kRegions;
        ++sums.orders[region];
        sums.cents[region] += prices[row] * quantities[row];
    }
    return sums;
}

/// Scans all groups, each thread the next one that is left.
Sums scan_all(LineCache &cache, const Table &table, const Options &options) {
    std::atomic<std::size_t> next = 0;
    std::vector<Sums> parts(options.threads);
    std::vector<std::exception_ptr> errors(options.threads);
    const auto work = [&](std::size_t self) {
        try {
            for (std::size_t at = next++; at < table.groups.size(); at = next++) {
                parts[self] += scan(cache, table.groups[at], options);
            }
        } catch (...) {
            errors[self] = std::current_exception();
            next = table.groups.size();
        }
    };
    {
        std::vector<std::jthread> others;
        for (std::size_t self = 1; self < options.threads; ++self) {
            others.emplace_back(work, self);
        }
        work(0);
    }
    Sums sums;
    for (std::size_t self = 0; self < options.threads; ++self) {
        if (errors[self]) {
            std::rethrow_exception(errors[self]);
        }
        sums += parts[self];
    }
    return sums;
}

void print(const Sums &sums) {
    std::printf("%6s %10s %16s\n", "region", "orders", "turnover");
    for (std::size_t region = 0; region < kRegions; ++region) {
        const auto cents = sums.cents[region];
        std::printf("%6zu %10llu %13lld.%02lld\n", region,
                    static_cast<unsigned long long>(sums.orders[region]),
                    static_cast<long long>(cents / 100), static_cast<long long>(cents % 100));
    }
}

void run(const Options &options) {
    const ObjectStore store(options.account);
    LineCache cache(store, options.limit << 20);
    for (std::size_t pass = 1; pass <= options.passes; ++pass) {
        const auto start = std::chrono::steady_clock::now();
        const Table table = open_table(store, cache, options.table);
        const Sums sums = scan_all(cache, table, options);
        const std::chrono::duration<double, std::milli> took =
            std::chrono::steady_clock::now() - start;
        if (pass == 1) {
            print(sums);
        }
        if (!options.times) {
            continue;
        }
        const Statistics did = cache.statistics();
        std::fprintf(stderr,
                     "pass %zu: %.1f ms; so far %llu lines fetched (%.1f MiB), %llu found, %llu "
                     "evicted\n",
                     pass, took.count(), static_cast<unsigned long long>(did.fetched),
                     static_cast<double>(did.bytes_read) / (1 << 20),
                     static_cast<unsigned long long>(did.hits),
                     static_cast<unsigned long long>(did.evicted));
    }
}

} // namespace

int main(int argc, char **argv) {
    const Options options = parse({argv + 1, argv + argc});
    try {
        run(options);
    } catch (const StoreError &error) {
        std::cerr << "query: " << name(error.failure) << ": " << error.what() << "\n";
        return 1;
    } catch (const std::exception &error) {
        std::cerr << "query: " << error.what() << "\n";
        return 1;
    }
}
