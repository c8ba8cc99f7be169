package suite_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/seed90641741/spillway/spillmongo"
	"github.com/seed90641741/spillway/spillmongo/mongotest"
)

// seenSessions are the sessions of commands in their order, as letters: A is the first
// that was seen.
type seenSessions struct {
	mu     sync.Mutex
	all    []string
	names  []string
	ended  []string
	events []string
	log    []string
}

func (s *seenSessions) letter(id string) string {
	for i, other := range s.all {
		if other == id {
			return string(rune('A' + i))
		}
	}
	s.all = append(s.all, id)
	return string(rune('A' + len(s.all) - 1))
}

func (s *seenSessions) observe(c mongotest.Command) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if list, ok := c.Body.Lookup("endSessions").ArrayOK(); ok {
		for _, v := range must(list.Values()) {
			s.ended = append(s.ended, s.letter(v.Document().Lookup("id").String()))
		}
		return
	}
	if id, err := c.Body.LookupErr("lsid", "id"); err == nil {
		s.names = append(s.names, s.letter(id.String()))
	}
}

func (s *seenSessions) started(_ context.Context, e *event.CommandStartedEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id, err := e.Command.LookupErr("lsid", "id"); err == nil {
		s.events = append(s.events, id.String())
	}
}

// Info is that of a log sink.
func (s *seenSessions) Info(_ int, msg string, kv ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := 0; i+1 < len(kv) && msg == "Command started"; i += 2 {
		if kv[i] != "command" {
			continue
		}
		if _, rest, ok := strings.Cut(kv[i+1].(string), `"lsid": {"id": `); ok {
			id, _, _ := strings.Cut(rest, "}}")
			s.log = append(s.log, id+"}}")
		} else if _, rest, ok := strings.Cut(kv[i+1].(string), `"lsid":{"id":`); ok {
			id, _, _ := strings.Cut(rest, "}}")
			s.log = append(s.log, id+"}}")
		}
	}
}

func (s *seenSessions) Error(error, string, ...any) {}

func (s *seenSessions) letters(of []string) (all string) {
	for _, id := range of {
		all += s.letter(id)
	}
	return all
}

// onlyLogged are the sessions in the log where they differ from the sessions of the commands:
// the driver does not log getMore, and the first log entry for a session of the application
// cannot show whether the session that was hit is still in use.
var onlyLogged = map[string]string{
	"a cursor whose first command was hit": "AAB",
	"a cursor that began later":            "AABC",
	"a session of the application":         "AAAA",
	"the next session of the application":  "AAAABBB",
	"a commit":                             "AAAAAA",
}

