// Takes lines from the front of a buffer, and moves the rest of it down after each.
#include <cstdio>
#include <cstdlib>
#include <string>

struct Session {
    std::string pending;
    long lines = 0, bytes = 0;

    void receive(const std::string &segment)
    {
        pending += segment;
        for (;;) {
            std::size_t end = pending.find('\n');
            if (end == std::string::npos)
                return;
            for (std::size_t i = 0; i < end; i++)
                bytes += pending[i] != ' ';
            lines++;
            pending.erase(0, end + 1); // the line to name
        }
    }
};

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? std::atoi(argv[1]) : 100;
    std::string segment;
    for (int i = 0; i < 2000; i++)
        segment += "set " + std::to_string(i * 7919) + " to some value\n";
    Session session;
    for (int i = 0; i < rounds; i++)
        session.receive(segment);
    std::printf("%ld %ld\n", session.lines, session.bytes);
}
