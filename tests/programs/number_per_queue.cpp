// A thread puts each number into a queue for another one; with `batches`, fifty thousand at a time.
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

static const uint64_t numbers = 400000, size = 50000;

template <typename T> class Queue {
    static const size_t most = 64;
    std::mutex mutex;
    std::condition_variable has_room, has_one;
    std::deque<T> items;

  public:
    void push(T item)
    {
        std::unique_lock<std::mutex> lock(mutex);
        has_room.wait(lock, [&] { return items.size() < most; });
        items.push_back(std::move(item));
        has_one.notify_one(); // the line to name
    }
    T pop()
    {
        std::unique_lock<std::mutex> lock(mutex);
        has_one.wait(lock, [&] { return !items.empty(); });
        T item = std::move(items.front());
        items.pop_front();
        has_room.notify_one();
        return item;
    }
};

static uint64_t mixed(uint64_t value)
{
    value ^= value << 13;
    value ^= value >> 7;
    return value ^ (value << 17);
}

static uint64_t one_by_one()
{
    Queue<uint64_t> queue;
    std::thread maker([&] {
        for (uint64_t n = 1; n <= numbers; n++)
            queue.push(mixed(n));
        queue.push(0);
    });
    uint64_t sum = 0;
    while (uint64_t value = queue.pop())
        sum += value % 1000;
    maker.join();
    return sum;
}

// A hundred times as many.
static uint64_t in_batches()
{
    Queue<std::vector<uint64_t>> queue;
    std::thread maker([&] {
        for (uint64_t first = 1; first <= 100 * numbers; first += size) {
            std::vector<uint64_t> batch(size);
            for (size_t i = 0; i < batch.size(); i++)
                batch[i] = mixed(first + i);
            queue.push(std::move(batch));
        }
        queue.push({});
    });
    uint64_t sum = 0;
    for (;;) {
        std::vector<uint64_t> batch = queue.pop();
        if (batch.empty())
            break;
        for (uint64_t value : batch)
            sum += value % 1000;
    }
    maker.join();
    return sum;
}

int main(int argc, char **argv)
{
    bool batches = argc > 1 && strcmp(argv[1], "batches") == 0;
    printf("%lu\n", batches ? in_batches() : one_by_one());
}