// TestDirtySessions: a server session that a network error hit is used no more once what
// it was used for has ended, even if a retry got over the error.
func TestDirtySessions(t *testing.T) {
	find := func(ctx context.Context, r *rig, steps string) {
		r.script.set("find", steps)
		if _, err := r.coll.Find(ctx, bson.D{}); err != nil {
			r.t.Error(err)
		}
	}
	insert := func(ctx context.Context, r *rig, steps string) {
		r.script.set("insert", steps)
		must(r.coll.InsertOne(ctx, bson.D{}))
	}
	cursor := func(ctx context.Context, r *rig, steps string) *mongo.Cursor {
		r.script.set("find", steps)
		return must(r.coll.Find(ctx, bson.D{}, options.Find().SetBatchSize(2)))
	}
	rest := func(r *rig, c *mongo.Cursor) {
		var docs []bson.D
		if err := c.All(r.t.Context(), &docs); err != nil || len(docs) != 5 {
			r.t.Errorf("%d documents, %v", len(docs), err)
		}
	}
	for _, row := range []struct {
		name string
		f    func(ctx context.Context, r *rig)
		want string // of each command
	}{
		{"nothing happens", func(ctx context.Context, r *rig) { find(ctx, r, ""); insert(ctx, r, "") }, "AA"},
		{"an overload", func(ctx context.Context, r *rig) { find(ctx, r, "Os"); find(ctx, r, "") }, "AAA"},
		{"a read", func(ctx context.Context, r *rig) { find(ctx, r, "cs"); find(ctx, r, ""); insert(ctx, r, "") }, "AABB"},
		{"a write", func(ctx context.Context, r *rig) { insert(ctx, r, "cs"); find(ctx, r, ""); insert(ctx, r, "") }, "AABB"},
		{"again", func(ctx context.Context, r *rig) {
			insert(ctx, r, "cs")
			find(ctx, r, "cs")
			find(ctx, r, "Os")
			insert(ctx, r, "cOs")
			find(ctx, r, "")
		}, "AABBCCCCCD"},
		{"a cursor whose first command was hit", func(ctx context.Context, r *rig) {
			rest(r, cursor(ctx, r, "cs"))
			find(ctx, r, "")
		}, "AAAAB"},
		{"a cursor that began later", func(ctx context.Context, r *rig) {
			find(ctx, r, "cs")
			c := cursor(ctx, r, "")
			find(ctx, r, "") // the driver takes another session from its pool
			rest(r, c)
		}, "AABCBB"},
		{"a session of the application", func(ctx context.Context, r *rig) {
			s := must(r.client.StartSession())
			in := mongo.NewSessionContext(ctx, s)
			find(in, r, "cs")
			insert(in, r, "")
			s.EndSession(ctx)
			find(ctx, r, "")
		}, "AAAB"},
		{"the next session of the application", func(ctx context.Context, r *rig) {
			for range 2 {
				s := must(r.client.StartSession())
				in := mongo.NewSessionContext(ctx, s)
				find(in, r, "cs")
				find(in, r, "")
				s.EndSession(ctx)
			}
			find(ctx, r, "")
		}, "AAABBBC"},
		{"a commit", func(ctx context.Context, r *rig) {
			s := must(r.client.StartSession())
			in := mongo.NewSessionContext(ctx, s)
			if err := s.StartTransaction(); err != nil {
				r.t.Error(err)
			}
			insert(in, r, "")
			insert(in, r, "")
			r.script.set("commitTransaction", "cs")
			if err := s.CommitTransaction(ctx); err != nil { // without the session in its context
				r.t.Error(err)
			}
			find(in, r, "") // it is still the same session
			s.EndSession(ctx)
			find(ctx, r, "")
		}, "AAAAAB"},
		{"a transaction in a session that was hit before", func(ctx context.Context, r *rig) {
			insert(ctx, r, "cs")
			s := must(r.client.StartSession())
			in := mongo.NewSessionContext(ctx, s)
			if err := s.StartTransaction(); err != nil {
				r.t.Error(err)
			}
			insert(in, r, "")
			insert(in, r, "")
			r.script.set("commitTransaction", "")
			if err := s.CommitTransaction(ctx); err != nil {
				r.t.Error(err)
			}
			s.EndSession(ctx)
			find(ctx, r, "")
		}, "AABBBB"},
		{"an error that the driver sees", func(ctx context.Context, r *rig) {
			r.script.set("find", "cccccccc")
			if _, err := r.coll.Find(ctx, bson.D{}); err == nil {
				r.t.Error("success")
			}
			find(ctx, r, "")
		}, "AAB"},
	} {
		for _, compressors := range [][]string{nil, {"zlib"}} {
			t.Run(row.name+strings.Join(compressors, ""), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					seen := new(seenSessions)
					mc := pipes
					mc.Observe = seen.observe
					r := setUp(t, mc, spillmongo.Config{Rand: fixed(1)}, func(o *options.ClientOptions) {
						own := o.Monitor.Started
						o.Monitor.Started = func(ctx context.Context, e *event.CommandStartedEvent) {
							seen.started(ctx, e)
							own(ctx, e)
						}
						o.SetCompressors(compressors).SetLoggerOptions(options.Logger().
							SetComponentLevel(options.LogComponentCommand, options.LogLevelDebug).SetSink(seen))
					})
					plain := must(mongo.Connect(r.Options()))
					defer plain.Disconnect(t.Context())
					must(plain.Database("test").Collection("things").InsertMany(t.Context(), bson.A{
						bson.D{{Key: "_id", Value: 1}}, bson.D{{Key: "_id", Value: 2}}, bson.D{{Key: "_id", Value: 3}},
						bson.D{{Key: "_id", Value: 4}}, bson.D{{Key: "_id", Value: 5}},
					}))
					seen.mu.Lock()
					seen.all, seen.names = nil, nil
					seen.mu.Unlock()
					row.f(t.Context(), r)
					if got := strings.Join(seen.names, ""); got != row.want {
						t.Errorf("sessions %s, want %s", got, row.want)
					}
					if got := seen.letters(seen.events); got != row.want {
						t.Errorf("sessions %s in events, want %s", got, row.want)
					}
					logged := row.want
					if l := onlyLogged[row.name]; l != "" {
						logged = l
					}
					if got := seen.letters(seen.log); got != logged {
						t.Errorf("sessions %s in the log, want %s", got, logged)
					}
					if err := r.client.Disconnect(t.Context()); err != nil {
						t.Error(err)
					}
					for _, id := range seen.ended {
						if !strings.Contains(row.want, id) {
							t.Errorf("session %s was ended, which the server never saw", id)
						}
					}
					r.client = must(mongo.Connect(r.Options())) // to be disconnected by the rig
				})
			})
		}
	}
}
