package arena

import (
	"math/rand"
	"runtime"
	"testing"
)

type pair struct{ a, b int }

func TestValuesAreZeroAndStayApart(t *testing.T) {
	var arena Arena[pair]
	handles := map[Handle[pair]]int{}
	for i := range 3 * perBlock {
		h := arena.New()
		if *arena.At(h) != (pair{}) {
			t.Fatalf("value %d is not zero: %v", i, *arena.At(h))
		}
		if _, known := handles[h]; known || h == 0 {
			t.Fatalf("handle %d was handed out twice", h)
		}
		*arena.At(h) = pair{i, -i}
		handles[h] = i
	}
	for h, i := range handles {
		if *arena.At(h) != (pair{i, -i}) {
			t.Fatalf("value %d became %v", i, *arena.At(h))
		}
	}
	if arena.Len() != 3*perBlock || arena.Cap() != 3*perBlock {
		t.Fatalf("%d of %d", arena.Len(), arena.Cap())
	}
}

func TestPointersStayGoodWhileTheArenaGrows(t *testing.T) {
	var arena Arena[pair]
	first := arena.At(arena.New())
	for range 10 * perBlock {
		arena.New()
	}
	first.a = 7
	if arena.At(Handle[pair](1)).a != 7 {
		t.Fatal("the first value moved")
	}
}

func TestFreedAndResetValuesComeBackZero(t *testing.T) {
	var arena Arena[pair]
	for round := range 3 {
		for range perBlock + 5 {
			h := arena.New()
			if *arena.At(h) != (pair{}) {
				t.Fatalf("round %d: not zero", round)
			}
			arena.At(h).a = 1
		}
		h := arena.New()
		arena.At(h).b = 2
		arena.Free(h)
		if again := arena.New(); *arena.At(again) != (pair{}) {
			t.Fatal("a freed value came back as it was")
		}
		arena.Reset()
	}
	if arena.Len() != 0 || arena.Cap() != 2*perBlock {
		t.Fatalf("%d of %d after Reset", arena.Len(), arena.Cap())
	}
	arena.Release()
	if arena.Cap() != 0 {
		t.Fatal("Release keeps memory")
	}
}

func TestPutCopiesAndFreedValuesGoFirst(t *testing.T) {
	var arena Arena[pair]
	for range perBlock - 1 {
		arena.New()
	}
	last := arena.Put(pair{1, 2})
	arena.Free(last)
	arena.Free(Handle[pair](1))
	for i := range 3 {
		if arena.Cap() > perBlock && i < 2 {
			t.Fatalf("%d values fit: what was freed was not used again", arena.Cap())
		}
		h := arena.Put(pair{i, i})
		if *arena.At(h) != (pair{i, i}) || arena.Len() != perBlock-1+i {
			t.Fatalf("value %d became %v of %d", i, *arena.At(h), arena.Len())
		}
	}
}

func TestAddUsesWhatWasReserved(t *testing.T) {
	var arena Arena[pair]
	freed := arena.Put(pair{1, 2})
	arena.Free(freed)
	arena.Reserve(2 * perBlock)
	if arena.Cap() != 3*perBlock || arena.Len() != 0 {
		t.Fatalf("%d of %d", arena.Len(), arena.Cap())
	}
	for i := range 2 * perBlock {
		h := arena.Add(pair{i, i})
		if h == freed || *arena.At(h) != (pair{i, i}) || arena.Len() != i+1 {
			t.Fatalf("value %d became %v of %d", i, *arena.At(h), arena.Len())
		}
	}
	if h := arena.Put(pair{3, 4}); *arena.At(h) != (pair{3, 4}) || arena.Cap() != 3*perBlock {
		t.Fatalf("%v of %d", *arena.At(h), arena.Cap())
	}
}

func TestAddPanicsWithoutRoom(t *testing.T) {
	var arena Arena[pair]
	arena.Reserve(1)
	for range perBlock {
		arena.Add(pair{})
	}
	defer func() {
		if recover() == nil || arena.Len() != perBlock {
			t.Fatalf("a value was added where there is no room: %d", arena.Len())
		}
	}()
	arena.Add(pair{})
}

// What a random program of New, Free and Reset sees is what a map would show it.
func TestAgainstAMap(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	var arena Arena[int]
	model := map[Handle[int]]int{}
	var live []Handle[int]
	for step := range 200_000 {
		switch choice := random.Intn(1000); {
		case choice == 0:
			arena.Reset()
			clear(model)
			live = live[:0]
		case choice < 400 && len(live) > 0:
			i := random.Intn(len(live))
			h := live[i]
			if *arena.At(h) != model[h] {
				t.Fatalf("step %d: %d instead of %d", step, *arena.At(h), model[h])
			}
			arena.Free(h)
			delete(model, h)
			live[i] = live[len(live)-1]
			live = live[:len(live)-1]
		default:
			h := arena.New()
			*arena.At(h) = step
			model[h] = step
			live = append(live, h)
		}
		if arena.Len() != len(model) {
			t.Fatalf("step %d: %d values, %d in the model", step, arena.Len(), len(model))
		}
	}
}

func TestMemoryIsGivenBack(t *testing.T) {
	var arena Arena[[64]byte]
	for range 100 * perBlock {
		arena.New()
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	arena.Release()
	runtime.GC()
	runtime.ReadMemStats(&after)
	if freed := int64(before.HeapAlloc) - int64(after.HeapAlloc); freed < 99*perBlock*64 {
		t.Fatalf("only %d bytes were given back", freed)
	}
	runtime.KeepAlive(&arena)
}

func BenchmarkNew(b *testing.B) {
	var arena Arena[pair]
	for i := 0; b.Loop(); i++ {
		if i%1_000_000 == 0 {
			arena.Reset()
		}
		arena.New()
	}
}
