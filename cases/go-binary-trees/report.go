// Package binarytrees holds what all forms of the benchmark share: how many trees of which depth
// are built, and what is printed of them. The forms differ only in where nodes come from.
//
// Binary trees are built, counted and dropped: next to no computation, millions of small objects.
package binarytrees

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
)

// least is the depth of the smallest trees.
const least = 4

// A Forest builds and counts trees in one particular way.
type Forest struct {
	// Count builds a full tree of this depth, counts its nodes, and drops it.
	Count func(depth int) int
	// Keep builds a tree that stays alive, and returns how to count it.
	Keep func(depth int) func() int
}

// Main runs the benchmark to the depth in the first argument, 10 without one.
func Main(f Forest) {
	depth := 10
	if len(os.Args) > 1 {
		n, err := strconv.Atoi(os.Args[1])
		if err != nil || n < 0 || n > 30 {
			fmt.Fprintf(os.Stderr, "usage: %s [DEPTH], 0 to 30\n", os.Args[0])
			os.Exit(2)
		}
		depth = n
	}
	out := bufio.NewWriter(os.Stdout)
	Run(f, depth, out)
	if err := out.Flush(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Run builds a tree deeper than all others, one that stays, and many of each depth between.
func Run(f Forest, depth int, out io.Writer) {
	most := max(depth, least+2)
	fmt.Fprintf(out, "stretch tree of depth %d\t check: %d\n", most+1, f.Count(most+1))
	kept := f.Keep(most)
	for depth := least; depth <= most; depth += 2 {
		trees := 1 << (most - depth + least)
		nodes := 0
		for range trees {
			nodes += f.Count(depth)
		}
		fmt.Fprintf(out, "%d\t trees of depth %d\t check: %d\n", trees, depth, nodes)
	}
	fmt.Fprintf(out, "long lived tree of depth %d\t check: %d\n", most, kept())
}
