package egress

import (
	"cmp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway/internal/invalid"
	"github.com/seed90641741/spillway/throttle"
)

// A Pool keeps a [Client] for each backend, made when the backend is first
// called. It keeps at most a fixed number of them: a caller that can name backends
// cannot make it grow. It is safe for concurrent use; make one with [NewPool].
type Pool struct {
	max     int
	clients sync.Map               // string → *pooled
	first   atomic.Pointer[pooled] // one of them, found at once; most pools have one only
	mu      sync.Mutex
	config  Config
	size    int
}

// pooled is a Client and whether it was used since the pool last looked.
type pooled struct {
	*Client
	key  string
	used atomic.Bool
}

// DefaultMaxBackends is how many backends a [Pool] keeps if it is not told.
const DefaultMaxBackends = 1024

// NewPool returns a Pool whose Clients have the configuration c. Throttles, in-flight limits and,
// if Retry is nil, retry budgets are each Client's own: a backend that fails cannot take the
// retries of others. A Retry strategy that is given is shared by all of them. The Pool keeps
// maxBackends clients; zero means [DefaultMaxBackends]. NewPool returns an error that names the
// value that is out of range.
func NewPool(c Config, maxBackends int) (*Pool, error) {
	if maxBackends < 0 {
		return nil, invalid.Field("egress", "maxBackends", maxBackends, "above 0")
	}
	p := &Pool{max: cmp.Or(maxBackends, DefaultMaxBackends)}
	if err := p.Update(c); err != nil {
		return nil, err
	}
	return p, nil
}

// Update changes the configuration of all Clients of the Pool, as [Client.Update]
// does, or returns an error that names the field that is wrong and changes nothing.
func (p *Pool) Update(c Config) error {
	if _, err := New(c); err != nil { // if not, none of the Clients rejects it
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var err error
	p.clients.Range(func(key, value any) bool {
		err = value.(*pooled).Update(c.of(key.(string)))
		return err == nil
	})
	p.config = c
	return err
}

// of returns c for the Client of a backend, whose key changes of state are reported with.
func (c Config) of(key string) Config {
	if hook := c.Throttle.OnStateChange; hook != nil {
		c.Throttle.OnStateChange = func(s throttle.StateChange) {
			s.Backend = key
			hook(s)
		}
	}
	return c
}

// For returns the Client of the backend named key. A full Pool first lets go of
// a Client that was not used recently and has nothing in flight; the next call to
// that backend starts with a new one, which knows nothing. Where every Client is
// in use, one is removed all the same: its calls end as they would have.
func (p *Pool) For(key string) *Client {
	c := p.first.Load()
	if c == nil || c.key != key {
		found, ok := p.clients.Load(key)
		if !ok {
			return p.add(key)
		}
		c = found.(*pooled)
	}
	if !c.used.Load() {
		c.used.Store(true)
	}
	return c.Client
}

func (p *Pool) add(key string) *Client {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c, ok := p.clients.Load(key); ok {
		return c.(*pooled).Client
	}
	if p.size >= p.max {
		p.evict()
	}
	client, err := New(p.config.of(key))
	if err != nil { // cannot be: NewPool made one of the same configuration
		return nil
	}
	c := &pooled{Client: client, key: key}
	c.used.Store(true)
	p.clients.Store(key, c)
	p.first.CompareAndSwap(nil, c)
	p.size++
	return client
}

// evict lets go of the first Client found that is idle and was not used since
// the last eviction, else of an idle one, else of any.
func (p *Pool) evict() {
	var victim any
	best := -1
	p.clients.Range(func(key, value any) bool {
		if fit := value.(*pooled).fitness(); fit > best {
			victim, best = key, fit
		}
		return best < 2
	})
	p.clients.Delete(victim)
	if first := p.first.Load(); first != nil && first.key == victim {
		p.first.Store(nil)
	}
	p.size--
}

// fitness says how well the Client can be spared. It forgets that the Client was
// used: one that is not used again before the next eviction has no second chance.
func (c *pooled) fitness() int {
	switch used := c.used.Swap(false); {
	case !c.current.Load().idle():
		return 0
	case used:
		return 1
	default:
		return 2
	}
}

// Stats returns the levels of each Client in the pool, by key, at the time now.
func (p *Pool) Stats(now time.Time) map[string]Stats {
	all := make(map[string]Stats)
	p.clients.Range(func(key, value any) bool {
		all[key.(string)] = value.(*pooled).Stats(now)
		return true
	})
	return all
}
