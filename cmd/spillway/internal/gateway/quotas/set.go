package quotas

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/quota/fleet"
)

// A Set has the quotas that the clusters and listeners of a proxy share with other proxies. It is
// safe for concurrent use; make one with [New], and end it with [Set.Close].
type Set struct {
	logger  *slog.Logger
	running sync.WaitGroup // engines that are closed after their tasks

	mu      sync.Mutex // one change at a time
	engines map[string]*Engine
	tasks   map[string]*task // by domain

	found atomic.Pointer[map[string]*task] // what Share finds: the tasks, or those of the next change
}

// task is one quota of this proxy.
type task struct {
	name   string // of the cluster or listener
	fleet  *fleet.Fleet
	board  *Watched
	engine *Engine
	config fleet.Config
	cancel context.CancelFunc // nil until it has started
}

// New returns a Set without quotas.
func New(logger *slog.Logger) *Set {
	s := &Set{logger: logger, engines: make(map[string]*Engine), tasks: make(map[string]*task)}
	s.found.Store(&map[string]*task{})
	return s
}

// A Change is the quotas of a configuration, ready to be put in place. Exactly one of Commit and
// Abandon must be called, soon: until then there is no other change.
type Change struct {
	set     *Set
	engines map[string]*Engine
	tasks   map[string]*task
	made    []*Engine
}

// Prepare makes what a configuration needs, which was checked and has its defaults. A new quota
// exchanges reports once, so that it begins with its share; this takes two intervals at most. If
// Prepare fails, nothing has changed.
func (s *Set) Prepare(ctx context.Context, c *config.Config) (*Change, error) {
	s.mu.Lock()
	n := &Change{set: s, engines: make(map[string]*Engine), tasks: make(map[string]*task)}
	var err error
	c.SharedQuotas(func(name string, e *config.Engine, q *config.Quota) {
		if err == nil {
			err = n.add(name, e, q)
		}
	})
	if err != nil {
		n.close()
		s.mu.Unlock()
		return nil, err
	}
	n.greet(ctx)
	s.found.Store(&n.tasks)
	return n, nil
}

func (n *Change) add(name string, e *config.Engine, q *config.Quota) error {
	x, err := n.engine(q.Engine, e)
	if err != nil {
		return fmt.Errorf("quotas %s: %w", q.Engine, err)
	}
	domain := config.SharedDomain(e, name, q)
	t := &task{name: name, engine: x, config: e.Fleet(q)}
	if t.fleet, err = fleet.New(t.config); err != nil {
		return err
	}
	board, err := x.Board(domain)
	if err != nil {
		return err
	}
	t.board = Logged(board, name, n.set.logger)
	if old := n.set.tasks[domain]; old != nil && old.engine == x {
		t.fleet, t.board, t.cancel = old.fleet, old.board, old.cancel
	}
	n.tasks[domain] = t
	return nil
}

// engine returns an engine by its name: the one in use, unless something of it has changed.
func (n *Change) engine(name string, e *config.Engine) (*Engine, error) {
	if x := n.engines[name]; x != nil {
		return x, nil
	}
	opened, err := Open(e)
	if err != nil {
		return nil, err
	}
	if old := n.set.engines[name]; old != nil && old.secrets == opened.secrets && reflect.DeepEqual(old.redis, opened.redis) {
		n.engines[name] = old
		return old, opened.Close()
	}
	n.engines[name] = opened
	n.made = append(n.made, opened)
	return opened, nil
}

// greet has each new task exchange reports once.
func (n *Change) greet(ctx context.Context) {
	var all sync.WaitGroup
	for _, t := range n.tasks {
		if t.cancel != nil {
			continue
		}
		all.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, firstWord)
			defer cancel()
			_ = t.fleet.Sync(ctx, time.Now(), t.board) // without an answer the task has a fallback
		})
	}
	all.Wait()
}

// firstWord is how long a proxy waits for servers before it starts without them.
const firstWord = 400 * time.Millisecond

// Abandon leaves all as it was.
func (n *Change) Abandon() {
	defer n.set.mu.Unlock()
	tasks := n.set.tasks
	n.set.found.Store(&tasks)
	for _, t := range n.tasks {
		if t.cancel == nil {
			ctx, cancel := context.WithTimeout(context.Background(), firstWord)
			_ = t.fleet.Leave(ctx, t.board) // the others find out after Hold
			cancel()
		}
	}
	n.close()
}

// close closes the engines that are not in use.
func (n *Change) close() {
	for _, x := range n.made {
		_ = x.Close() // nothing depends on it
	}
}

// Commit puts the quotas in place.
func (n *Change) Commit() {
	s := n.set
	defer s.mu.Unlock()
	for _, t := range n.tasks {
		if t.cancel == nil {
			s.start(t)
		} else if err := t.fleet.Update(t.config); err != nil { // cannot be: it was tried
			s.logger.Error("a quota was not changed", "name", t.name, "error", err)
		}
	}
	for domain, t := range s.tasks {
		if next := n.tasks[domain]; next == nil || next.fleet != t.fleet {
			t.cancel()
		}
	}
	for name, x := range s.engines {
		if n.engines[name] != x {
			s.retire(x)
		}
	}
	s.engines, s.tasks = n.engines, n.tasks
}

// start has a task exchange reports until it is canceled.
func (s *Set) start(t *task) {
	var ctx context.Context
	ctx, t.cancel = context.WithCancel(context.Background())
	t.engine.users.Go(func() { fleet.Run(ctx, t.fleet, t.board) })
}

// retire closes an engine when its last task has ended.
func (s *Set) retire(x *Engine) {
	s.running.Go(func() {
		x.users.Wait()
		_ = x.Close() // nothing depends on it
	})
}

// Share makes to the quota of a cluster or listener that an engine shares: with the change that is
// prepared, or else with the configuration in use. A nil Set shares nothing.
func (s *Set) Share(to *quota.Config, c *config.Config, name string, q *config.Quota) {
	if s == nil || q == nil || q.Engine == "" {
		return
	}
	e := c.Quotas[q.Engine]
	if t := (*s.found.Load())[config.SharedDomain(&e, name, q)]; t != nil {
		to.Allocator = t.fleet
	}
}

// Leave says goodbye to the other tasks, so that they have the shares of this proxy at once. What
// is still admitted here has the last shares. It returns when all have left, which takes a second
// at most.
func (s *Set) Leave() {
	s.mu.Lock()
	for _, t := range s.tasks {
		t.cancel()
	}
	for _, x := range s.engines {
		s.retire(x)
	}
	s.tasks, s.engines = map[string]*task{}, map[string]*Engine{}
	s.mu.Unlock()
	s.running.Wait()
}
