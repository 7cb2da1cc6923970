package blake2s

import (
	"bytes"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
	"testing"

	"example.org/blake2s/internal/compress"
)

// forms runs a test with both forms of the compression function.
func forms(t *testing.T, test func(*testing.T)) {
	for name, vectors := range map[string]bool{"pure": false, "vectors": true} {
		t.Run(name, func(t *testing.T) {
			if !compress.Use(vectors) {
				t.Skip("built without GOEXPERIMENT=simd, or a machine without AVX-512")
			}
			test(t)
		})
	}
}

func count(n int) []byte {
	counting := make([]byte, n)
	for i := range counting {
		counting[i] = byte(i)
	}
	return counting
}

func must(t *testing.T, c *Config) *Digest {
	t.Helper()
	d, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestSelf is the self-test of RFC 7693, appendix E: sizes, lengths and keys in one number.
func TestSelf(t *testing.T) {
	forms(t, func(t *testing.T) {
		sequence := func(n int, seed uint32) []byte {
			a, b := 0xDEAD4BAD*seed, uint32(1)
			out := make([]byte, n)
			for i := range out {
				a, b = b, a+b
				out[i] = byte(b >> 24)
			}
			return out
		}
		all := New256()
		for _, size := range []int{16, 20, 28, 32} {
			for _, n := range []int{0, 3, 64, 65, 255, 1024} {
				in := sequence(n, uint32(n))
				for _, key := range [][]byte{nil, sequence(size, uint32(size))} {
					d := must(t, &Config{Size: size, Key: key})
					d.Write(in)
					all.Write(d.Sum(nil))
				}
			}
		}
		const expected = "6a411f08ce25adcdfb02aba641451cec53c598b24f4fc787fbdc88797f4c1dfe"
		if got := hex.EncodeToString(all.Sum(nil)); got != expected {
			t.Errorf("%s, not %s", got, expected)
		}
	})
}

// TestKnownAnswers takes the authors' vectors, all keyed, and the RFC's example, without a key.
func TestKnownAnswers(t *testing.T) {
	forms(t, func(t *testing.T) {
		const abc = "508c5e8c327c14e2e1a72ba34eeb452f37458b209ed63a294d999b4c86675982"
		if got := Sum256([]byte("abc")); hex.EncodeToString(got[:]) != abc {
			t.Errorf("abc: %x", got)
		}
		known, data := 0, count(256)
		for line := range strings.Lines(keyed) {
			if strings.HasPrefix(line, "#") {
				continue
			}
			d := must(t, &Config{Key: count(32)})
			d.Write(data[:known])
			if got := hex.EncodeToString(d.Sum(nil)); got != strings.TrimSpace(line) {
				t.Fatalf("%d bytes: %s, not %s", known, got, line)
			}
			known++
		}
		if known != 256 {
			t.Errorf("%d vectors instead of 256", known)
		}
	})
}

//go:embed testdata/keyed.txt
var keyed string

func TestPiecesMakeNoDifference(t *testing.T) {
	forms(t, func(t *testing.T) {
		data := count(400)
		for n := range data {
			whole := Sum256(data[:n])
			for _, piece := range []int{1, 7, 63, 64, 65, 128} {
				d := New256()
				for rest := data[:n]; len(rest) > 0; {
					k := min(piece, len(rest))
					d.Write(rest[:k])
					rest = rest[k:]
				}
				if got := d.Sum(nil); !bytes.Equal(got, whole[:]) {
					t.Fatalf("%d bytes in pieces of %d: %x, at once %x", n, piece, got, whole)
				}
			}
		}
	})
}

func TestSumChangesNothingAndResetForgets(t *testing.T) {
	for _, c := range []*Config{nil, {Size: 20}, {Key: count(32)}, {Tree: &Tree{Depth: 2, LastNode: true}}} {
		d := must(t, c)
		fresh := d.Sum(nil)
		d.Write(count(100))
		first := d.Sum([]byte("before"))
		if again := d.Sum([]byte("before")); !bytes.Equal(first, again) || !bytes.HasPrefix(first, []byte("before")) {
			t.Errorf("%v: %x, then %x", c, first, again)
		}
		if len(first) != len("before")+d.Size() {
			t.Errorf("%v: %d bytes for a size of %d", c, len(first), d.Size())
		}
		d.Write(count(1))
		if bytes.Equal(d.Sum(nil), first[len("before"):]) {
			t.Errorf("%v: more was written, and the hash is the same", c)
		}
		d.Reset()
		if got := d.Sum(nil); !bytes.Equal(got, fresh) {
			t.Errorf("%v: %x after Reset, %x before", c, got, fresh)
		}
	}
}

func TestConfigsThatAreNoneAreRefused(t *testing.T) {
	for expected, c := range map[error]Config{
		ErrSize:      {Size: 33},
		ErrKey:       {Key: count(33)},
		ErrSalt:      {Salt: count(9)},
		ErrPerson:    {Person: count(9)},
		ErrDepth:     {Tree: &Tree{FanOut: 2}},
		ErrOffset:    {Tree: &Tree{Depth: 1, NodeOffset: 1 << 48}},
		ErrInnerSize: {Tree: &Tree{Depth: 1, InnerSize: 33}},
	} {
		if d, err := New(&c); !errors.Is(err, expected) || d != nil {
			t.Errorf("%+v: %v, not %v", c, err, expected)
		}
	}
	if _, err := New(&Config{Size: -1}); !errors.Is(err, ErrSize) {
		t.Errorf("a negative size: %v", err)
	}
}

func TestNothingIsAllocated(t *testing.T) {
	data, sum := count(1000), make([]byte, 0, Size)
	if n := testing.AllocsPerRun(100, func() {
		d := New256()
		d.Write(data)
		sum = d.Sum(sum[:0])
	}); n != 0 {
		t.Errorf("%v allocations in New256, Write and Sum", n)
	}
	if n := testing.AllocsPerRun(100, func() { Sum256(data) }); n != 0 {
		t.Errorf("%v allocations in Sum256", n)
	}
}

func ExampleNew() {
	// A message authentication code of 16 bytes, of use for sessions only.
	var mac hash.Hash
	mac, err := New(&Config{Size: 16, Key: []byte("a secret"), Person: []byte("session")})
	if err != nil {
		panic(err)
	}
	io.WriteString(mac, "user=1")
	fmt.Printf("%x\n", mac.Sum(nil))
	// Output: bfcab5e02f4ecffd6ab25eba211c51ae
}

var benchmarked = make([]byte, 8<<10)

func Benchmark(b *testing.B) {
	for _, vectors := range []bool{false, true} {
		form := map[bool]string{false: "pure", true: "simd"}[vectors]
		for _, size := range []int{8, 1 << 10, 8 << 10} {
			b.Run(fmt.Sprintf("form=%s/size=%d", form, size), func(b *testing.B) {
				if !compress.Use(vectors) {
					b.Skip("no vectors")
				}
				b.SetBytes(int64(size))
				b.ReportAllocs()
				sum := make([]byte, 0, Size)
				for range b.N {
					d := New256()
					d.Write(benchmarked[:size])
					sum = d.Sum(sum[:0])
				}
			})
		}
	}
}
