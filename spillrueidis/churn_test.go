package spillrueidis

import (
	"context"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"

	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/spilltest"
)

// A Client and its dedicated clients have all methods of those of rueidis.
func TestClientHasAllMethods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ours := start(t, egress.Config{}, always("$1\r\nv\r\n"))
		bare, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{address}, ForceSingleClient: true, DialCtxFn: s.dial})
		if err != nil {
			t.Fatal(err)
		}
		types := func(c rueidis.Client) []reflect.Type {
			dedicated, release := c.Dedicate()
			defer release()
			return []reflect.Type{reflect.TypeOf(c), reflect.TypeOf(dedicated)}
		}
		wrapped := types(ours)
		for i, of := range types(bare) {
			for _, method := range spilltest.MissingMethods(of, wrapped[i]) {
				t.Errorf("%v has no %s", wrapped[i], method)
			}
		}
		bare.Close()
		end(ours)
	})
}

// Under saturation, with commands that are rejected, repeated and left, as many connections are opened as with rueidis alone.
func TestConnectionsAreThoseOfRueidis(t *testing.T) {
	open := func(s *server, ours bool) (rueidis.Client, error) {
		opt := rueidis.ClientOption{InitAddress: []string{address}, ForceSingleClient: true, DialCtxFn: s.dial, RingScaleEachConn: 8}
		if ours {
			return NewClient(opt, egress.Config{MaxInFlight: 10})
		}
		return rueidis.NewClient(opt)
	}
	bare, ours := 0, 0
	for dials, is := range map[*int]bool{&bare: false, &ours: true} {
		synctest.Test(t, func(t *testing.T) {
			var n atomic.Int32
			s := &server{seen: make(map[string]int)}
			s.answer = func(string, []string) string {
				time.Sleep(10 * time.Millisecond)
				if n.Add(1)%3 == 0 {
					return "-LOADING Redis is loading the dataset in memory\r\n"
				}
				return "$1\r\nv\r\n"
			}
			c, err := open(s, is)
			if err != nil {
				t.Fatal(err)
			}
			var all sync.WaitGroup
			for i := range 100 {
				all.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+i%10)*100*time.Millisecond)
					defer cancel()
					_ = c.Do(ctx, c.B().Get().Key("k").Build()).Error()
				})
				time.Sleep(time.Millisecond)
			}
			all.Wait()
			c.Close()
			time.Sleep(time.Minute)
			*dials = s.dials
		})
	}
	if ours > bare || bare == 0 {
		t.Errorf("%d connections opened, by rueidis alone %d", ours, bare)
	}
}
