package message

import (
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
)

// TestReplayIsThatOfTheSource reads bodies in attempts that end at arbitrary points. The last
// attempt must get the whole body or an error.
func TestReplayIsThatOfTheSource(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		size, most := random.IntN(400), random.IntN(300)
		text := make([]byte, size)
		for i := range text {
			text[i] = byte(random.Uint32())
		}
		p := NewReplay(&slices1{text: text, random: random}, most)
		taken := 0
		for {
			r, err := p.Open()
			if err != nil {
				if taken <= most {
					t.Fatalf("%v, though at most %d of %d bytes were read", err, taken, most)
				}
				break
			}
			if random.IntN(3) > 0 {
				n, _ := io.ReadFull(r, make([]byte, random.IntN(size+1)))
				taken = max(taken, n)
				if random.IntN(2) == 0 {
					_ = r.Close()
				}
				if p.Rewind() != (taken <= most) {
					t.Fatalf("after %d bytes of which %d may be kept, rewind says otherwise", taken, most)
				}
				continue
			}
			got, err := io.ReadAll(r)
			if err != nil || string(got) != string(text) {
				t.Fatalf("read %d bytes of %d, %v", len(got), size, err)
			}
			break
		}
	}
}

// slices1 gives its text in pieces of any length.
type slices1 struct {
	text   []byte
	random *rand.Rand
}

func (s *slices1) Read(b []byte) (int, error) {
	if len(s.text) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), 1+s.random.IntN(9))], s.text)
	s.text = s.text[n:]
	return n, nil
}

// TestReplayAfterAReaderThatWaits begins again while the reader before still waits for
// the client, and gets what that is given.
func TestReplayAfterAReaderThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, client := io.Pipe()
		p := NewReplay(source, 100)
		var all sync.WaitGroup
		old, _ := p.Open()
		all.Go(func() {
			if n, err := old.Read(make([]byte, 10)); n != 0 || !errors.Is(err, errPassed) {
				t.Errorf("the former reader gets %d, %v", n, err)
			}
		})
		synctest.Wait()
		if !p.Rewind() {
			t.Error("nothing was read, and it cannot begin anew")
		}
		fresh, err := p.Open()
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			if got, err := io.ReadAll(fresh); string(got) != "hello you" || err != nil {
				t.Errorf("the new reader gets %q, %v", got, err)
			}
		})
		synctest.Wait()
		_, _ = io.WriteString(client, "hello ")
		p.Settle()
		_, _ = io.WriteString(client, "you")
		_ = client.Close()
		all.Wait()
		if _, err := p.Open(); err == nil {
			t.Error("after the end it can be read again")
		}
	})
}

// panics is a body that panics once, and then would go on.
type panics struct{ done bool }

func (p *panics) Read([]byte) (int, error) {
	if !p.done {
		p.done = true
		panic("mine")
	}
	return 0, io.EOF
}

// A source that panics does so in the attempt that reads it, which can recover. The body has ended for all attempts, the one that waits
// for the same bytes, too.
func TestSourcePanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewReplay(new(panics), 100)
		r, err := p.Open()
		if err != nil {
			t.Fatal(err)
		}
		func() {
			defer func() {
				if got := recover(); got != "mine" {
					t.Errorf("recovered %v", got)
				}
			}()
			_, _ = r.Read(make([]byte, 10))
		}()
		next, err := p.Open()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := next.Read(make([]byte, 10)); !errors.Is(err, errPanicked) {
			t.Errorf("the next attempt: %v", err)
		}
	})
}
