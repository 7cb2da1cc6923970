// Loops that are slow for a known reason, beside the same work without it, and loops that only look slow.
//
// pairs NAME slow|fast: prepares its data, then works on it. The work is in a function of its own, `work_...`.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <sys/mman.h>
#include <thread>
#include <vector>

#define OWN __attribute__((noinline, noclone))
using u64 = std::uint64_t;
using u32 = std::uint32_t;

static u64 state = 88172645463325252u;
static u64 chance()
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state >> 11;
}

template <class T> static void shuffle(std::vector<T> &all)
{
    for (size_t i = all.size(); i > 1; i--)
        std::swap(all[i - 1], all[chance() % i]);
}

static u64 sum; // of all results: nothing is left out

// Columns and rows.
OWN float work_grid(const float *cells, size_t side, bool by_columns)
{
    float all = 0;
    if (by_columns) {
        for (size_t x = 0; x < side; x++)
            for (size_t y = 0; y < side; y++)
                all += cells[y * side + x];
    } else {
        for (size_t y = 0; y < side; y++)
            for (size_t x = 0; x < side; x++)
                all += cells[y * side + x];
    }
    return all;
}

// Lists: at random, in order.
struct Node {
    Node *next;
    u64 value, rest[6];
};
OWN u64 work_list(const Node *node)
{
    u64 all = 0;
    for (; node; node = node->next)
        all += node->value;
    return all;
}

// One field of large records, and an array of its own.
struct Record {
    u32 price, rest[31];
};
OWN u64 work_records(const Record *records, size_t count)
{
    u64 all = 0;
    for (size_t i = 0; i < count; i++)
        all += records[i].price;
    return all;
}
OWN u64 work_prices(const u32 *prices, size_t count)
{
    u64 all = 0;
    for (size_t i = 0; i < count; i++) {
        all += prices[i];
        asm volatile("" : "+r"(all)); // one by one, as the records
    }
    return all;
}

// Searches in a tree.
struct Tree {
    u64 key;
    Tree *less, *more;
};
OWN u64 work_tree(const Tree *root, const std::vector<u64> &keys)
{
    u64 found = 0;
    for (u64 key : keys)
        for (const Tree *at = root; at; at = key < at->key ? at->less : at->more)
            if (at->key == key) {
                found++;
                break;
            }
    return found;
}

// Reads of a table at random.
OWN u64 work_table(const u64 *table, u64 mask, size_t turns)
{
    u64 x = 12345, all = 0;
    for (size_t i = 0; i < turns; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        all += table[x >> 20 & mask];
    }
    return all;
}

// Heads of large items.
struct Item {
    Item *next;
    u64 count;
    char body[4096 + 48];
};
OWN u64 work_items(Item *item)
{
    u64 all = 0;
    for (; item; item = item->next)
        all += ++item->count;
    return all;
}

// A condition, and calls through pointers.
OWN u64 work_condition(const unsigned char *bytes, size_t count)
{
    u64 large = 0, mixed = 0;
    for (size_t i = 0; i < count; i++)
        if (bytes[i] >= 128) {
            large += bytes[i] * 5;
            asm volatile("" : "+r"(large)); // stays a branch
            mixed ^= large;
        }
    return mixed;
}
struct Rule {
    explicit Rule(u64 n) : n(n) {}
    virtual ~Rule() = default;
    virtual u64 apply(u64 x) const = 0;
    u64 n;
};
template <int K> struct RuleOf : Rule {
    using Rule::Rule;
    u64 apply(u64 x) const override { return K & 1 ? x + n * K : (x ^ n) - K; }
};
OWN u64 work_rules(const std::vector<std::unique_ptr<Rule>> &rules)
{
    u64 x = 1;
    for (const auto &rule : rules)
        x = rule->apply(x);
    return x;
}

// Divisions.
OWN u64 work_quotients(const std::vector<u64> &numbers, u64 by)
{
    u64 all = 0;
    for (u64 n : numbers)
        all += n / by;
    return all;
}
OWN u64 work_products(const std::vector<u64> &numbers, u64 inverse)
{
    u64 all = 0;
    for (u64 n : numbers)
        all += static_cast<u64>(static_cast<unsigned __int128>(n) * inverse >> 64);
    return all;
}

// Counters of two threads.
OWN void work_count(volatile u64 *counter, u64 turns)
{
    for (u64 i = 0; i < turns; i++)
        *counter = *counter + 1;
}

// Neither memory nor branches.
OWN u64 work_mix(const std::vector<u64> &numbers)
{
    u64 all = 1;
    for (u64 n : numbers) {
        n *= 0xff51afd7ed558ccdu;
        all = (all ^ n ^ n >> 33) * 0x9e3779b97f4a7c15u;
    }
    return all;
}

static Node *list(std::vector<Node> &nodes, bool at_random)
{
    std::vector<u32> order(nodes.size());
    std::iota(order.begin(), order.end(), 0);
    if (at_random)
        shuffle(order);
    for (size_t i = 0; i < order.size(); i++)
        nodes[order[i]] = {i + 1 < order.size() ? &nodes[order[i + 1]] : nullptr, i, {}};
    return &nodes[order[0]];
}

