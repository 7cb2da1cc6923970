/** Binary trees in Java: objects that the collector follows, as in the Go form with pointers. */
final class Trees {
    private record Node(Node left, Node right) {
        int count() {
            return left == null ? 1 : 1 + left.count() + right.count();
        }
    }

    private static Node build(int depth) {
        return depth == 0 ? new Node(null, null) : new Node(build(depth - 1), build(depth - 1));
    }

    public static void main(String[] arguments) {
        final int least = 4;
        final int most = Math.max(arguments.length > 0 ? Integer.parseInt(arguments[0]) : 10, least + 2);
        System.out.printf("stretch tree of depth %d\t check: %d%n", most + 1, build(most + 1).count());
        final Node kept = build(most);
        for (int depth = least; depth <= most; depth += 2) {
            final int trees = 1 << (most - depth + least);
            long nodes = 0;
            for (int i = 0; i < trees; i++) {
                nodes += build(depth).count();
            }
            System.out.printf("%d\t trees of depth %d\t check: %d%n", trees, depth, nodes);
        }
        System.out.printf("long lived tree of depth %d\t check: %d%n", most, kept.count());
    }
}
