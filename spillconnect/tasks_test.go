package spillconnect

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"connectrpc.com/connect"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
)

// A said is what calls have said, by their headers as the handler sees them, and their tasks.
type said struct {
	mu   sync.Mutex
	all  []string
	task spillway.Task
}

func (s *said) hear(ctx context.Context, h http.Header) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, strings.Join([]string{h.Get(headerLevel), h.Get(headerProgress), h.Get(headerBaggage)}, "|"))
	t := spillway.TaskFrom(ctx)
	s.task.Begin(t.Level(), t.Progress())
}

func (s *said) last() (string, spillway.Level, spillway.Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[len(s.all)-1], s.task.Level(), s.task.Progress()
}

// The calls of a task say its level and how many were served before. At an edge a call that says so gets another level.
func TestTasks(t *testing.T) {
	for boundary, believed := range map[ingress.Boundary]bool{ingress.Edge: false, ingress.Internal: true} {
		var got said
		fails := false
		s := newServer(t, ServerConfig{}, ingress.Config{Trust: ingress.Trust{Boundary: boundary}, Rand: func() float64 { return 0 }})
		handler := connect.NewUnaryHandler(procedure, func(ctx context.Context, req *connect.Request[message]) (*connect.Response[message], error) {
			got.hear(ctx, req.Header())
			if fails {
				return nil, connect.NewError(connect.CodeInternal, errors.New("broken"))
			}
			return echo(ctx, req)
		}, connect.WithInterceptors(s))
		web := start(t, map[string]http.Handler{procedure: handler})
		call := caller(web, procedure, connect.WithInterceptors(newClient(t, ClientConfig{})))
		external := caller(web, procedure, connect.WithInterceptors(newClient(t, ClientConfig{External: true})))
		var task spillway.Task
		task.Begin(7, 0)
		ctx := spillway.WithTask(t.Context(), &task)
		for i, row := range []struct {
			call     func(context.Context) error
			ctx      context.Context
			fails    bool
			says     string // inside
			progress spillway.Progress
			after    spillway.Progress
		}{
			{call, ctx, false, "7||", 0, 1},
			{call, ctx, false, "7|1|", 1, 2},
			{call, ctx, true, "7|2|", 2, 2},
			{call, spillway.WithCriticality(ctx, spillway.Sheddable), false, "7|2|criticality=SHEDDABLE,level=7", 2, 3},
			{external, ctx, false, "||", 0, 4},
		} {
			fails = row.fails
			if err := row.call(row.ctx); (err != nil) != row.fails {
				t.Fatal(err)
			}
			says, level, progress := got.last()
			wantLevel := spillway.Level(7)
			if !believed || row.says == "||" {
				row.says, wantLevel, row.progress = strings.TrimSuffix("||"+row.says[strings.LastIndex(row.says, "|")+1:], ",level=7"), 1, 0
			}
			if says != row.says || level != wantLevel || progress != row.progress || task.Progress() != row.after {
				t.Errorf("%v, call %d: says %s, has level %d and progress %d, then %d; want %s, %d, %d, %d",
					boundary, i, says, level, progress, task.Progress(), row.says, wantLevel, row.progress, row.after)
			}
		}
	}
}