static void run(const std::string &name, bool slow)
{
    if (name == "grid") {
        std::vector<float> cells(4096 * 4096, 1);
        for (int i = 0; i < 5; i++)
            sum += static_cast<u64>(work_grid(cells.data(), 4096, slow));
    } else if (name == "list" || name == "list-in-order") {
        const bool control = name == "list-in-order";
        std::vector<Node> nodes(1 << 20);
        Node *first = list(nodes, slow && !control);
        for (int i = 0; i < (control ? 120 : 6); i++)
            sum += work_list(first);
    } else if (name == "records") {
        const size_t count = 1 << 18;
        std::vector<Record> records(slow ? count : 1);
        std::vector<u32> prices(slow ? 1 : count, 3);
        for (int i = 0; i < 250; i++)
            sum += slow ? work_records(records.data(), count) : work_prices(prices.data(), count);
    } else if (name == "tree") {
        std::vector<Tree> nodes(1 << 18);
        for (Tree &node : nodes) {
            node.key = chance();
            Tree **at = nodes.data() == &node ? nullptr : &nodes[0].less;
            for (Tree *up = &nodes[0]; at && up; up = *at)
                at = node.key < up->key ? &up->less : &up->more;
            if (at)
                *at = &node;
        }
        std::vector<u64> keys(1 << 21);
        for (u64 &key : keys)
            key = nodes[chance() % nodes.size()].key;
        if (!slow)
            std::sort(keys.begin(), keys.end());
        sum += work_tree(&nodes[0], keys);
    } else if (name == "table") {
        const size_t words = slow ? 1 << 25 : 1 << 11;
        std::vector<u64> table(words, 1);
        sum += work_table(table.data(), words - 1, 40'000'000);
    } else if (name == "table-in-cache") {
        const size_t words = slow ? 1 << 15 : 1 << 11;
        std::vector<u64> table(words, 1);
        sum += work_table(table.data(), words - 1, 400'000'000);
    } else if (name == "pages") {
        const size_t count = 16'000, huge = 1 << 21;
        const size_t bytes = (count * sizeof(Item) + huge - 1) / huge * huge;
        auto *items = static_cast<Item *>(std::aligned_alloc(huge, bytes));
        if (!slow)
            madvise(items, bytes, MADV_HUGEPAGE);
        std::memset(items, 0, bytes);
        std::vector<u32> order(count);
        std::iota(order.begin(), order.end(), 0);
        shuffle(order);
        for (size_t i = 0; i + 1 < count; i++)
            items[order[i]].next = &items[order[i + 1]];
        for (int i = 0; i < 700; i++)
            sum += work_items(&items[order[0]]);
    } else if (name == "condition") {
        std::vector<unsigned char> bytes(1 << 20);
        for (auto &byte : bytes)
            byte = static_cast<unsigned char>(chance());
        if (!slow)
            std::sort(bytes.begin(), bytes.end());
        for (int i = 0; i < 150; i++)
            sum += work_condition(bytes.data(), bytes.size());
    } else if (name == "rules") {
        std::vector<std::unique_ptr<Rule>> rules;
        const size_t count = 30'000;
        for (size_t i = 0; i < count; i++)
            switch (slow ? chance() % 4 : i * 4 / count) {
            case 0: rules.push_back(std::make_unique<RuleOf<1>>(i)); break;
            case 1: rules.push_back(std::make_unique<RuleOf<2>>(i)); break;
            case 2: rules.push_back(std::make_unique<RuleOf<3>>(i)); break;
            default: rules.push_back(std::make_unique<RuleOf<4>>(i));
            }
        for (int i = 0; i < 2000; i++)
            sum += work_rules(rules);
    } else if (name == "division") {
        std::vector<u64> numbers(2048);
        for (u64 &n : numbers)
            n = chance();
        for (u64 i = 0; i < 60'000; i++)
            sum += slow ? work_quotients(numbers, 1000 + (i & 7)) : work_products(numbers, ~0ull / (1000 + (i & 7)));
    } else if (name == "counters") {
        alignas(128) static volatile u64 counters[64];
        std::thread one([] { work_count(&counters[0], 250'000'000); });
        work_count(&counters[slow ? 1 : 32], 250'000'000);
        one.join();
    } else if (name == "stream") {
        std::vector<u32> prices(1 << 24, 3);
        for (int i = 0; i < 40; i++)
            sum += work_prices(prices.data(), prices.size());
    } else if (name == "mix") {
        std::vector<u64> numbers(2048, 7);
        for (int i = 0; i < 120'000; i++)
            sum += work_mix(numbers);
    } else {
        std::fprintf(stderr, "unknown: %s\n", name.c_str());
        std::exit(2);
    }
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    run(argv[1], !std::strcmp(argv[2], "slow"));
    std::printf("%llu\n", static_cast<unsigned long long>(sum));
}
