// unbuffered FILE LINES: prints lines into a file without a buffer.
package main

import (
	"fmt"
	"os"
	"strconv"
)

func printLine(table *os.File, line int) {
	fmt.Fprintln(table, "line", line) // one write each
}

func main() {
	lines, err := strconv.Atoi(os.Args[2])
	if err == nil {
		var table *os.File
		if table, err = os.Create(os.Args[1]); err == nil {
			for line := 0; line < lines; line++ {
				printLine(table, line)
			}
			err = table.Close()
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
