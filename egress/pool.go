package egress

import (
	"cmp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway/internal/invalid"
	"github.com/seed90641741/spillway/throttle"
)

// A Pool keeps a [Client] for each backend, made when the backend is first called. It keeps a
// limited number of Clients, so that callers who choose the names of backends cannot exhaust
// memory. It is safe for concurrent use; make one with [NewPool].
type Pool struct {
	max     int
	clients sync.Map               // string → *pooled
	first   atomic.Pointer[pooled] // one of clients, which For tries first: most pools have one
	mu      sync.Mutex
	config  Config
	size    int
}

// pooled is a Client, and whether it was used since evict last ran.
type pooled struct {
	*Client
	key  string
	used atomic.Bool
}

// DefaultMaxBackends is the default maximum of backends in a [Pool].
const DefaultMaxBackends = 1024

// NewPool returns a Pool whose Clients have the configuration c. Each Client has its own throttle
// and in-flight limit. If Retry is nil, each also has its own retry budget, so that a failing
// backend cannot use up the retries of others. Otherwise all Clients share the strategy Retry. The
// Pool keeps at most maxBackends Clients; zero means [DefaultMaxBackends]. NewPool returns an error
// that names the value that is out of range.
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
	if _, err := New(c); err != nil { // a configuration that New accepts is valid for all Clients
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

// of returns c for the Client of a backend: OnStateChange is called with its key.
func (c Config) of(key string) Config {
	if hook := c.Throttle.OnStateChange; hook != nil {
		c.Throttle.OnStateChange = func(s throttle.StateChange) {
			s.Backend = key
			hook(s)
		}
	}
	return c
}

// For returns the Client of the backend named key. A full Pool first removes a Client, preferably
// one that was not used recently and has nothing in flight. Calls in flight of a removed Client go
// on. The next call to its backend gets a new Client without any history.
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
	if err != nil { // never: Update has made a Client of this configuration
		return nil
	}
	c := &pooled{Client: client, key: key}
	c.used.Store(true)
	p.clients.Store(key, c)
	p.first.CompareAndSwap(nil, c)
	p.size++
	return client
}

// evict removes one Client: an idle one that was not used since evict last ran, else any idle one,
// else any.
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

// fitness returns 2 for an idle Client that was not used since evict last ran, 1 for another idle
// one, and 0 for one with calls in flight. It resets used.
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

// Stats returns the state of each Client in the pool, by key, at the time now.
func (p *Pool) Stats(now time.Time) map[string]Stats {
	all := make(map[string]Stats)
	p.clients.Range(func(key, value any) bool {
		all[key.(string)] = value.(*pooled).Stats(now)
		return true
	})
	return all
}
