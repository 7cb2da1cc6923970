package blake2s

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// hashlib answers each line with the hash that Python computes for it.
const hashlib = `
import hashlib, sys
for line in sys.stdin:
    data, size, key, salt, person, *tree = line.rstrip("\n").split(",")
    fanout, depth, leaf, offset, level, inner, last = map(int, tree)
    print(hashlib.blake2s(bytes.fromhex(data), digest_size=int(size), key=bytes.fromhex(key),
        salt=bytes.fromhex(salt), person=bytes.fromhex(person), fanout=fanout, depth=depth,
        leaf_size=leaf, node_offset=offset, node_depth=level, inner_size=inner,
        last_node=bool(last)).hexdigest())
`

// TestAgainstPython compares with Python's hashlib, which knows all parameters, on many hashes with
// all parameters at random, and on each parameter's least and greatest value.
func TestAgainstPython(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		if os.Getenv("CASE") != "" {
			t.Fatal("python3 is wanted, and not here")
		}
		t.Skip("SKIPPED: python3 is not here")
	}
	random := rand.New(rand.NewPCG(2, 5))
	asked := configs(random, 3000)
	var lines strings.Builder
	data := make([][]byte, len(asked))
	for i, c := range asked {
		data[i] = some(random, 300)
		last := 0
		if c.Tree.LastNode {
			last = 1
		}
		fmt.Fprintf(&lines, "%x,%d,%x,%x,%x,%d,%d,%d,%d,%d,%d,%d\n", data[i], c.Size, c.Key, c.Salt, c.Person,
			c.Tree.FanOut, c.Tree.Depth, c.Tree.LeafSize, c.Tree.NodeOffset, c.Tree.NodeDepth,
			c.Tree.InnerSize, last)
	}
	command := exec.Command(python, "-c", hashlib)
	command.Stdin, command.Stderr = strings.NewReader(lines.String()), os.Stderr
	answer, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	forms(t, func(t *testing.T) {
		answers := bufio.NewScanner(strings.NewReader(string(answer)))
		for i, c := range asked {
			if !answers.Scan() {
				t.Fatalf("Python answers %d of %d", i, len(asked))
			}
			d := must(t, &c)
			d.Write(data[i])
			if got := hex.EncodeToString(d.Sum(nil)); got != answers.Text() {
				t.Fatalf("%+v, %+v of %x: %s, Python says %s", c, *c.Tree, data[i], got, answers.Text())
			}
		}
	})
}

func some(random *rand.Rand, most int) []byte {
	bytes := make([]byte, random.IntN(most+1))
	for i := range bytes {
		bytes[i] = byte(random.Uint32())
	}
	return bytes
}

func configs(random *rand.Rand, n int) (all []Config) {
	edge := func(greatest uint64) uint64 {
		switch random.IntN(4) {
		case 0:
			return 0
		case 1:
			return greatest
		}
		return random.Uint64N(greatest + 1)
	}
	for range n {
		all = append(all, Config{
			Size:   1 + int(edge(Size-1)),
			Key:    some(random, MaxKeySize),
			Salt:   some(random, SaltSize),
			Person: some(random, PersonSize),
			Tree: &Tree{
				FanOut:     uint8(edge(255)),
				Depth:      1 + uint8(edge(254)),
				LeafSize:   uint32(edge(1<<32 - 1)),
				NodeOffset: edge(1<<48 - 1),
				NodeDepth:  uint8(edge(255)),
				InnerSize:  uint8(edge(Size)),
				LastNode:   random.IntN(2) == 1,
			},
		})
	}
	return all
}
