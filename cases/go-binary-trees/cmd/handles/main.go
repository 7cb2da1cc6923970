// Binary trees of handles, in one arena that only grows: no pointers for the collector to follow,
// and nothing is ever given back.
package main

import (
	binarytrees "example.org/binarytrees"
	"example.org/binarytrees/arena"
)

type handle = arena.Handle[node]

type node struct{ left, right handle }

var nodes arena.Arena[node]

func build(depth int) handle {
	if depth == 0 {
		return nodes.Put(node{})
	}
	return nodes.Put(node{build(depth - 1), build(depth - 1)})
}

func count(h handle) int {
	n := nodes.At(h)
	if n.left == 0 {
		return 1
	}
	return 1 + count(n.left) + count(n.right)
}

func main() {
	binarytrees.Main(binarytrees.Forest{
		Count: func(depth int) int { return count(build(depth)) },
		Keep: func(depth int) func() int {
			root := build(depth)
			return func() int { return count(root) }
		},
	})
}
