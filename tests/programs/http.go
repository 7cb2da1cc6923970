// http SECONDS: serves pages on a local port. For SECONDS a child process requests a page, waits a
// millisecond and requests it again. The waits of the client are the wall time.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

func page(w http.ResponseWriter, r *http.Request) {
	fmt.Fprint(w, strings.Repeat("page "+r.URL.Path+"\n", 20))
}

func ask(url string, seconds float64) (int, error) {
	asked := 0
	for end := time.Now().Add(time.Duration(seconds * 1e9)); time.Now().Before(end); asked++ {
		reply, err := http.Get(url)
		if err != nil {
			return asked, err
		}
		if _, err := io.Copy(io.Discard, reply.Body); err != nil {
			return asked, err
		}
		reply.Body.Close()
		time.Sleep(time.Millisecond) // the client's pace
	}
	return asked, nil
}

func serve(seconds string) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go http.Serve(listener, http.HandlerFunc(page))
	client := exec.Command("/proc/self/exe", seconds, "http://"+listener.Addr().String()+"/one")
	client.Stdout, client.Stderr = os.Stdout, os.Stderr
	return client.Run()
}

func main() {
	var err error
	if len(os.Args) == 3 {
		var seconds float64
		if seconds, err = strconv.ParseFloat(os.Args[1], 64); err == nil {
			_, err = ask(os.Args[2], seconds)
		}
	} else {
		err = serve(os.Args[1])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
