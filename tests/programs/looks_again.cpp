// looks_again TIMES [notifies]: a worker finishes TIMES pieces of some 4 ms each, and says so in a variable that nobody is notified of.
// The main thread waits for a condition for up to 20 ms, and then looks again. With `notifies` the worker notifies it.
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

static std::mutex guard;
static std::condition_variable request, changed;
static long asked, done;

static unsigned piece(unsigned seed)
{
    volatile unsigned x = seed;
    for (int i = 0; i < 3000000; i++)
        x = x * 1664525u + 1013904223u;
    return x;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    const long times = std::atol(argv[1]);
    const bool notifies = argc > 2;
    unsigned sum = 1;
    std::thread worker([&] {
        for (long i = 1; i <= times; i++) {
            {
                std::unique_lock lock(guard);
                request.wait(lock, [&] { return asked >= i; });
            }
            sum = piece(sum);
            std::lock_guard lock(guard);
            done = i;
            if (notifies)
                changed.notify_all();
        }
    });
    for (long i = 1; i <= times; i++) {
        std::unique_lock lock(guard);
        asked = i;
        request.notify_all();
        while (done < i)
            changed.wait_for(lock, std::chrono::milliseconds(20)); // the time-out
    }
    worker.join();
    std::printf("%u\n", sum);
}
