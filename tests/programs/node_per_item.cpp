// Counts words by length: each word gets a heap node, which is freed with its line.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

struct Node {
    int length;
    std::unique_ptr<Node> next;
};

static std::unique_ptr<Node> split(const char *line)
{
    std::unique_ptr<Node> head;
    int length = 0;
    for (const char *p = line;; p++) {
        if (*p != ' ' && *p) {
            length++;
            continue;
        }
        head = std::unique_ptr<Node>(new Node{length, std::move(head)}); // the line to name
        length = 0;
        if (!*p)
            return head;
    }
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? std::atoi(argv[1]) : 400000;
    long sum = 0;
    for (int i = 0; i < rounds; i++) {
        std::unique_ptr<Node> words = split("it was the age of fire and of ice and of all in between");
        for (const Node *n = words.get(); n; n = n->next.get())
            sum += n->length * n->length;
    }
    std::printf("%ld\n", sum);
}
