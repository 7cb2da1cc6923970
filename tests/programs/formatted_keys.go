// Counts visits by place: the map's key is a formatted string of two numbers.
package main

import (
	"fmt"
	"os"
	"strconv"
)

func main() {
	visits := 3000000
	if len(os.Args) > 1 {
		visits, _ = strconv.Atoi(os.Args[1])
	}
	count := make(map[string]int)
	for i := 0; i < visits; i++ {
		key := fmt.Sprintf("%d:%d", i%37, i%11) // the line to name
		count[key]++
	}
	fmt.Println(len(count), count["0:0"])
}
