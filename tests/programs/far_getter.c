// Blurs an image through a getter that is not inlined; `noinline` has the effect of another file.
#include <stdio.h>
#include <stdlib.h>

struct image {
    int width, height;
    unsigned char *cells;
};

__attribute__((noinline)) static int cell(const struct image *m, int x, int y)
{
    if (x < 0 || y < 0 || x >= m->width || y >= m->height)
        return 0;
    return m->cells[y * m->width + x];
}

__attribute__((noinline)) static void blur(const struct image *from, struct image *to)
{
    for (int y = 0; y < from->height; y++)
        for (int x = 0; x < from->width; x++) {
            int sum = cell(from, x, y) * 4; // the lines to name
            sum += cell(from, x - 1, y) + cell(from, x + 1, y);
            sum += cell(from, x, y - 1) + cell(from, x, y + 1);
            to->cells[y * to->width + x] = sum / 8;
        }
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 150;
    struct image a = {640, 400, malloc(640 * 400)}, b = {640, 400, malloc(640 * 400)};
    for (int i = 0; i < 640 * 400; i++)
        a.cells[i] = i * 7 % 251;
    for (int i = 0; i < rounds; i++) {
        blur(&a, &b);
        struct image other = a;
        a = b, b = other;
    }
    printf("%d\n", cell(&a, 100, 100));
}
