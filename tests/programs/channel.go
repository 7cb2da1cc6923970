// channel TIMES: two goroutines pass one value back and forth over unbuffered channels.
package main

import (
	"fmt"
	"os"
	"strconv"
)

func answer(questions <-chan int, answers chan<- int) {
	for question := range questions {
		answers <- question + 1
	}
	close(answers)
}

func main() {
	times, err := strconv.Atoi(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	questions, answers := make(chan int), make(chan int)
	go answer(questions, answers)
	value := 0
	for i := 0; i < times; i++ {
		questions <- value
		value = <-answers
	}
	close(questions)
	fmt.Println(value)
}
