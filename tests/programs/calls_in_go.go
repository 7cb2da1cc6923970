// 200 000 calls of `parse`, each with two allocations: 124 bytes. The first of each goroutine finds
// its stack too small, and restarts: that is no call.
package main

import "fmt"

type key struct{ a, b, c int }

var keys *key
var value []byte

//go:noinline
func parse(i int) {
	var room [4096]byte
	room[i%4096] = 1
	keys = &key{i, i, int(room[(i+1)%4096])}
	value = make([]byte, 100) // the line to name
	value[i%100] = room[i%4096]
}

func main() {
	done := make(chan bool)
	for g := 0; g < 20; g++ {
		go func() {
			for i := 0; i < 10000; i++ {
				parse(i)
			}
			done <- true
		}()
	}
	for g := 0; g < 20; g++ {
		<-done
	}
	fmt.Println(keys.a, value[0])
}
