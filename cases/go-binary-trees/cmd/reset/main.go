// Binary trees of handles, in an arena that is reset after each tree: the same few blocks serve all.
// A tree of a depth has less than twice two to that power of nodes, for which room is made at once.
package main

import (
	binarytrees "example.org/binarytrees"
	"example.org/binarytrees/arena"
)

type handle = arena.Handle[node]

type node struct{ left, right handle }

type nodes = arena.Arena[node]

func build(from *nodes, depth int) handle {
	if depth == 0 {
		return from.Add(node{})
	}
	return from.Add(node{build(from, depth-1), build(from, depth-1)})
}

func count(from *nodes, h handle) int {
	n := *from.At(h)
	if n.left == 0 {
		return 1
	}
	return 1 + count(from, n.left) + count(from, n.right)
}

func main() {
	var dropped nodes
	binarytrees.Main(binarytrees.Forest{
		Count: func(depth int) int {
			dropped.Reset()
			dropped.Reserve(2 << depth)
			return count(&dropped, build(&dropped, depth))
		},
		Keep: func(depth int) func() int {
			kept := new(nodes)
			kept.Reserve(2 << depth)
			root := build(kept, depth)
			return func() int { return count(kept, root) }
		},
	})
}
