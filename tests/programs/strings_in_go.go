// Costs of text in Go programs: the first argument selects one, the second says how often.
package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Refuses each second value by a panic.
func checked(value int) int {
	if value%2 == 0 {
		panic("even") // the panic to name
	}
	return value * 3
}

func accepted(value int) (result int) {
	defer func() {
		if recover() != nil {
			result = 0
		}
	}()
	return checked(value)
}

// Counts visits by long addresses.
//
//go:noinline
func visits(addresses []string, count int) int {
	seen := map[string]int{}
	for i := 0; i < count; i++ {
		seen[addresses[i*7919%len(addresses)]]++ // the visit to name
	}
	return seen[addresses[1]]
}

// The numbers of the lines of all values: each counts from the start of the text.
func lines(text string) (sum int) {
	for at := 0; at < len(text); at++ {
		next := strings.IndexByte(text[at:], '=')
		if next < 0 {
			break
		}
		at += next
		sum += strings.Count(text[:at], "\n") // the search to name
	}
	return sum
}

// Keeps each name once, in a list that is searched for it.
//
//go:noinline
func known(count int) int {
	var names []string
	for i := 0; i < count; i++ {
		name := fmt.Sprint("name ", i*7919%20000)
		if !slices.Contains(names, name) { // the list to name
			names = append(names, name)
		}
	}
	return len(names)
}

func main() {
	count, _ := strconv.Atoi(os.Args[2])
	sum := 0
	switch os.Args[1] {
	case "accepted":
		for i := 0; i < count; i++ {
			sum += accepted(i)
		}
	case "visits":
		addresses := make([]string, 64)
		for i := range addresses {
			addresses[i] = fmt.Sprint(strings.Repeat("https://example.org/a/long/path/", 40), i)
		}
		sum = visits(addresses, count)
	case "lines":
		var text strings.Builder
		for i := 0; i < count; i++ {
			fmt.Fprintf(&text, "let name%d = value%d\n", i, i)
		}
		sum = lines(text.String())
	case "known":
		sum = known(count)
	}
	fmt.Println(sum)
}
