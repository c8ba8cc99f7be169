package layers

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/metadata"
)

// A story records the attempts of one call, with their times. Make one with [stories.begin].
type story struct {
	id     string
	begun  time.Time
	ended  time.Time
	served bool

	mu       sync.Mutex
	attempts []attempt
}

// An attempt has the times of its steps. A step that did not happen has the zero time.
type attempt struct {
	task                       *task // that began to work on it
	sent, began, got, answered time.Time
}

// stories are of calls under way, by their number, which travels with each attempt.
type stories struct {
	all  sync.Map
	next atomic.Int64
}

type storyKey struct{}

const headerStory = "story"

// begin begins a call.
func (x *stories) begin() (context.Context, *story) {
	s := &story{id: strconv.FormatInt(x.next.Add(1), 10), begun: time.Now()}
	x.all.Store(s.id, s)
	return context.WithValue(context.Background(), storyKey{}, s), s
}

// end ends a call.
func (x *stories) end(s *story, served bool) {
	x.all.Delete(s.id)
	s.ended, s.served = time.Now(), served
}

// sent notes that an attempt of the call of ctx is sent.
func sent(ctx context.Context) *story {
	s := ctx.Value(storyKey{}).(*story)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attempts = append(s.attempts, attempt{sent: time.Now()})
	return s
}

// last changes the last attempt. A nil story has no attempt.
func (s *story) last(change func(*attempt)) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.attempts[len(s.attempts)-1])
}

func (s *story) answered() { s.last(func(a *attempt) { a.answered = time.Now() }) }

// ofCall returns the story of a call of gRPC at its server.
func (x *stories) ofCall(ctx context.Context) *story {
	m, _ := metadata.FromIncomingContext(ctx)
	if id := m[headerStory]; len(id) > 0 {
		return x.find(id[0])
	}
	return nil
}

// ofRequest returns the story of a request at its server.
func (x *stories) ofRequest(r *http.Request) *story { return x.find(r.Header.Get(headerStory)) }

func (x *stories) find(id string) *story {
	if s, ok := x.all.Load(id); ok {
		return s.(*story)
	}
	return nil
}

// parts are the waits of one call.
type parts struct {
	queue    time.Duration // in the queue of the protection of the task that served it
	slot     time.Duration // for a slot of that task
	work     time.Duration
	rejected time.Duration // for answers of attempts that were not served
	backoff  time.Duration // between attempts
	tries    int
	by       *task
}

func (s *story) parts() (p parts) {
	at := s.begun
	for i, a := range s.attempts {
		p.backoff += a.sent.Sub(at)
		at = a.answered
		if i < len(s.attempts)-1 {
			p.rejected += a.answered.Sub(a.sent)
			continue
		}
		p.by = a.task
		p.queue, p.slot, p.work = a.began.Sub(a.sent), a.got.Sub(a.began), a.answered.Sub(a.got)
	}
	p.tries = len(s.attempts)
	return p
}

// slowest returns the mean waits of the slowest calls: a share of all calls that were served.
func slowest(all []*story, share float64, weak *task) string {
	all = slices.DeleteFunc(slices.Clone(all), func(s *story) bool { return !s.served })
	slices.SortFunc(all, func(a, b *story) int { return cmp.Compare(b.ended.Sub(b.begun), a.ended.Sub(a.begun)) })
	all = all[:max(1, int(float64(len(all))*share))]
	var sum parts
	byWeak, again := 0, 0
	for _, s := range all {
		p := s.parts()
		sum.queue += p.queue
		sum.slot += p.slot
		sum.work += p.work
		sum.rejected += p.rejected
		sum.backoff += p.backoff
		if p.by == weak {
			byWeak++
		}
		if p.tries > 1 {
			again++
		}
	}
	n := time.Duration(len(all))
	ms := func(d time.Duration) float64 { return float64(d/n) / 1e6 }
	return fmt.Sprintf("queue %.1f, slot %.1f, work %.1f, rejected attempts %.1f, backoff %.1f ms; %.0f %% by the weak task, %.0f %% retried; longest %v",
		ms(sum.queue), ms(sum.slot), ms(sum.work), ms(sum.rejected), ms(sum.backoff),
		100*float64(byWeak)/float64(n), 100*float64(again)/float64(n), all[0].ended.Sub(all[0].begun).Round(time.Millisecond))
}
