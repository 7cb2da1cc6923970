/* Copies and searches, and prints the results: the same if any of it is done twice. With an argument: copies so many
 * times between two large buffers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGE = 32 << 20 };

int main(int argc, char **argv)
{
    volatile size_t n = 40;
    if (argc > 1) {
        char *from = malloc(LARGE), *to = malloc(LARGE);
        if (from == NULL || to == NULL)
            return 1;
        memset(from, 'x', LARGE);
        memset(to, 'y', LARGE);
        for (int i = 0; i < atoi(argv[1]); i++)
            memcpy(to, from, (size_t)LARGE - n);
        printf("%c%c\n", to[0], to[LARGE - 1]);
        return 0;
    }
    char text[200] = "abcdefghijklmnopqrstuvwxyz0123456789-12.5e3 rest", other[200];
    memcpy(other, text, n + 20);
    printf("%s %zu\n", other, strlen(text));
    memmove(text + 3, text, n); /* overlaps */
    printf("%s\n", text);
    memmove(text, text + 2, n);
    printf("%s\n", text);
    memmove(text + 100, text, n);
    printf("%s\n", text + 100);
    text[n] = 0;
    strcat(text, " joined");
    strncat(text, " and more", n / 8);
    printf("%s %d %d\n", text, memchr(text, 'q', n) != NULL, strcmp(text, other));
    int used = 0, first = 0, second = 0, third = 0, fourth = 0, fifth = 0, sixth = 0;
    int found = sscanf("1 2 3 4 5 6 tail", "%d %d %d %d %d %d%n", &first, &second, &third, &fourth, &fifth, &sixth, &used);
    printf("%d %d %d %d %d %d %d %d\n", found, used, first, second, third, fourth, fifth, sixth);
    char *end;
    double number = strtod(other + 36, &end);
    printf("%.2f%s %ld\n", number, end, strtol("0x1f", NULL, 16));
    return strstr(text, "joined") == NULL;
}
