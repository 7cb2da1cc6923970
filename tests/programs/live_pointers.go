// Keeps a million small objects alive, and produces garbage meanwhile.
package main

import (
	"fmt"
	"os"
	"strconv"
)

type node struct {
	next  *node
	value int
}

func replace(ring []*node, i int) {
	ring[i%len(ring)] = &node{value: i, next: ring[(i*7)%len(ring)]} // the line to name
	ring[i%len(ring)].next.next = nil
}

func main() {
	count := 6000000
	if len(os.Args) > 1 {
		count, _ = strconv.Atoi(os.Args[1])
	}
	ring := make([]*node, 1000000)
	for i := range ring {
		ring[i] = &node{value: i}
	}
	for i := 0; i < count; i++ {
		replace(ring, i)
	}
	sum := 0
	for _, n := range ring {
		sum += n.value
	}
	fmt.Println(sum)
}
