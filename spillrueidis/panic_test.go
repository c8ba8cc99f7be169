package spillrueidis

import (
	"testing"
	"testing/synctest"

	"github.com/redis/rueidis"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
)

// A panicker is an Observer that panics.
type panicker struct{ off bool }

func (p *panicker) Observe(spillway.Event) {
	if !p.off {
		panic("observer")
	}
}

// The caller of commands for several shards, which are sent by goroutines of this package, can recover from a
// panic of the Observer. No place in flight is lost.
func TestPanicOfTheObserver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &panicker{off: true}
		_, client := cluster(t, egress.Config{Observer: p}, func(string, []string) string { return "$1\r\nv\r\n" })
		p.off = false
		for name, call := range map[string]func() []rueidis.RedisResult{
			"one shard": func() []rueidis.RedisResult {
				return client.DoMulti(t.Context(), client.B().Get().Key(ofFirst).Build())
			},
			"two shards": func() []rueidis.RedisResult {
				return client.DoMulti(t.Context(), client.B().Get().Key(ofFirst).Build(), client.B().Get().Key(ofSecond).Build())
			},
		} {
			func() {
				defer func() {
					if p := recover(); p != "observer" {
						t.Errorf("%s: recovered %v", name, p)
					}
				}()
				call()
			}()
		}
		p.off = true
		client.idle(t)
		end(client)
	})
}
